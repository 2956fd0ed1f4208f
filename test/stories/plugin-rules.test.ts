// What do plugins and containers see of each other on a whole node? Layout, read-only mounts, sub-paths, local devices.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPod } from '../kit/node-with-disk.ts'
import { createNodeWorld, pod, root } from '../kit/node.ts'

type World = Awaited<ReturnType<typeof createNodeWorld>>

/** A claim bound to a local volume of this node. */
async function localClaim(world: World, path: string, more: object = {}): Promise<void> {
  const spec = {
    accessModes: ['ReadWriteOnce' as const],
    resources: { requests: { storage: '1Gi' } },
    volumeName: 'pv',
  }
  const made = await world.client.create('PersistentVolumeClaim', {
    metadata: { namespace: 'default', name: 'c' },
    spec: { ...spec, storageClassName: '' },
  })
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'Exists' as const }] }]
  await world.client.create('PersistentVolume', {
    metadata: { name: 'pv' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: terms } },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: made.metadata.uid ?? '' },
      ...more,
    },
  })
  await world.client.patch(
    'PersistentVolumeClaim',
    { namespace: 'default', name: 'c' },
    { type: 'merge', body: { status: { phase: 'Bound', capacity: { storage: '1Gi' } } } },
    { subresource: 'status' },
  )
}
const claimed = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]

test('the node’s directories are there from the start, private to it, and its root is shared (LAYOUT-8, MOUNT-24)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  for (const name of ['', '/pods', '/plugins', '/plugins_registry', '/pod-resources'])
    assert.equal((await world.host.quiet.files.stat(`${root}${name}`, world.signal)).mode, 0o750, name)
  assert.equal((await world.host.quiet.mounts.info(root, world.signal)).propagation, 'shared')
  await agent.stop()
})

test('a container’s mount is read-only if it says so or if the volume is (PLUG-13, PLUG-14)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.client.create('ConfigMap', { metadata: { namespace: 'default', name: 'o' }, data: { k: 'v' } })
  const volumes = [
    { name: 'e', emptyDir: {} },
    { name: 'c', configMap: { name: 'o' } },
    { name: 'd', downwardAPI: { items: [] } },
    { name: 'h', hostPath: { path: '/tmp' } },
  ]
  const volumeMounts = [
    { name: 'e', mountPath: '/rw' },
    { name: 'e', mountPath: '/ro', readOnly: true },
    { name: 'c', mountPath: '/c' },
    { name: 'd', mountPath: '/d' },
    { name: 'h', mountPath: '/h' },
  ]
  await world.create(pod('p', volumes, { containers: [{ name: 'c', image: 'i', command: ['run'], volumeMounts }] }))
  await world.clock.advance(1_000)
  const [request] = world.machine.requests.values()
  assert.deepEqual(
    request?.mounts.map(({ target, readOnly }) => [target, readOnly]),
    [
      ['/rw', false],
      ['/ro', true],
      ['/c', true],
      ['/d', true],
      ['/h', false],
    ],
  )
  await agent.stop()
})

test('a sub-path has a mount of its own, named by container and place, that never changes (SUBPATH-3, SUBPATH-7, CONF-13)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const { files } = world.host.quiet
  const ref = { namespace: 'default', name: 'o' }
  await world.client.create('ConfigMap', { metadata: ref, data: { k: 'one' } })
  const volumes = [
    { name: 'e', emptyDir: {} },
    { name: 'm', configMap: { name: 'o' } },
  ]
  const volumeMounts = [
    { name: 'm', mountPath: '/whole' },
    { name: 'm', mountPath: '/file', subPath: 'k' },
    { name: 'e', mountPath: '/made', subPath: 'a/b' },
  ]
  const uid = await world.create(
    pod('p', volumes, { containers: [{ name: 'c', image: 'i', command: ['run'], volumeMounts }] }),
  )
  await world.clock.advance(1_000)
  const base = `${root}/pods/${uid}`
  const [request] = world.machine.requests.values()
  assert.deepEqual(
    request?.mounts.map(({ source }) => source),
    [`${base}/volumes/kubernetes.io~configmap/m`, `${base}/volume-subpaths/m/c/1`, `${base}/volume-subpaths/e/c/2`],
  )
  assert.equal((await files.stat(`${base}/volumes/kubernetes.io~empty-dir/e/a/b`, world.signal)).mode, 0o777)
  for (const path of ['volume-subpaths', 'volume-subpaths/m', 'volume-subpaths/m/c'])
    assert.equal((await files.stat(`${base}/${path}`, world.signal)).mode, 0o750)
  await world.client.patch('ConfigMap', ref, { type: 'merge', body: { data: { k: 'two' } } })
  await world.clock.advance(1_000)
  assert.deepEqual(
    [
      await files.readText(`${base}/volumes/kubernetes.io~configmap/m/k`, world.signal),
      await files.readText(`${base}/volume-subpaths/m/c/1`, world.signal),
    ],
    ['two', 'one'],
  )
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(3_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], []])
  await agent.stop()
})

test('a local device for two pods; the first to go takes only what is its own (BLOCK-1, BLOCK-2, BLOCK-4, BLOCK-6, BLOCK-9, TP-22)', async () => {
  const world = await createNodeWorld()
  world.host.addDisk('/dev/sdx')
  await world.host.quiet.files.symlink('sdx', '/dev/by-name', world.signal)
  await localClaim(world, '/dev/by-name', { volumeMode: 'Block' })
  const { agent } = await world.start()
  const first = await world.create(blockPod('p', claimed))
  const second = await world.create(blockPod('q', claimed))
  await world.clock.advance(2_000)
  const { files } = world.host.quiet
  const map = `${root}/plugins/kubernetes.io~local-volume/volumeDevices/pv`
  const link = (uid: string) => `${root}/pods/${uid}/volumeDevices/kubernetes.io~local-volume/pv`
  assert.deepEqual((await files.readDir(map, world.signal)).sort(), [first, second].sort())
  assert.deepEqual(
    [
      await files.readlink(link(first), world.signal),
      (await files.lstat(`${map}/${first}`, world.signal)).kind,
      (await files.stat(map, world.signal)).mode,
      world.host.loops().length,
    ],
    ['/dev/sdx', 'blockDevice', 0o750, 2],
  )
  assert.deepEqual(
    [...world.machine.requests.values()].map(({ devices }) => devices.map(({ target }) => target)),
    [['/dev/v'], ['/dev/v']],
  )
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(3_000)
  assert.deepEqual(await files.readDir(map, world.signal), [second])
  assert.deepEqual([world.host.loops().length, await files.readlink(link(second), world.signal)], [1, '/dev/sdx'])
  await world.client.remove('Pod', { namespace: 'default', name: 'q' })
  await world.clock.advance(3_000)
  assert.equal(await files.exists(map, world.signal), false)
  assert.deepEqual([world.host.loops().length, agent.actual.size, await world.podDirectories()], [0, 0, []])
  await agent.stop()
})

test('a local device that is not there is told by its path, and nothing is mapped (BLOCK-3, MAP-7)', async () => {
  const world = await createNodeWorld()
  await localClaim(world, '/dev/none', { volumeMode: 'Block' })
  const { agent } = await world.start()
  await world.create(blockPod('p', claimed))
  await world.clock.advance(2_000)
  const told = (await world.events()).filter((text) => text.startsWith('Warning FailedMapVolume'))
  assert.match(told[0] ?? '', /MapVolume\.EvalHostSymlinks failed for volume "pv" : .*\/dev\/none/)
  assert.equal(world.host.loops().length, 0)
  await agent.stop()
})

test('another filesystem than asked for is told on the pod and on the volume (PLUG-25, FMT-5)', async () => {
  const world = await createNodeWorld()
  world.host.addDisk('/dev/sdx')
  await world.host.quiet.filesystems.make({ device: '/dev/sdx', type: 'xfs' }, world.signal)
  await localClaim(world, '/dev/sdx', { local: { path: '/dev/sdx', fsType: 'ext4' } })
  const { agent } = await world.start()
  await world.create(pod('p', claimed))
  await world.clock.advance(2_000)
  const global = `${root}/plugins/kubernetes.io/local-volume/mounts/pv`
  const mount = `mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t ext4 -o defaults /dev/sdx ${global}\n`
  const words = `local: failed to mount device /dev/sdx at ${global} (fstype: ext4), error ${mount}`
  const events = await world.events()
  for (const begin of [
    `Warning FailedMount: MountVolume.MountDevice failed for volume "pv" : ${words}`,
    `Warning FailedMountOnFilesystemMismatch: MountVolume failed for volume "pv" ${words}`,
  ])
    assert.ok(
      events.some((text) => text.startsWith(begin)),
      events.join('\n'),
    )
  assert.equal(await world.host.quiet.files.exists(global, world.signal), false)
  await agent.stop()
})

test('a start does not look into what lies on a dead mount; the volume is known all the same (LAYOUT-10)', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  const uid = await world.create(pod('p', [{ name: 'e', emptyDir: { medium: 'Memory' } }]))
  await world.clock.advance(1_000)
  first.crash()
  const below = `${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/e`
  const hangs = [
    'files.stat',
    'files.lstat',
    'files.exists',
    'files.readDir',
    'mounts.isMountPoint',
    'mounts.info',
  ].map((call) => world.host.faults.plant({ call, below, kind: 'hangs' }))
  const second = await world.start()
  assert.deepEqual([...second.agent.actual.keys()], [`kubernetes.io/empty-dir/${uid}-e`])
  for (const fault of hangs) fault[Symbol.dispose]()
  await second.agent.stop()
})

test('a file where volumes were is never deleted; it stays until somebody looks (LAYOUT-11)', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  const uid = await world.create(pod('p', [{ name: 'e', emptyDir: {} }]))
  await world.clock.advance(1_000)
  const stray = `${root}/pods/${uid}/volumes/acme~unknown`
  await world.host.quiet.files.mkdirAll(stray, 0o750, world.signal)
  await world.host.quiet.files.writeFile(`${stray}/data`, 'precious', { mode: 0o600 }, world.signal)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(30_000)
  assert.equal(await world.host.quiet.files.readText(`${stray}/data`, world.signal), 'precious')
  await first.agent.stop()
})
