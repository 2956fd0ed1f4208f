// Stories of pods that come from manifests: files that are damaged, half written, foreign, edited, removed and put back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContainerScript } from '../../src/node/runtime/model.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createNodeWorld, root } from '../kit/node.ts'
import type { NodeWorldOptions } from '../kit/node.ts'

const manifest = (name: string, command = 'run', more = '') =>
  `kind: Pod\nmetadata: {name: ${name}}\nspec:\n  terminationGracePeriodSeconds: 5\n  containers: [{name: c, image: i, command: [${command}], volumeMounts: [{name: v, mountPath: /v}]}]\n  volumes: [{name: v, emptyDir: {medium: Memory}}]\n${more}`

async function createManifestWorld(options: NodeWorldOptions = {}) {
  const world = await createNodeWorld({ manifestDirectory: '/manifests', ...options })
  const { files } = world.host.quiet
  await files.mkdirAll('/manifests', 0o755, world.signal)
  const write = (name: string, text: string) =>
    files.writeFile(`/manifests/${name}`, text, { mode: 0o644 }, world.signal)
  const running = () =>
    [...world.machine.containers.entries()]
      .filter(([, { exit }]) => !exit)
      .map(([key]) => world.machine.requests.get(key)!)
      .map(({ podName, argv }) => `${podName} ${argv[0]}`)
      .sort()
  const ready = async () =>
    (await world.client.get('Node', { name: 'n1' })).status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return { ...world, files, write, running, ready }
}

test('a directory, a broken link, a pipe and a file that cannot be read among the manifests concern nobody else', async () => {
  const world = await createManifestWorld()
  await world.files.mkdirAll('/manifests/folder', 0o755, world.signal)
  await world.files.symlink('nowhere', '/manifests/link.yaml', world.signal)
  await world.write('a.yaml', manifest('one'))
  await world.write('bad.yaml', manifest('two'))
  const fault = world.host.faults.plant({
    call: 'files.readText',
    below: '/manifests/bad.yaml',
    kind: 'fails',
    code: 'EIO',
  })
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual([world.running(), await world.ready()], [['one-n1 run'], 'True'])
  fault[Symbol.dispose]()
  await world.clock.advance(30_000)
  assert.deepEqual(world.running(), ['one-n1 run', 'two-n1 run'])
  await agent.stop()
})

test('a manifest directory that is not there holds no pods, and the node is ready', async () => {
  const world = await createManifestWorld()
  await world.files.rmdir('/manifests', world.signal)
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  assert.equal(await world.ready(), 'True')
  await world.files.mkdirAll('/manifests', 0o755, world.signal)
  await world.write('a.yaml', manifest('one'))
  await world.clock.advance(30_000)
  assert.deepEqual(world.running(), ['one-n1 run'])
  await agent.stop()
})

test('a manifest that is emptied, damaged or unreadable for a while ends nothing; only its removal does', async () => {
  const world = await createManifestWorld()
  await world.write('a.yaml', manifest('one'))
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  const started = () => [...world.machine.containers.values()].map(({ startedAt, exit }) => [startedAt, exit])
  const before = started()
  for (const text of ['', 'kind: Pod\nmetadata: [', 'kind: Pod\nmetadata: {name: one}\n', manifest('UPPER CASE')]) {
    await world.write('a.yaml', text)
    await world.clock.advance(60_000)
    assert.deepEqual(started(), before, text)
  }
  const fault = world.host.faults.plant({ call: 'files.readText', below: '/manifests', kind: 'fails', code: 'EIO' })
  await world.clock.advance(60_000)
  fault[Symbol.dispose]()
  await world.write('a.yaml', manifest('one'))
  await world.clock.advance(60_000)
  assert.deepEqual(started(), before)
  await world.files.unlink('/manifests/a.yaml', world.signal)
  await world.clock.advance(60_000)
  assert.deepEqual([world.running(), await world.podDirectories()], [[], []])
  await agent.stop()
})

test('a manifest whose names would lead out of the pod’s directory is refused', async () => {
  const world = await createManifestWorld()
  const escape = (text: string) => text.replaceAll('name: v', 'name: ../../../../escape')
  await world.write('volume.yaml', escape(manifest('one')))
  await world.write('uid.yaml', manifest('two').replace('{name: two}', '{name: two, uid: ../../escape}'))
  await world.write('container.yaml', manifest('three').replace('name: c', 'name: ../../escape'))
  await world.write('good.yaml', manifest('four'))
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(world.running(), ['four-n1 run'])
  assert.equal((await world.podDirectories()).length, 1)
  assert.equal(await world.files.exists(`${root}/escape`, world.signal), false)
  await agent.stop()
})

test('an edited pod begins when the old one has ended, never beside it: both may write to the same place', async () => {
  const slow: ContainerScript = { stopsAfterMs: 3_000 }
  const world = await createManifestWorld({ script: () => slow })
  await world.write('a.yaml', manifest('db', 'old'))
  const first = await world.start()
  await world.clock.advance(5_000)
  await world.write('a.yaml', manifest('db', 'new'))
  await world.clock.advance(2_000)
  assert.deepEqual(world.running(), ['db-n1 old'])
  await world.clock.advance(10_000)
  assert.deepEqual(world.running(), ['db-n1 new'])
  // The same while no agent is there to see the edit.
  first.crash()
  await world.write('a.yaml', manifest('db', 'newest'))
  const second = await world.start()
  await world.clock.advance(2_000)
  assert.deepEqual(world.running(), ['db-n1 new'])
  await world.clock.advance(20_000)
  assert.deepEqual(world.running(), ['db-n1 newest'])
  assert.equal((await world.podDirectories()).length, 1)
  await second.agent.stop()
})

test('a manifest with a uid of its own is the same pod after an edit: it runs on as it began, and the log says so', async () => {
  const told: string[] = []
  const log = createLog((level, message, { pod }) => level === 'warn' && told.push(`${message} ${String(pod)}`))
  const world = await createManifestWorld({ log })
  const own = (command: string) => manifest('db', command).replace('{name: db}', '{name: db, uid: mine}')
  await world.write('a.yaml', own('old'))
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  await world.write('a.yaml', own('new'))
  await world.clock.advance(60_000)
  assert.deepEqual([world.running(), told], [['db-n1 old'], ['edited manifest keeps its uid: not taken db-n1']])
  await world.write('a.yaml', own('new').replace('uid: mine', 'uid: another'))
  await world.clock.advance(60_000)
  assert.deepEqual(world.running(), ['db-n1 new'])
  await agent.stop()
})

test('a manifest that is taken away and put back before its pod has gone starts the pod again', async () => {
  const world = await createManifestWorld({ script: () => ({ stopsAfterMs: 3_000 }) })
  await world.write('a.yaml', manifest('one'))
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  await world.files.unlink('/manifests/a.yaml', world.signal)
  await world.clock.advance(1_000)
  await world.write('a.yaml', manifest('one'))
  await world.clock.advance(60_000)
  assert.deepEqual([world.running(), (await world.mounts()).length], [['one-n1 run'], 1])
  await agent.stop()
})

test('manifests that others could have written start nothing, and the log says which and what to do', async () => {
  const lines: string[] = []
  const log = createLog((...line) => void lines.push(JSON.stringify(line)))
  const world = await createManifestWorld({ log })
  await world.write('good.yaml', manifest('good'))
  await world.write('open.yaml', manifest('open'))
  await world.files.chmod('/manifests/open.yaml', 0o666, world.signal)
  await world.files.mkdirAll('/shared', 0o777, world.signal)
  await world.files.writeFile('/shared/x.yaml', manifest('linked'), { mode: 0o644 }, world.signal)
  await world.files.symlink('/shared/x.yaml', '/manifests/link.yaml', world.signal)
  const { agent } = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(world.running(), ['good-n1 run'])
  assert.match(
    lines.join('\n'),
    /open\.yaml belongs to user 0 and has mode 0666; look at what is there, then: chmod go-w \/manifests\/open\.yaml/,
  )
  assert.match(lines.join('\n'), /\/shared belongs to user 0 and has mode 0777/)
  // What runs goes on, and nothing new starts, once the directory is open to others.
  await world.files.chmod('/manifests', 0o777, world.signal)
  await world.write('new.yaml', manifest('new'))
  await world.clock.advance(60_000)
  assert.deepEqual(world.running(), ['good-n1 run'])
  await world.files.chmod('/manifests', 0o755, world.signal)
  await world.clock.advance(60_000)
  assert.deepEqual(world.running(), ['good-n1 run', 'new-n1 run'])
  await agent.stop()
})

test('no pod of a manifest starts before the node knows that it is nobody else, and none if it is', async () => {
  const known = Promise.withResolvers<void>()
  const world = await createManifestWorld({ beforeManifests: known.promise })
  await world.write('a.yaml', manifest('one'))
  const { agent } = await world.start()
  await world.clock.advance(60_000)
  assert.deepEqual(world.running(), [])
  known.resolve()
  await world.clock.advance(5_000)
  assert.deepEqual(world.running(), ['one-n1 run'])
  await agent.stop()
})
