// Stories of a node in trouble: a full disk, what cannot be stopped, damaged files of an earlier life.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createListeners } from '../../src/loop/listeners.ts'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod, root } from '../kit/node.ts'

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

test('a runtime that calls a stop done and tells of no end is not asked in one breath either', async () => {
  let asked = 0
  const world = await createNodeWorld({
    script: () => ({
      get stopsAfterMs() {
        asked++
        return 0
      },
    }),
  })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  world.machine.listeners = createListeners() // nobody hears of ends any more
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(60_000)
  assert.ok(asked <= 20, `${asked} tries in a minute`)
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

test('a volume whose plugin lost its notes is known from the device record, and undone by its plugin (WART-6)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { files } = world.host.quiet
  world.plugin.traces = {
    make: (target) => files.mkdirAll(target, 0o750, world.signal),
    remove: (target) => files.remove(target, world.signal),
  }
  const first = await world.start()
  await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  assert.deepEqual([world.plugin.mounts.size, world.plugin.devices.size], [1, 1])
  first.crash()
  await world.remove('p')
  world.plugin.forgets = true
  const second = await world.start()
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.mounts.size, world.plugin.devices.size, second.agent.actual.size], [0, 0, 0])
  assert.deepEqual(await world.podDirectories(), [])
  await second.agent.stop()
})

test('a device that could not be written down was not tried: nothing is in doubt, and it comes when there is room', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.clock.advance(100)
  const fault = world.host.faults.plant({ call: 'files.writeFile', below: `${root}/hawser-devices`, ...full })
  await world.create(pod('p', world.volumes))
  await world.clock.advance(5_000)
  assert.deepEqual(
    [...agent.actual.values()].map(({ device }) => device.presence),
    ['absent'],
  )
  assert.deepEqual([world.plugin.count('mountDevice'), await world.phase('p')], [0, 'Pending'])
  const told = (await world.events()).filter((text) =>
    text.startsWith('Warning FailedMount: MountVolume.MountDevice failed'),
  )
  assert.ok(told.some((text) => text.includes('ENOSPC')))
  fault[Symbol.dispose]()
  await world.clock.advance(60_000)
  assert.equal(await world.phase('p'), 'Running')
  await agent.stop()
})

test('an orphan that somebody else has cleaned is no trouble any more', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  await world.clock.advance(100)
  first.crash()
  const { files } = world.host.quiet
  const devices = `${root}/pods/gone/volumeDevices/example.com~unknown`
  await files.mkdirAll(devices, 0o750, world.signal)
  await files.symlink('/dev/null', `${devices}/y`, world.signal)
  const fault = world.host.faults.plant({ call: 'files.unlink', below: devices, kind: 'fails', code: 'EIO' })
  const { agent, metrics } = await world.start()
  await world.clock.advance(10_000)
  fault[Symbol.dispose]()
  await files.unlink(`${devices}/y`, world.signal)
  await world.clock.advance(300_000)
  const errors = async () => /force_cleaned_failed_volume_operation_errors_total (\d+)/.exec(await metrics.text())?.[1]
  const before = await errors()
  await world.clock.advance(600_000)
  assert.deepEqual([await errors(), await world.podDirectories()], [before, []])
  await agent.stop()
})

test('of a pod that went while the agent was away the containers end first, and only then its volumes (KP-9)', async () => {
  const world = await createDiskWorld({ attachable: false, script: () => ({ stopsAfterMs: 20_000 }) })
  const { files } = world.host.quiet
  world.plugin.traces = {
    make: (target) => files.mkdirAll(target, 0o750, world.signal),
    remove: (target) => files.remove(target, world.signal),
  }
  const first = await world.start()
  const uid = await world.create(pod('p', [memory('m'), ...world.volumes], { terminationGracePeriodSeconds: 30 }))
  await world.clock.advance(1_000)
  const orphan = `${root}/pods/${uid}/volumes/example.com~unknown/x`
  await files.mkdirAll(orphan, 0o750, world.signal)
  first.crash()
  await world.remove('p')
  const second = await world.start()
  await world.clock.advance(15_000)
  const isThere = () => files.exists(orphan, world.signal)
  assert.deepEqual([(await world.mounts()).length, world.plugin.mounts.size, await isThere()], [1, 1, true])
  await world.clock.advance(20_000)
  assert.deepEqual([await world.mounts(), world.plugin.mounts.size, world.plugin.devices.size], [[], 0, 0])
  assert.deepEqual([await world.podDirectories(), world.machine.containers.size], [[], 0])
  await second.agent.stop()
})

test('a container is asked with the variables it was started with, although the API server is away', async () => {
  const link = { away: false }
  const asked: string[] = []
  const world = await createNodeWorld({
    script: () => ({ exec: (argv) => (asked.push(argv.join(' ')), 0) }),
    through: (client) => ({
      ...client,
      get: ((...parameters: Parameters<typeof client.get>) =>
        link.away && parameters[0] === 'Secret'
          ? Promise.reject(new Error('the API server is away'))
          : client.get(...parameters)) as typeof client.get,
    }),
  })
  const metadata = { name: 's', namespace: 'default' }
  await world.client.create('Secret', { metadata, data: { k: Buffer.from('v').toString('base64') } })
  const { agent } = await world.start()
  const container = {
    name: 'c',
    image: 'i',
    command: ['run'],
    env: [{ name: 'K', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
    livenessProbe: { exec: { command: ['alive'] }, periodSeconds: 5 },
    lifecycle: { preStop: { exec: { command: ['flush'] } } },
  }
  await world.create(pod('db', [], { containers: [container], terminationGracePeriodSeconds: 10 }))
  await world.clock.advance(1_000)
  link.away = true
  asked.length = 0
  await world.clock.advance(10_000)
  assert.deepEqual(asked, ['alive', 'alive'])
  await world.client.remove('Pod', { namespace: 'default', name: 'db' })
  await world.clock.advance(5_000)
  assert.equal(asked.at(-1), 'flush')
  assert.deepEqual(
    (await world.events()).filter((text) => text.startsWith('Warning')),
    [],
  )
  await agent.stop()
})

test('a mount and an unmount of one volume that both fail back off, each for itself (INV-11, DES-3)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  await world.create(pod('old', world.volumes))
  await world.clock.advance(1_000)
  const fail = () => Array.from({ length: 5_000 }, () => 'untried' as const)
  for (const call of ['mount', 'unmount'] as const) world.plugin.answers.set(call, fail())
  await world.remove('old')
  await world.create(pod('new', world.volumes))
  await world.clock.advance(60_000)
  const tries = (['mount', 'unmount'] as const).map((call) => world.plugin.count(call))
  assert.ok(
    tries.every((count) => count <= 9),
    `${tries} tries in a minute`,
  )
  world.plugin.answers.clear()
  await world.clock.advance(130_000)
  assert.deepEqual([await world.phase('new'), world.plugin.mounts.size], ['Running', 1])
  await agent.stop()
})
