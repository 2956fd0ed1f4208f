// What does an agent make of the disk an earlier life left behind? RCS-1 … RCS-10, RCO-1: nothing is undone and nothing is
// reported before it is understood, and what cannot be understood is cleaned, not kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import type { KindName } from '../../src/api/kinds.ts'
import type { PodUid } from '../../src/api/names.ts'
import { globalMap } from '../kit/device-plugin.ts'
import { blockPod, createDiskWorld, disk } from '../kit/node-with-disk.ts'
import type { DiskWorldOptions } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod, root } from '../kit/node.ts'

/** Objects of this kind cannot be read while `away`. */
function without(hidden: 'Node' | 'PersistentVolumeClaim') {
  const link = { away: false }
  const through = (client: Client): Client => ({
    ...client,
    get: ((kind: KindName, ...rest: [{ name: string }, AbortSignal]) =>
      link.away && kind === hidden
        ? Promise.reject(new Error('the API server is away'))
        : client.get(kind, ...rest)) as Client['get'],
  })
  return { link, through }
}

async function createRestartWorld(options: DiskWorldOptions = {}) {
  const world = await createDiskWorld(options)
  const file = (path: string) => `${root}/pods/${path}`
  const leave = (path: string) => world.host.quiet.files.mkdirAll(file(path), 0o750, world.signal)
  const metric = (text: string, name: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1] ?? 0,
    )
  return { ...world, leave, metric, file }
}

test('two pods’ directories of one volume are one record of doubt (RCS-1, RCS-3, RCS-5, RCS-6, RCO-1)', async () => {
  const { link, through } = without('Node')
  const world = await createRestartWorld({ through })
  link.away = true
  for (const uid of ['u1', 'u2']) await world.leave(`${uid}/volumes/example.com~device/pv`)
  await world.leave('u1/volumes/not-a-plugin/x')
  await world.leave('u1/etc-hosts')
  const { agent, metrics } = await world.start()
  await world.clock.advance(1_000)
  const item = agent.actual.get(disk)
  assert.deepEqual(
    [...(item?.pods.values() ?? [])].map(({ pod: uid, presence, foundOnDisk }) => [uid, presence, foundOnDisk]),
    [
      ['u1', 'uncertain', true],
      ['u2', 'uncertain', true],
    ],
  )
  assert.deepEqual(item?.device, { presence: 'uncertain', path: '/global/pv', foundOnDisk: true })
  assert.deepEqual([item?.attachable, item?.devicePath, item?.spec.name], ['unknown', '', 'pv'])
  assert.equal(agent.actual.size, 1)
  const text = await metrics.text()
  assert.deepEqual(
    [
      world.metric(text, 'reconstruct_volume_operations_total'),
      world.metric(text, 'reconstruct_volume_operations_errors_total'),
    ],
    [2, 0],
  )
  await agent.stop()
})

test('a block volume is found by its link, with its global map (RCS-3, RCO-1)', async () => {
  const { link, through } = without('Node')
  const world = await createRestartWorld({ through, block: 'custom', volume: { volumeMode: 'Block' } })
  link.away = true
  await world.leave('u1/volumeDevices/example.com~device')
  await world.host.quiet.files.symlink('/dev/disk', world.file('u1/volumeDevices/example.com~device/pv'), world.signal)
  const { agent } = await world.start()
  await world.clock.advance(1_000)
  const item = agent.actual.get(disk)
  assert.deepEqual([item?.spec.mode, item?.device.path, item?.device.presence], ['Block', globalMap('pv'), 'uncertain'])
  await agent.stop()
})

test('until the Node was read nothing is undone and volumesInUse stands as the earlier life left it (RCS-7, RCS-9, REC-1, INV-8)', async () => {
  const { link, through } = without('Node')
  const world = await createRestartWorld({ through })
  const first = await world.start()
  await world.clock.advance(100)
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(100)
  await world.attach()
  await world.clock.advance(1_000)
  await world.leave(`${uid}/volumes/example.com~device/pv`)
  first.crash()
  await world.remove('p')
  link.away = true
  const second = await world.start()
  await world.clock.advance(30_000)
  assert.deepEqual([world.plugin.count('unmount'), await world.inUse()], [0, [disk]])
  assert.equal(second.agent.actual.get(disk)?.devicePathUnread, true)
  link.away = false
  await world.clock.advance(30_000)
  assert.deepEqual(
    [world.plugin.count('unmount'), world.plugin.count('unmountDevice'), second.agent.actual.size, await world.inUse()],
    [1, 1, 0, []],
  )
  await second.agent.stop()
})

test('what volumesAttached lists is attachable and has its device; what it does not list is not (RCS-7, TA-57)', async () => {
  for (const [listed, attachable, devicePath] of [
    [true, 'yes', '/dev/disk'],
    [false, 'no', ''],
  ] as const) {
    const world = await createRestartWorld()
    const first = await world.start()
    await world.clock.advance(100)
    if (listed) await world.attach()
    first.crash()
    await world.leave('gone/volumes/example.com~device/pv')
    world.plugin.answers.set('unmount', ['none', 'none', 'none', 'none', 'none', 'none'])
    const second = await world.start()
    await world.clock.advance(1_000)
    const item = second.agent.actual.get(disk)
    assert.deepEqual([item?.attachable, item?.devicePath], [attachable, devicePath])
    assert.deepEqual(await world.inUse(), [disk], 'it is mounted, and a Node made anew lists nothing (INV-1)')
    await second.agent.stop()
  }
})

test('one directory that cannot be read keeps neither the node down nor the others from being found (RCS-1)', async () => {
  const world = await createRestartWorld()
  const first = await world.start()
  const uid = await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  first.crash()
  await world.leave('bad/volumes/example.com~device/pv')
  const below = world.file('bad/volumes/example.com~device')
  using _fault = world.host.faults.plant({ call: 'files.readDir', below, kind: 'fails', code: 'EIO' })
  const second = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(
    [...second.agent.actual.values()].map(({ pods }) => [...pods.values()].map((each) => [each.pod, each.presence])),
    [[[uid, 'present']]],
  )
  await second.agent.stop()
})

test('what no plugin explains is counted and cleaned, unless its pod wants it (RCS-4, RCS-8, TA-54, TA-55, MEA-9, MEA-10)', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  await world.clock.advance(100)
  first.crash()
  const orphan = `${root}/pods/gone/volumes/example.com~unknown/x`
  await world.host.quiet.files.mkdirAll(orphan, 0o750, world.signal)
  await world.host.quiet.mounts.mount({ source: 'tmpfs', target: orphan, type: 'tmpfs', options: [] }, world.signal)
  const { agent, metrics } = await world.start()
  await world.clock.advance(5_000)
  const count = async (name: string) =>
    Number(
      (await metrics.text())
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1] ?? 0,
    )
  assert.deepEqual(
    [
      await count('reconstruct_volume_operations_total'),
      await count('reconstruct_volume_operations_errors_total'),
      await count('force_cleaned_failed_volume_operations_total'),
    ],
    [1, 1, 1],
  )
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  await agent.stop()
})

test('a pod on its way out whose containers still run keeps its volume until they have stopped (RCS-2, KP-1, KP-2)', async () => {
  const world = await createNodeWorld({ script: () => ({ stopsAfterMs: 5_000 }) })
  const first = await world.start()
  const uid = await world.create(pod('p', [memory('m')], { terminationGracePeriodSeconds: 30 }))
  await world.clock.advance(1_000)
  first.crash()
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  const second = await world.start()
  await world.clock.advance(3_000)
  assert.deepEqual(await world.mounts(), [`${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/m`])
  await world.clock.advance(10_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  await second.agent.stop()
})

test('wanted again after a restart, a block volume is mapped again and its doubt is gone (RCS-10)', async () => {
  const world = await createRestartWorld({ block: 'plain', attachable: false, volume: { volumeMode: 'Block' } })
  world.host.addDisk('/dev/disk')
  const first = await world.start()
  const uid = (await world.create(blockPod('p', world.volumes))) as PodUid
  await world.clock.advance(1_000)
  first.crash()
  const second = await world.start()
  await world.clock.advance(2_000)
  const record = second.agent.actual.get(disk)?.pods.get(uid)
  assert.deepEqual([record?.presence, record?.foundOnDisk, await world.phase('p')], ['present', false, 'Running'])
  await world.remove('p')
  await world.clock.advance(5_000)
  assert.deepEqual([second.agent.actual.size, world.host.loops().length, await world.podDirectories()], [0, 0, []])
  await second.agent.stop()
})

test('which pods’ volumes are wanted: at a start all that may still run, later only those that are to run (TA-49, KP-2)', async () => {
  const world = await createNodeWorld({ script: () => ({ stopsAfterMs: 20_000 }) })
  const first = await world.start()
  const grace = { terminationGracePeriodSeconds: 60 }
  const uids = new Map<string, PodUid>()
  for (const name of ['normal', 'terminating', 'removable'])
    uids.set(name, await world.create(pod(name, [memory('m')], grace)))
  await world.clock.advance(1_000)
  first.crash()
  for (const name of ['terminating', 'removable']) await world.client.remove('Pod', { namespace: 'default', name })
  const removable = uids.get('removable')!
  for (const [key, record] of world.machine.containers) {
    if (record.pod !== removable) continue
    const exit = { at: world.clock.now(), code: 0, reason: 'Completed' }
    world.machine.containers.set(key, { ...record, exit })
  }
  const second = await world.start()
  await world.clock.advance(2_000)
  const wanted = () => new Set([...second.agent.desired.values()].flatMap(({ pods }) => [...pods.keys()]))
  assert.deepEqual(wanted(), new Set([uids.get('normal'), uids.get('terminating')]))
  await world.clock.advance(60_000)
  assert.deepEqual([wanted(), (await world.mounts()).length], [new Set([uids.get('normal')]), 1])
  await second.agent.stop()
})

test('volumes stay while containers run, even without an API object, and go with them, in doubt or not (TA-51, KP-9)', async () => {
  const world = await createNodeWorld({ script: () => ({ stopsAfterMs: 20_000 }) })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')], { terminationGracePeriodSeconds: 60 }))
  await world.clock.advance(1_000)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(10_000)
  assert.deepEqual([agent.desired.size, (await world.mounts()).length], [1, 1])
  const fault = world.host.faults.plant({ call: 'mounts.unmount', kind: 'fails', code: 'EBUSY' })
  await world.clock.advance(15_000)
  assert.deepEqual([agent.desired.size, (await world.mounts()).length], [0, 1])
  fault[Symbol.dispose]()
  await world.clock.advance(120_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories(), agent.actual.size], [[], [], 0])
  await agent.stop()
})

test('an orphan that cannot be cleaned is tried again, and a block orphan loses its link alone (WA-13)', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  await world.clock.advance(100)
  first.crash()
  const { files, mounts } = world.host.quiet
  const orphan = `${root}/pods/gone/volumes/example.com~unknown/x`
  const devices = `${root}/pods/gone/volumeDevices/example.com~unknown`
  await files.mkdirAll(orphan, 0o750, world.signal)
  await files.mkdirAll(devices, 0o750, world.signal)
  await files.symlink('/dev/null', `${devices}/y`, world.signal)
  await mounts.mount({ source: 'tmpfs', target: orphan, type: 'tmpfs', options: [] }, world.signal)
  const fault = world.host.faults.plant({ call: 'mounts.unmount', below: orphan, kind: 'fails', code: 'EBUSY' })
  const { agent, metrics } = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(await world.mounts(), [orphan])
  fault[Symbol.dispose]()
  await world.clock.advance(200_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  assert.match(await metrics.text(), /force_cleaned_failed_volume_operation_errors_total [1-9]/)
  await agent.stop()
})

test('an orphan of a running pod whose claims are not resolved yet is not touched (DES-9, WA-8)', async () => {
  const { through, link } = without('PersistentVolumeClaim')
  const world = await createRestartWorld({ attachable: false, through })
  const first = await world.start()
  const uid = await world.create(pod('p', [...world.volumes, memory('m')]))
  await world.clock.advance(1_000)
  const orphan = world.file(`${uid}/volumes/example.com~unknown/pv`)
  await world.leave(`${uid}/volumes/example.com~unknown/pv`)
  first.crash()
  link.away = true
  const second = await world.start()
  await world.clock.advance(20_000)
  const isThere = () => world.host.quiet.files.exists(orphan, world.signal)
  assert.equal(await isThere(), true)
  link.away = false
  await world.clock.advance(20_000)
  assert.equal(await isThere(), true, 'its pod wants a volume of that name')
  await world.remove('p')
  await world.clock.advance(60_000)
  assert.deepEqual([await isThere(), second.agent.actual.size], [false, 0])
  await second.agent.stop()
})

test('a device left by an earlier life goes although some pod waits for a claim that never comes (DES-9)', async () => {
  const world = await createRestartWorld()
  const first = await world.start()
  await world.clock.advance(100)
  await world.create(pod('stuck', [{ name: 'v', persistentVolumeClaim: { claimName: 'never' } }]))
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(100)
  await world.attach()
  await world.clock.advance(1_000)
  await world.leave(`${uid}/volumes/example.com~device/pv`)
  first.crash()
  await world.remove('p')
  const second = await world.start()
  await world.clock.advance(10_000)
  assert.deepEqual([world.plugin.devices.size, await world.inUse(), second.agent.actual.size], [0, [], 0])
  await second.agent.stop()
})

test('parts of a host path, known to no record after a restart, go with their pod (LAYOUT-11, SUBPATH-10, HOST-2)', async () => {
  const ways = [
    { subPath: 'folder', reboot: false, options: {} },
    { subPath: 'folder', reboot: false, options: { gracePeriodSeconds: 0 } },
    { subPath: 'file', reboot: true, options: {} },
  ]
  for (const { subPath, reboot, options } of ways) {
    const world = await createNodeWorld()
    const { files, mounts } = world.host.quiet
    await files.mkdirAll('/data/folder', 0o755, world.signal)
    await files.writeFile('/data/file', 'precious', { mode: 0o644 }, world.signal)
    const first = await world.start()
    const volumeMounts = [{ name: 'h', mountPath: '/h', subPath }]
    const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts }]
    const uid = await world.create(pod('p', [{ name: 'h', hostPath: { path: '/data' } }], { containers }))
    await world.clock.advance(1_000)
    assert.deepEqual(await world.mounts(), [`${root}/pods/${uid}/volume-subpaths/h/c/0`])
    first.crash()
    if (reboot) for (const path of await world.mounts()) await mounts.unmount(path, {}, world.signal)
    await world.client.remove('Pod', { namespace: 'default', name: 'p' }, options)
    const { agent } = await world.start()
    await world.clock.advance(60_000)
    const { items } = await world.client.list('Pod', {})
    assert.deepEqual([items, await world.mounts(), await world.podDirectories()], [[], [], []], subPath)
    assert.equal(await files.readText('/data/file', world.signal), 'precious')
    await agent.stop()
  }
})
