// Does `hawser stop` end what runs here, and nothing else? Server and nodes of one data directory; pods only when asked.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileIn, hawser, isRoot, startServer } from '../kit/command-line.ts'

test(
  'stop ends the server, and with --pods its pods first',
  { skip: !isRoot && 'needs root', timeout: 60_000 },
  async () => {
    await using server = await startServer('--node-name', 'one')
    const pod =
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"none","command":["sh","-c","trap exit TERM; while :; do sleep 0.1; done"]}]}}'
    assert.equal((await server.hawser('apply', '-f', fileIn(server.directory, 'p.json', pod))).code, 0)
    for (let tries = 0; tries < 200; tries++) {
      if (/Running/.test((await server.hawser('get', 'pods')).out)) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const unsure = await server.hawser('stop', '--pods')
    assert.deepEqual([unsure.code, unsure.err.includes('delete pod default/p')], [2, true], unsure.err)
    const { code, out, err } = await server.hawser('stop', '--pods', '--yes')
    assert.equal(code, 0, err)
    assert.equal(out, `pod/p deleted\nnothing uses ${server.directory} any more\n`)
    assert.equal((await server.hawser('get', 'pods')).code, 5)
    assert.doesNotMatch(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(`${server.directory}.*/pods/`))
  },
)

test('stop says that nothing runs: exit code 3', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-stop-'))
  try {
    const { code, err } = await hawser(['stop', '--data-dir', directory])
    assert.deepEqual([code, /no server and no agent uses/.test(err)], [3, true], err)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
