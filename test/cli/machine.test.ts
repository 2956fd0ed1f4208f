// Do the commands that look at this machine work without a server? doctor, driver, backup and restore, sim, bench, up.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { CsiError } from '../../src/csi/codes.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import type { Finding } from '../../src/cli/doctor/finding.ts'
import type { Answer } from '../kit/command-line.ts'
import { hawser, isRoot, spawnHawser, stable, startServer } from '../kit/command-line.ts'
import { launcher } from '../kit/server-process.ts'

let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-machine-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const ok = ({ code, out, err }: Answer): string => {
  assert.equal(code, 0, out + err)
  return out
}

const broken: DriverHandlers = {
  identity: {
    getPluginInfo: async () => ({ name: 'broken driver', vendorVersion: '1' }),
    probe: async () => ({ ready: false }),
    getPluginCapabilities: async () => ({ capabilities: [] }),
  },
  node: { nodeGetInfo: async () => ({ nodeId: '', accessibleTopology: { segments: { zone: 'a' } } }) },
}

function serveDriver(socket: string, handlers: DriverHandlers) {
  return serveOnSocket(socket, csiServices, (method, bytes, stop) => handleUnary(handlers, method, bytes, stop))
}

test('driver check finds what a driver must not do: exit code 4', async () => {
  const socket = join(place, 'broken.sock')
  await using _served = await serveDriver(socket, broken)
  const { code, out } = await hawser(['driver', 'check', socket])
  assert.equal(code, 4)
  for (const problem of [
    /problem +the name "broken driver" is not a domain name/,
    /problem +Probe says it is not ready/,
    /problem +NodeGetInfo returns an empty node_id/,
    /problem +NodeGetInfo returns a topology without VOLUME_ACCESSIBILITY_CONSTRAINTS/,
    /problem +NodeGetCapabilities failed: UNIMPLEMENTED/,
  ])
    assert.match(out, problem)
  const report = JSON.parse((await hawser(['driver', 'check', `unix://${socket}`, '-o', 'json'])).out) as {
    name: string
  }
  assert.equal(report.name, 'broken driver')
})

test('driver check and rpc refuse what is no driver', async () => {
  const missing = await hawser(['driver', 'check', '/nonexistent.sock'])
  assert.deepEqual(
    [missing.code, missing.err],
    [3, 'hawser: there is no socket at /nonexistent.sock\n  try: is the driver running?\n'],
  )
  assert.equal((await hawser(['driver', 'check', '/etc/passwd'])).code, 2)
  const silent = join(place, 'silent.sock')
  const server = createServer((socket) => socket.destroy()).listen(silent)
  await once(server, 'listening')
  assert.equal((await hawser(['driver', 'check', silent])).code, 5)
  server.close()
  const unavailable = join(place, 'unavailable.sock')
  await using _served = await serveOnSocket(unavailable, csiServices, async () => {
    throw new CsiError('UNAVAILABLE', 'the storage is away')
  })
  const answered = await hawser(['driver', 'check', unavailable])
  assert.deepEqual([answered.code, /the storage is away/.test(answered.err)], [4, true], answered.err)
  assert.equal((await hawser(['driver', 'rpc', unavailable, 'Identity/Probe'])).code, 1)
})

test('driver rpc speaks JSON both ways', async () => {
  const socket = join(place, 'broken.sock')
  await using _served = await serveDriver(socket, broken)
  const info = JSON.parse(ok(await hawser(['driver', 'rpc', socket, 'Identity/GetPluginInfo']))) as object
  assert.deepEqual(info, { name: 'broken driver', vendorVersion: '1' })
  assert.deepEqual(JSON.parse(ok(await hawser(['driver', 'rpc', socket, 'probe', '{}']))), { ready: false })
  const refused = await hawser(['driver', 'rpc', socket, 'Controller/ListVolumes'])
  assert.deepEqual(
    [refused.code, stable(refused.err)],
    [1, 'hawser: ListVolumes: UNIMPLEMENTED: ListVolumes is not implemented'],
  )
  const wrong = await hawser(['driver', 'rpc', socket, 'Controller/CreateVolume', '{"nam": "x"}'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.err, /not a request for CreateVolume: .*\n {2}try: its fields: name, capacityRange/)
  assert.match((await hawser(['driver', 'rpc', socket, 'Node/Nothing'])).err, /one of: Node\/NodeStageVolume/)
})

test('the built-in driver serves alone and has no problems', { skip: !isRoot && 'needs root' }, async () => {
  const socket = join(place, 'own.sock')
  const child = spawn(
    launcher,
    ['driver', 'serve', '--socket', socket, '--data', join(place, 'images'), '--capacity', '1Gi'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  await once(child.stdout, 'data')
  const text = ok(await hawser(['driver', 'check', socket]))
  assert.match(
    text,
    /name +local\.hawser\.dev\n[\s\S]*topology +topology\.local\.hawser\.dev\/node=[\s\S]*no problems found/,
  )
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('driver serve says what it lacks, and where it cannot listen', () => {
  const bare = spawnHawser(['driver', 'serve'])
  assert.deepEqual([bare.code, bare.err], [2, 'Expected input for flag --socket\nExpected input for flag --data\n'])
  const size = spawnHawser(['driver', 'serve', '--socket', join(place, 's'), '--data', place, '--capacity', 'big'])
  assert.equal(size.code, 2)
  assert.match(size.err, /"big" is not a size/)
  const nowhere = spawnHawser(['driver', 'serve', '--socket', '/proc/none/s', '--data', join(place, 'images')])
  assert.notEqual(nowhere.code, 0)
  assert.match(nowhere.err, /^hawser: .*\/proc\/none/m)
  assert.doesNotMatch(nowhere.err, /\n {4}at /)
})

const ended = (end: () => void): Disposable => ({ [Symbol.dispose]: end })

test('doctor after a kill -9 tells what stayed and how to go on', { skip: !isRoot && 'needs root' }, async () => {
  await using server = await startServer()
  const pod =
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"left"},"spec":{"containers":[{"name":"c","image":"none","command":["sleep","600"],"volumeMounts":[{"name":"m","mountPath":"/m"}]}],"volumes":[{"name":"m","emptyDir":{"medium":"Memory"}}]}}'
  const file = join(place, 'left.json')
  writeFileSync(file, pod)
  ok(await server.hawser('apply', '-f', file))
  for (let tries = 0; tries < 200; tries++) {
    if (/"phase": "Running"/.test((await server.hawser('get', 'pod/left', '-o', 'json')).out)) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await server.stop('SIGKILL')
  // The container outlives its server, as it should; here nobody comes back for it.
  using _containers = ended(() => {
    for (const file of globSync('containers/**/pid', { cwd: server.directory }))
      process.kill(Number(readFileSync(join(server.directory, file), 'utf8').split(' ')[0]), 'SIGKILL')
  })
  const { out } = await hawser(['doctor', '--data-dir', server.directory], server.env)
  assert.match(out, /warn +server: the server does not answer: [^\n]*\n +→ hawser up/)
  assert.match(out, new RegExp(`1 mounts of pods stay [^\\n]*\\n +→ hawser up --data-dir ${server.directory} `))
  const unreachable = await server.hawser('why', 'pod/left')
  assert.equal(unreachable.code, 5)
  assert.match(unreachable.err, /try: hawser up/)
})

test('doctor names problems and what mends them', async () => {
  const directory = join(place, 'data')
  mkdirSync(directory)
  writeFileSync(join(directory, 'admin.token'), 'secret', { mode: 0o644 })
  const { code, out } = await hawser(['doctor', '--data-dir', directory, '-o', 'json'])
  const findings = JSON.parse(out) as Finding[]
  const secrets = findings.find(({ about }) => about === 'secrets')
  assert.deepEqual(secrets, {
    level: 'problem',
    about: 'secrets',
    text: `others can read ${directory}/admin.token`,
    fix: `chmod 600 ${directory}/admin.token`,
  })
  assert.equal(code, 4)
  for (const { level, fix, text } of findings) if (level === 'problem') assert.ok(fix, text)
  const shown = await hawser(['doctor', '--data-dir', directory])
  assert.match(
    shown.out,
    /problem +secrets: others can read .*\n +→ chmod 600 [\s\S]*\d+ problems, \d+ warnings, \d+ fine\n$/,
  )
})

test('doctor compares with a server that runs', async () => {
  await using server = await startServer('--bare')
  mkdirSync(join(server.directory, 'node/pods/orphan/volumes'), { recursive: true })
  const findings = JSON.parse((await server.hawser('doctor', '-o', 'json')).out) as Finding[]
  assert.match(findings.find(({ about }) => about === 'server')!.text, /answers, 0 pods/)
  assert.match(findings.find(({ about }) => about === 'lock')!.text, /in use by process \d+/)
  assert.match(findings.find(({ about }) => about === 'pod directories')!.text, /node\/pods\/orphan belongs to no pod/)
})

test('a backup is taken from a running and from a stopped server, and brings everything back', async () => {
  const [online, offline, restored] = [join(place, 'on.jsonl'), join(place, 'off.jsonl'), join(place, 'restored')]
  await using server = await startServer('--bare')
  ok(await server.hawser('volume', 'create', 'kept', '--size', '1Gi', '--no-wait'))
  const claim = ok(await server.hawser('get', 'pvc/kept', '-o', 'json'))
  assert.match(ok(await server.hawser('backup', online)), /on\.jsonl: \d+ objects of https:\/\/.* \(server running\)/)
  assert.equal(statSync(online).mode & 0o777, 0o600)
  const twice = await server.hawser('backup', online)
  assert.deepEqual([twice.code, twice.err], [2, `hawser: ${online} exists already\n  try: choose another name\n`])
  assert.match(
    (await server.hawser('restore', online)).err,
    /is in use by process \d+; restore writes only into a new directory\n {2}try: choose [^\n]*--data-dir NEWDIR\n$/,
  )
  await server.stop()
  assert.match(ok(await server.hawser('backup', offline)), /off\.jsonl: \d+ objects of .* \(server stopped\)/)
  assert.match((await server.hawser('restore', offline)).err, /is not empty: nothing is ever overwritten/)
  for (const file of [online, offline]) {
    ok(await hawser(['restore', file, '--data-dir', restored]))
    const child = spawn(launcher, ['up', '--bare', '--data-dir', restored, '--listen', '127.0.0.1:0'], {
      stdio: 'pipe',
    })
    await once(child.stdout, 'data')
    const back = await hawser(['get', 'pvc/kept', '-o', 'json', '--kubeconfig', join(restored, 'kubeconfig')])
    child.kill('SIGTERM')
    await once(child, 'exit')
    const [was, is] = [claim, ok(back)].map((text) => JSON.parse(text) as { metadata: { uid: string }; spec: object })
    assert.equal(is!.metadata.uid, was!.metadata.uid)
    assert.deepEqual(is!.spec, was!.spec)
    rmSync(restored, { recursive: true })
  }
})

test('half a backup is refused', async () => {
  const file = join(place, 'half.jsonl')
  writeFileSync(file, '{"hawserBackup":1,"at":"now","version":"0","from":"api"}\n{"object":{}}\n')
  const directory = join(place, 'never')
  const answer = await hawser(['restore', file, '--data-dir', directory])
  assert.deepEqual([answer.code, answer.err], [2, `hawser: ${file} is damaged or was not written to its end\n`])
  assert.ok(!existsSync(directory) && !existsSync(`${directory}.restoring`))
  writeFileSync(file, 'hello\n')
  assert.match((await hawser(['restore', file, '--data-dir', directory])).err, /is no backup of Hawser/)
  assert.match((await hawser(['restore', '/nonexistent', '--data-dir', directory])).err, /there is no file/)
  assert.match((await hawser(['backup', join(place, 'x'), '--data-dir', directory])).err, /there is no store in/)
})

test('sim is the same for the same seed', async () => {
  const [first, second] = [
    await hawser(['sim', '--seed', '5', '--steps', '20', '-o', 'name']),
    await hawser(['sim', '--seed', '5', '--steps', '20', '-o', 'name']),
  ]
  assert.match(ok(first), /^5 [0-9a-f]{64}\n$/)
  assert.equal(first.out, second.out)
  assert.match(ok(await hawser(['sim', '--seed', 'word', '--steps', '5'])), /^ok seed word: \d+ events in/)
  assert.match(ok(await hawser(['sim', '--seed', '5', '--steps', '5', '--trace'])), /^\d+\.\d{3} /)
  assert.match(ok(await hawser(['sim', '--seed', '5', '--steps', '10', '--cast', 'real'])), /^ok seed 5:/)
  assert.equal((await hawser(['sim', '--steps', '0'])).code, 2)
  assert.match((await hawser(['sim', '--seed', 'word', '--runs', '2'])).err, /--runs needs a number as seed/)
})

test('bench lists what can be measured', () => {
  const { code, err } = spawnHawser(['bench'])
  assert.equal(code, 2)
  assert.match(err, /usage: .*loop/)
})

test('up tells what is in its way', async () => {
  await using server = await startServer('--bare', '--store', 'memory')
  const same = spawnHawser(['up', '--bare', '--data-dir', server.directory])
  assert.deepEqual(
    [same.code, stable(same.err).replaceAll(/\d+/g, 'N')],
    [
      2,
      stable(
        `Hawser N.N.N is starting. Data directory: ${server.directory}\nhawser: the data directory ${server.directory} is in use by process N\n  try: stop it (kill N) or choose another one with --data-dir DIR`,
      ).replaceAll(/\d+/g, 'N'),
    ],
  )
  const port = /https:\/\/127\.0\.0\.1:(\d+)/.exec((await server.hawser('doctor', '-o', 'json')).out)![1]
  const taken = spawnHawser(['up', '--bare', '--data-dir', join(place, 'other'), '--listen', `127.0.0.1:${port}`])
  assert.equal(taken.code, 2)
  assert.match(taken.err, /the address 127\.0\.0\.1:\d+ is in use\n {2}try: choose another one/)
  assert.equal(spawnHawser(['up', '--data-dir', '/proc/x', '--bare']).code, 2)
  assert.match(spawnHawser(['up', '--csi-driver', 'x']).err, /--csi-driver takes NAME=SOCKET/)
  assert.match(spawnHawser(['up', '--image-root', 'x=']).err, /--image-root takes REFERENCE=DIR, not "x="/)
})

test('up without rights says what helps', { skip: !isRoot && 'needs root to become nobody' }, () => {
  const nobody = ['--reuid', '65534', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all', launcher]
  const { status, stderr } = spawnSync('setpriv', [...nobody, 'up', '--data-dir', '/tmp/hawser-never'], {
    env: { ...process.env, NODE_COMPILE_CACHE: '' },
    encoding: 'utf8',
    timeout: 30_000,
  })
  assert.equal(status, 2, stderr)
  assert.match(stderr, /a node must mount filesystems, and this user may not\n {2}try: sudo hawser up; .*--bare/)
  assert.ok(!existsSync('/tmp/hawser-never'))
})

test('colours only where they are wanted', () => {
  const { out } = spawnHawser(['sim', '--steps', '3'], { NO_COLOR: '1' })
  assert.ok(!out.includes('\u001b['))
})
