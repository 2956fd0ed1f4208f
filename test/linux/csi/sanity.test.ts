// Does the built-in driver pass the community's own test? csi-sanity from the Go module registry, in both modes.
// Skipped, and loudly so, where Go or the module is not to be had.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createSystemClock } from '../../../src/clock/system-clock.ts'
import { spawnLocalDriver } from '../../../src/drivers/local/process.ts'
import { silentLog } from '../../../src/telemetry/log.ts'

const program = findSanity()

for (const mode of ['local', 'shared'] as const) {
  const skip = program.path === undefined ? program.reason : process.getuid?.() === 0 ? false : 'needs root'
  if (skip) console.log(`# LOUDLY SKIPPED: csi-sanity (${mode}): ${skip}`)
  test(`csi-sanity passes on the built-in driver in mode ${mode}`, { skip, timeout: 300_000 }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hawser-sanity-'))
    const socket = join(directory, 'csi.sock')
    try {
      await using _driver = await spawnLocalDriver(
        { clock: createSystemClock(), log: silentLog },
        { socket, dataDirectory: join(directory, 'data'), nodeId: 'n1', mode },
      )
      const argv = [
        '--csi.endpoint',
        socket,
        '--csi.mountdir',
        join(directory, 'mnt'),
        '--csi.stagingdir',
        join(directory, 'stage'),
        '--ginkgo.no-color',
      ]
      const result = spawnSync(program.path!, argv, { encoding: 'utf8', timeout: 280_000 })
      const summary = /^Ran .*$|^(?:SUCCESS|FAIL)! .*$/gm
      for (const line of result.stdout.match(summary) ?? []) console.log(`# csi-sanity ${mode}: ${line}`)
      const failures = result.stdout.split('\n').filter((line) => line.includes('[FAIL]'))
      assert.equal(result.status, 0, failures.join('\n'))
      assert.doesNotMatch(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(directory), 'nothing stays mounted')
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
}

function findSanity():
  | { readonly path: string; readonly reason?: undefined }
  | { readonly path?: undefined; readonly reason: string } {
  const given = process.env['HAWSER_CSI_SANITY']
  if (given && existsSync(given)) return { path: given }
  const bin = join(homedir(), '.cache', 'hawser', 'bin')
  const path = join(bin, 'csi-sanity')
  if (existsSync(path)) return { path }
  mkdirSync(bin, { recursive: true })
  const module = 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity@v5.6.0'
  const made = spawnSync('go', ['install', module], {
    env: { ...process.env, GOBIN: bin },
    encoding: 'utf8',
    timeout: 240_000,
  })
  if (made.status === 0 && existsSync(path)) return { path }
  return {
    reason: made.error
      ? 'Go is not installed'
      : `go install ${module} failed: ${made.stderr.trim().split('\n').at(-1) ?? ''}`,
  }
}
