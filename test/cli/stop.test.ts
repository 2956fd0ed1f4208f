// Does `hawser stop` end what runs here, and nothing else? Server and nodes of one data directory; pods only when asked.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loopsBelow, until } from '../kit/machine.ts'
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

test(
  'stop --pods waits until the volumes of the pods are unstaged, too',
  { skip: !isRoot && 'needs root', timeout: 90_000 },
  async () => {
    await using server = await startServer('--node-name', 'one')
    for (const [name, mode] of [
      ['fs', 'Filesystem'],
      ['raw', 'Block'],
    ] as const) {
      const spec = { accessModes: ['ReadWriteOnce'], volumeMode: mode, resources: { requests: { storage: '32Mi' } } }
      const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec }
      await server.hawser('apply', '-f', fileIn(server.directory, `${name}.json`, JSON.stringify(claim)))
    }
    const pod =
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"none","command":["sleep","600"],"volumeMounts":[{"name":"fs","mountPath":"/fs"}],"volumeDevices":[{"name":"raw","devicePath":"/dev/raw"}]}],"volumes":[{"name":"fs","persistentVolumeClaim":{"claimName":"fs"}},{"name":"raw","persistentVolumeClaim":{"claimName":"raw"}}]}}'
    assert.equal((await server.hawser('apply', '-f', fileIn(server.directory, 'p.json', pod))).code, 0)
    await until('the pod runs', async () => /Running/.test((await server.hawser('get', 'pods')).out), 60_000)
    assert.equal(loopsBelow(server.directory).length, 3)
    const { code, err } = await server.hawser('stop', '--pods', '--yes')
    assert.equal(code, 0, err)
    assert.deepEqual(loopsBelow(server.directory), [])
    assert.deepEqual(readdirSync(join(server.directory, 'node/hawser-devices')), [])
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
