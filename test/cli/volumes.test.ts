// Do volume, run, logs and detach work on a real node? Two nodes of this machine, the built-in driver, real mounts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import type { Answer, Server } from '../kit/command-line.ts'
import { fileIn, isRoot, stable, startServer } from '../kit/command-line.ts'
import { launcher, runProgram } from '../kit/server-process.ts'

const needs = { skip: !isRoot && 'needs root' }
let server: Server
before(async () => {
  if (isRoot) server = await startServer('--node-name', 'one', '--extra-node', 'two', '--store', 'memory')
})
after(() => server?.[Symbol.asyncDispose]())

const ok = ({ code, out, err }: Answer): string => {
  assert.equal(code, 0, out + err)
  return out
}

test('volume create tells that the first pod makes the volume, or makes it now', needs, async () => {
  const later = await server.hawser('volume', 'create', 'data', '--size', '32Mi')
  assert.equal(ok(later), 'persistentvolumeclaim/data created\n')
  assert.match(
    later.err,
    /class hawser-local provisions the volume when the first pod uses the claim\n {2}try: hawser run/,
  )
  const now = stable(ok(await server.hawser('volume', 'create', 'now', '--size', '32Mi', '--node', 'two')))
  assert.equal(now, 'persistentvolumeclaim/now created\npersistentvolumeclaim/now bound to pvc-UID')
  const again = await server.hawser('volume', 'create', 'now', '--size', '32Mi')
  assert.deepEqual([again.code, again.err], [1, 'hawser: persistentvolumeclaims "now" already exists\n'])
})

test('run mounts the claim, prints both streams and hands on the exit code', needs, async () => {
  const script = 'echo kept > /data/file; echo "$GREETING"; echo err >&2; pwd; exit 7'
  const answer = await server.hawser(
    ...['run', '--claim', 'data:/data', '--node', 'one', '--env', 'GREETING=hello', '--workdir', '/data'],
    ...['--', 'sh', '-c', script],
  )
  assert.equal(answer.code, 7, answer.err)
  for (const line of ['hello', 'err', '/data']) assert.ok(answer.out.split('\n').includes(line), answer.out)
  const moved = await server.hawser('run', '--claim', 'data:/data:ro', '--node', 'two', '--', 'cat', '/data/file')
  assert.equal(ok(moved), 'kept\n')
  const readOnly = await server.hawser('run', '--claim', 'data:/data:ro', '--', 'touch', '/data/x')
  assert.equal(readOnly.code, 1)
  assert.equal((await server.hawser('run', '--', '/no/such/program')).code, 127)
  assert.match((await server.hawser('get', 'pods')).err, /nothing found/)
})

test('a signal ends the command with its grace, and nothing stays', needs, async () => {
  const script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
  const child = spawn(launcher, ['run', '--name', 'stopped', '--', 'sh', '-c', script], {
    env: { ...process.env, ...server.env },
  })
  let out = ''
  child.stdout.on('data', (piece: Buffer) => {
    if (!out.includes('ready') && piece.toString().includes('ready')) child.kill('SIGINT')
    out += piece.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  assert.equal(code, 5)
  assert.match(out, /ready\n[\s\S]*bye/)
  assert.equal((await server.hawser('get', 'pod/stopped')).code, 3)
})

test('logs prints, tails and follows to the end', needs, async () => {
  const pod = (name: string, script: string) =>
    `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"none","command":["sh","-c",${JSON.stringify(script)}]}]}}`
  ok(
    await server.hawser(
      'apply',
      '-f',
      fileIn(server.directory, 'p.json', pod('talker', 'for i in 1 2 3; do echo $i; sleep 0.2; done')),
    ),
  )
  await running('talker')
  assert.equal(ok(await server.hawser('logs', 'talker', '--follow')), '1\n2\n3\n')
  assert.equal(ok(await server.hawser('logs', 'pod/talker', '--tail', '1')), '3\n')
  assert.equal(ok(await server.hawser('logs', 'talker', '-c', 'c', '--tail', '2')), '2\n3\n')
  assert.notEqual((await server.hawser('logs', 'talker', '-c', 'nobody')).code, 0)
  ok(await server.hawser('delete', 'pod/talker'))
})

test('volume ls and inspect show what belongs together', needs, async () => {
  const list = stable(ok(await server.hawser('volume', 'ls', '-o', 'wide')))
  assert.match(list, /data Bound 32Mi \S+ RWO hawser-local - \S+ pvc-UID local.hawser.dev Delete -/)
  assert.equal(
    ok(await server.hawser('volume', 'ls', '-o', 'name')),
    'persistentvolumeclaim/data\npersistentvolumeclaim/now\n',
  )
  const text = stable(ok(await server.hawser('volume', 'inspect', 'data')))
  assert.match(text, /^claim default\/data\nstatus Bound\nsize 32Mi\n[\s\S]*reclaim policy Delete/)
})

test('volume export writes an archive, and a mounted volume tells its space and its path', needs, async () => {
  const env = { ...process.env, ...server.env }
  const child = spawn(launcher, ['run', '--claim', 'data:/data', '--', 'sleep', '100'], { env })
  try {
    let text = ''
    for (let tries = 0; tries < 200 && !/on this machine/.test(text); tries++) {
      text = ok(await server.hawser('volume', 'inspect', 'data'))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.match(text, /^on this machine +\/\S+\/pods\/\S+\/volumes\/kubernetes.io~csi\/pvc-\S+\/mount$/m)
    assert.match(text, /^on this machine +\/\S+\/volumes\/\S+$/m)
    assert.match(text, /^used +\d+(\.\d)?[KM]i$/m)
    const script = `'${launcher}' volume export data | tar -xOf - ./file`
    const { stdout, stderr } = await runProgram('bash', ['-o', 'pipefail', '-c', script], { env })
    assert.equal(stdout, 'kept\n', stderr)
  } finally {
    child.kill('SIGTERM')
    await once(child, 'close')
  }
})

test('volume resize grows, and refuses to shrink', needs, async () => {
  const grown = await server.hawser('volume', 'resize', 'data', '64Mi')
  assert.match(ok(grown), /asked for 64Mi/)
  assert.equal((await server.hawser('volume', 'resize', 'data', '1Mi')).code, 2)
  const size = ok(
    await server.hawser('run', '--claim', 'data:/data', '--', 'sh', '-c', 'df -Bm --output=size /data | tail -1'),
  )
  assert.ok(parseInt(size, 10) > 48, size)
})

test('volume resize tells at once that a size is impossible, and takes a smaller one after it', needs, async () => {
  const begun = performance.now()
  const impossible = await server.hawser('volume', 'resize', 'data', '999Ti')
  assert.equal(impossible.code, 4, impossible.out + impossible.err)
  assert.match(impossible.err, /data cannot have 999Ti: .*at most 16Ti/)
  assert.match(impossible.err, /hawser volume resize data SIZE/)
  assert.ok(performance.now() - begun < 60_000, 'it waited for what never comes')
  const back = await server.hawser('volume', 'resize', 'data', '64Mi')
  assert.deepEqual([back.code, /volumes cannot shrink: data has 64Mi/.test(back.err)], [2, true], back.err)
  assert.match(ok(await server.hawser('volume', 'resize', 'data', '66Mi')), /asked for 66Mi/)
  const held = ok(await server.hawser('run', '--claim', 'data:/data', '--', 'sh', '-c', 'cat /data/file'))
  assert.equal(held, 'kept\n')
})

test('volume snapshot and restore bring the data back', needs, async () => {
  assert.match(
    ok(await server.hawser('volume', 'snapshot', 'data', '--as', 'monday')),
    /volumesnapshot\/monday is ready \(66Mi\)/,
  )
  ok(await server.hawser('run', '--claim', 'data:/data', '--', 'rm', '/data/file'))
  const restored = stable(ok(await server.hawser('volume', 'restore', 'monday', '--as', 'again', '--node', 'one')))
  assert.match(restored, /persistentvolumeclaim\/again bound to pvc-UID/)
  assert.equal(ok(await server.hawser('run', '--claim', 'again:/d', '--', 'cat', '/d/file')), 'kept\n')
  const same = await server.hawser('volume', 'snapshot', 'data', '--as', 'monday')
  assert.deepEqual(
    [same.code, same.err],
    [1, 'hawser: volumesnapshots.snapshot.storage.k8s.io "monday" already exists\n'],
  )
})

test('detach refuses what is in use, and by force keeps who and why', needs, async () => {
  const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"holder"},"spec":{"nodeSelector":{"kubernetes.io/hostname":"one"},"containers":[{"name":"c","image":"none","command":["sleep","600"],"volumeMounts":[{"name":"d","mountPath":"/d"}]}],"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]}}`
  ok(await server.hawser('apply', '-f', fileIn(server.directory, 'h.json', pod)))
  await running('holder')
  const refused = await server.hawser('detach', 'pvc/data', 'one')
  assert.equal(refused.code, 4)
  assert.match(refused.err, /pod default\/holder on one uses it\n[\s\S]*not detached: pvc-\S+ may be in use on one/)
  const elsewhere = await server.hawser('detach', 'pvc/data', 'two')
  assert.equal(elsewhere.code, 3)
  assert.match(elsewhere.err, /is not attached to two\n {2}try: it is attached to: one/)
  const unsure = await server.hawser('detach', 'pvc/data', 'one', '--force', '--reason', 'test')
  assert.match(unsure.err, /although pod default\/holder on one uses it[\s\S]*confirmation is needed/)
  ok(await server.hawser('detach', 'pvc/data', 'one', '--force', '--reason', 'cable pulled', '--yes', '--no-wait'))
  const events = ok(await server.hawser('events', '-A'))
  assert.match(
    events,
    /ManualDetach\s+persistentvolume\/pvc-\S+\s+1\s+Forced detach from node one asked by admin \(.*\): cable pulled/,
  )
  ok(await server.hawser('delete', 'pod/holder'))
})

test('volume rm deletes claims with their volumes', needs, async () => {
  ok(await server.hawser('delete', 'volumesnapshot/monday', '--yes'))
  const gone = stable(ok(await server.hawser('volume', 'rm', 'data', 'now', 'again', '--yes')))
  assert.equal(gone.match(/persistentvolume\/pvc-UID deleted/g)?.length, 3)
  assert.match((await server.hawser('get', 'pv,pvc,volumeattachments')).err, /^(nothing found\n){3}$/)
  assert.match((await server.hawser('volume', 'ls')).err, /no volumes; create one/)
})

async function running(pod: string): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (/"phase": "(Running|Succeeded)"/.test(ok(await server.hawser('get', `pod/${pod}`, '-o', 'json')))) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail(`pod ${pod} does not run`)
}
