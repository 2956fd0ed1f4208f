// `hawser driver trace|proxy|ls` as a user runs them: a driver behind a proxy, a server that uses it, calls that fail on purpose.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

async function start(args: readonly string[], socket: string) {
  const child = spawn(launcher, args, { stdio: 'pipe', env: { ...process.env, NO_COLOR: '1' } })
  let printed = ''
  child.stdout.on('data', (piece: Buffer) => (printed += piece.toString()))
  child.stderr.on('data', (piece: Buffer) => (printed += piece.toString()))
  for (let tries = 0; tries < 400 && !existsSync(socket); tries++)
    await new Promise((resolve) => void setTimeout(resolve, 50))
  assert.ok(existsSync(socket), printed)
  return {
    printed: () => printed,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

test('a proxy shows and fails calls; what lies at its path is not taken away', async (t) => {
  const work = mkdtempSync(join(tmpdir(), 'hawser-driver-proxy-'))
  t.after(() => removeEverything(work))
  const path = (name: string) => join(work, name)
  await using _driver = await start(
    ['driver', 'serve', '--socket', path('csi.sock'), '--data', path('images'), '--node', 'n1'],
    path('csi.sock'),
  )
  const faults = ['--fault', 'CreateVolume=answer-lost@1', '--fault', 'DeleteVolume=UNAVAILABLE@1']
  await using proxy = await start(
    ['driver', 'proxy', path('csi.sock'), '--socket', path('p.sock'), ...faults],
    path('p.sock'),
  )
  const request = JSON.stringify({
    name: 'v',
    capacityRange: { requiredBytes: '8388608' },
    volumeCapabilities: [{ mount: { fsType: 'ext4' }, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
    secrets: { password: 'hunter2' },
  })
  const call = (rpc: string, text: string) => runProgram(launcher, ['driver', 'rpc', path('p.sock'), rpc, text])
  const lost = await call('CreateVolume', request)
  assert.match(lost.stderr, /CreateVolume: UNAVAILABLE: injected: the answer was lost/)
  const again = await call('CreateVolume', request)
  assert.equal(again.code, 0, again.stderr)
  const { volume } = JSON.parse(again.stdout) as { volume: { volumeId: string } }
  const listed = await call('ListVolumes', '{}')
  assert.equal((JSON.parse(listed.stdout) as { entries: unknown[] }).entries.length, 1, 'made once')
  const remove = () => call('DeleteVolume', JSON.stringify({ volumeId: volume.volumeId }))
  assert.match((await remove()).stderr, /DeleteVolume: UNAVAILABLE: injected: the call was refused/)
  assert.equal((await remove()).code, 0)
  assert.match(proxy.printed(), /CreateVolume {2}.*UNAVAILABLE {2}\[fault: .*answerLost/)
  assert.match(proxy.printed(), /"secrets":\{"password":"\[secret\]"\}/)
  assert.doesNotMatch(proxy.printed(), /hunter2/)

  writeFileSync(path('file'), 'kept')
  const refused = (socket: string) => runProgram(launcher, ['driver', 'trace', path('csi.sock'), '--socket', socket])
  assert.match((await refused(path('file'))).stderr, /is there, and it is not a socket/)
  assert.match((await refused(path('p.sock'))).stderr, /somebody listens on .* already/)
  const mistake = await runProgram(launcher, [
    ...['driver', 'proxy', path('csi.sock'), '--socket', path('q.sock'), '--fault', 'CreateVolum=twice'],
  ])
  assert.match(mistake.stderr, /there is no CSI call CreateVolum/)
})
