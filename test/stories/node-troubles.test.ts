// Stories of a node in trouble: a full disk, what cannot be stopped, damaged files of an earlier life.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeWorld, memory, pod, root } from './node-world.ts'

const full = { kind: 'fails', code: 'ENOSPC' } as const

test('on a full disk a restarted node still lets go of what nobody wants, and a pod without room is told', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  const old = await world.create(pod('old', [memory('m')]))
  await world.clock.advance(1_000)
  first.crash()
  // While the agent is away one pod goes and another one comes; there is no room for a new directory.
  await world.client.remove('Pod', { namespace: 'default', name: 'old' }, { gracePeriodSeconds: 0 })
  await world.create(pod('new', [memory('m')]))
  const fault = world.host.faults.plant({ call: 'files.mkdirEach', below: `${root}/pods`, ...full })
  const second = await world.start()
  await world.clock.advance(10_000)
  const left = (await world.podDirectories()).filter((uid) => uid === old)
  assert.deepEqual(left, [], 'what nobody wants makes room')
  const told = (await world.events()).filter((text) => text.includes('ENOSPC'))
  assert.deepEqual(
    told.map((text) => text.split(':').slice(0, 2).join(':')),
    ['Warning Failed: error making pod data directories'],
  )
  fault[Symbol.dispose]()
  await world.clock.advance(60_000)
  assert.equal(await world.phase('new'), 'Running')
  await second.agent.stop()
})

test('containers that cannot be stopped are tried again with a pause, not in one breath', async () => {
  const trouble = { tries: 0, now: true }
  const world = await createNodeWorld({
    script: () => ({
      get stopError() {
        if (!trouble.now) return undefined
        trouble.tries++
        return 'no space left on device'
      },
    }),
  })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(60_000)
  assert.ok(trouble.tries >= 3 && trouble.tries <= 20, `${trouble.tries} tries in a minute`)
  assert.ok((await world.events()).includes('Warning FailedKillPod: error killing pod: no space left on device'))
  assert.equal((await world.mounts()).length, 1, 'its volume stays')
  trouble.now = false
  await world.clock.advance(60_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  await agent.stop()
})

test('device records that make no sense keep neither the node down nor the others from being read', async () => {
  const world = await createNodeWorld()
  const { files } = world.host.quiet
  await files.mkdirAll(`${root}/hawser-devices`, 0o750, world.signal)
  const damaged = [
    '',
    'null',
    '[]',
    '{}',
    '{"volume":"v","plugin":"kubernetes.io/csi","path":"/x"}',
    '"text"',
    '\0\0\0',
  ]
  for (const [index, text] of damaged.entries())
    await files.writeFile(`${root}/hawser-devices/${index}.json`, text, { mode: 0o600 }, world.signal)
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  assert.equal(await world.phase('p'), 'Running')
  assert.equal(agent.actual.size, 1)
  await agent.stop()
})

test('foreign things among the pods keep the node neither down nor busy, and are left alone', async () => {
  const world = await createNodeWorld()
  const { files } = world.host.quiet
  await files.mkdirAll(`${root}/pods/lost+found`, 0o700, world.signal)
  await files.writeFile(`${root}/pods/notes.txt`, 'mine', { mode: 0o600 }, world.signal)
  await files.mkdirAll(`${root}/pods/broken`, 0o700, world.signal)
  await files.writeFile(`${root}/pods/broken/volumes`, 'mine', { mode: 0o600 }, world.signal)
  world.host.faults.plant({
    call: 'files.readDir',
    below: `${root}/pods/lost+found/volumes`,
    kind: 'fails',
    code: 'EIO',
  })
  const { agent } = await world.start()
  const uid = await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  assert.equal(await world.phase('p'), 'Running')
  await world.clock.advance(60_000)
  const found = (await world.podDirectories()).filter((name) => name !== uid).sort()
  assert.deepEqual(found, ['broken', 'lost+found', 'notes.txt'])
  assert.equal(await files.readText(`${root}/pods/broken/volumes`, world.signal), 'mine')
  await agent.stop()
})
