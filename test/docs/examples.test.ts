// Are the examples right? Every manifest is accepted by the server, every script is valid shell, and the one for CI tests a driver.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { hostPathPlugin } from '../kit/host-path-plugin.ts'
import { launcher, repository, runProgram, startServer } from '../kit/server-process.ts'

const examples = (ending: string) => globSync(`docs/examples/*.${ending}`, { cwd: repository }).toSorted()

test('every manifest of docs/examples is accepted', async () => {
  await using server = await startServer(['--bare', '--store', 'memory'])
  const files = examples('yaml')
  assert.ok(files.length >= 3)
  for (const file of files) {
    const args = ['apply', '--dry-run', '-f', join(repository, file)]
    const { code, stderr } = await runProgram(launcher, args, { env: { KUBECONFIG: server.kubeconfig } })
    assert.equal(code, 0, `${file}: ${stderr}`)
  }
})

test('every script of docs/examples is valid shell', async () => {
  const files = examples('sh')
  assert.ok(files.length >= 2)
  for (const file of files) {
    const { code, stderr } = await runProgram('sh', ['-n', join(repository, file)])
    assert.equal(code, 0, `${file}: ${stderr}`)
  }
})

const isRoot = process.getuid?.() === 0
const plugin = isRoot ? await hostPathPlugin() : { why: 'needs root' }

test(
  'the script for CI tests a driver from its socket to deletion',
  { skip: plugin.path === undefined && plugin.why, timeout: 120_000 },
  async () => {
    const work = mkdtempSync(join(tmpdir(), 'hawser-ci-example-'))
    const socket = join(work, 'csi.sock')
    const driverName = 'hostpath.csi.k8s.io'
    const args = [
      `--drivername=${driverName}`,
      `--endpoint=unix://${socket}`,
      '--nodeid=ci',
      `--statedir=${work}/state`,
    ]
    const driver = spawn(plugin.path!, args, { stdio: 'ignore' })
    try {
      for (let tries = 0; tries < 200 && !existsSync(socket); tries++)
        await new Promise((resolve) => setTimeout(resolve, 50))
      const env = { PATH: `${join(repository, 'bin')}${delimiter}${process.env['PATH']}` }
      const script = join(repository, 'docs/examples/driver-in-ci.sh')
      const { code, stdout, stderr } = await runProgram(script, [driverName, socket], { env })
      assert.equal(code, 0, stdout + stderr)
      assert.match(stderr, /nothing found/)
    } finally {
      driver.kill('SIGKILL')
      await removeEverything(work)
    }
  },
)
