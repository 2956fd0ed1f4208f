// Does a backup with data bring back volumes that work and can be deleted? A server with a pod that writes, real mounts.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Answer } from '../kit/command-line.ts'
import { mountsOfImage } from '../../src/installation/image-mounts.ts'
import { fileIn, hawser, isRoot, startServer } from '../kit/command-line.ts'
import { mountsBelow, until } from '../kit/machine.ts'
import { speaking } from '../kit/speaking.ts'
import { startServer as startServerProcess } from '../kit/server-process.ts'

const needs = { skip: !isRoot && 'needs root' }
const place = mkdtempSync(join(tmpdir(), 'hawser-data-'))
after(() => {
  // A node leaves its root as a mount of its own.
  for (const path of mountsBelow(place).toSorted().toReversed()) spawnSync('umount', [path])
  rmSync(place, { recursive: true, force: true })
})

const ok = ({ code, out, err }: Answer): string => {
  assert.equal(code, 0, out + err)
  return out
}

test('volumes of a backup with data work and can be deleted', needs, async () => {
  const [first, second] = [join(place, 'first.jsonl'), join(place, 'second.jsonl')]
  const restored = join(place, 'restored')
  const byHand = join(place, 'by-hand')
  {
    await using server = await startServer('--node-name', 'one')
    for (const name of ['a', 'b']) {
      ok(await server.hawser('volume', 'create', name, '--size', '32Mi', '--node', 'one'))
      ok(await server.hawser('run', '--claim', `${name}:/data`, '--', 'sh', '-c', `echo ${name} > /data/file`))
    }
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/srv/other' } }
    const other = JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'other' }, spec })
    ok(await server.hawser('apply', '-f', fileIn(place, 'other.json', other)))
    const backup = await server.hawser('backup', first, '--with-data')
    assert.match(ok(backup), /first\.jsonl: \d+ objects, 2 images in .*\.data/)
    assert.equal(
      backup.err,
      'the backup does not hold the data of 1 volumes:\n  volume other: its data is outside Hawser (hostPath)\n',
    )
    ok(await server.hawser('delete', 'pv/other', '--yes'))
    ok(await server.hawser('run', '--claim', 'b:/data', '--', 'sh', '-c', 'echo more >> /data/file; sync'))
    ok(await server.hawser('backup', second, '--with-data', '--since', first))
    const links = (file: string) => statSync(join(`${second}.data`, file)).nlink
    assert.deepEqual(readdirSync(`${second}.data`).map(links).toSorted(), [1, 2], 'what did not change is linked')
    await server.stop()
    // By hand, as documented: the whole directory while the server is stopped.
    cpSync(join(server.directory), byHand, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  }
  const archive = join(`${second}.data`, readdirSync(`${second}.data`)[0]!)
  const bytes = readFileSync(archive)
  rmSync(archive)
  writeFileSync(archive, Buffer.concat([bytes.subarray(0, -1), Buffer.from([bytes.at(-1)! ^ 1])]))
  const damaged = await hawser(['restore', second, '--data-dir', restored])
  assert.equal(damaged.code, 2)
  assert.match(damaged.err, /\.tar is damaged/)
  assert.ok(!existsSync(restored))
  rmSync(archive)
  writeFileSync(archive, bytes)
  ok(await hawser(['restore', second, '--data-dir', restored]))
  for (const directory of [restored, byHand]) {
    await using server = await startServerProcess(['--node-name', 'one'], { dataDirectory: directory })
    const run = (...args: string[]) => hawser(args, { KUBECONFIG: server.kubeconfig, HAWSER_DATA_DIR: directory })
    const read = ok(await run('run', '--claim', 'b:/data', '--', 'cat', '/data/file'))
    assert.equal(read, 'b\nmore\n', directory)
    for (const name of ['a', 'b']) ok(await run('volume', 'rm', name, '--yes'))
    assert.deepEqual(readdirSync(join(directory, 'volumes', 'volumes')), [], directory)
  }
})

test('a backup that is ended while it copies leaves no filesystem frozen', { ...needs, timeout: 120_000 }, async () => {
  await using server = await startServer('--node-name', 'one')
  ok(await server.hawser('volume', 'create', 'a', '--size', '32Mi', '--node', 'one'))
  const pod = { name: 'c', image: 'none', command: ['sleep', '600'], volumeMounts: [{ name: 'd', mountPath: '/d' }] }
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'a' } }]
  const spec = { terminationGracePeriodSeconds: 0, containers: [pod], volumes }
  const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'user' }, spec })
  ok(await server.hawser('apply', '--wait', '-f', fileIn(place, 'user.json', manifest)))
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => void ok(await server.hawser('delete', 'pod/user', '--yes')))
  const [volume] = readdirSync(join(server.directory, 'volumes', 'volumes'))
  const { mounted } = mountsOfImage(join(server.directory, 'volumes', 'volumes', volume!, 'image'))
  assert.ok(mounted[0], 'the volume is in use')
  // Takes as long as it would with a volume of terabytes.
  const bin = mkdtempSync(join(place, 'bin-'))
  const begun = join(bin, 'begun')
  writeFileSync(join(bin, 'tar'), `#!/bin/sh\necho $$ > ${begun}\nexec sleep 600\n`, { mode: 0o755 })
  const env = { ...server.env, PATH: `${bin}:${process.env['PATH']}` }
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    rmSync(begun, { force: true })
    const file = join(place, `${signal}.jsonl`)
    await using backup = speaking(['backup', file, '--with-data'], env)
    const tar = await until(
      () => `tar has begun: ${backup.text()}`,
      () => Number(readFileSync(begun, 'utf8')),
    )
    await backup.end(signal)
    await until(
      `after ${signal} the filesystem can be frozen again, so it is not frozen`,
      () => spawnSync('fsfreeze', ['--freeze', mounted[0]!]).status === 0,
    ).finally(() => spawnSync('fsfreeze', ['--unfreeze', mounted[0]!]))
    if (signal === 'SIGKILL') {
      process.kill(tar)
      continue
    }
    assert.equal(backup.child.exitCode, 143, backup.text())
    assert.match(backup.text(), /SIGTERM: nothing was written/)
    assert.ok(!existsSync(file) && !existsSync(`${file}.data`))
  }
})
