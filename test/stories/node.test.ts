// Stories of one node: pods come, run, go; agents die and come back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import { createNodeWorld, memory, nodeName, pod, root } from '../kit/node.ts'
import { assertWhy } from '../kit/assert-why.ts'

test('a pod gets its volumes, runs, and leaves nothing behind when it is deleted', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const uid = await world.create(pod('p', [memory('m'), { name: 'e', emptyDir: {} }]))
  await world.clock.advance(1_000)
  assert.deepEqual(await world.mounts(), [`${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/m`])
  assert.equal(await world.phase('p'), 'Running')
  assert.deepEqual(
    [...world.machine.requests.values()].map(({ mounts }) => mounts.map(({ target }) => target)),
    [['/mnt/m', '/mnt/e']],
  )

  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(2_000)
  assert.deepEqual(await world.mounts(), [])
  assert.deepEqual(await world.podDirectories(), [])
  assert.deepEqual((await world.client.list('Pod', {})).items, [])
  assert.deepEqual([agent.desired.size, agent.actual.size, world.machine.containers.size], [0, 0, 0])
  await agent.stop()
})

test('a deleted pod that a finalizer holds back keeps its directories, not its volumes, until its object goes', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const held = pod('p', [memory('m')])
  const uid = await world.create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } })
  await world.clock.advance(1_000)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(5_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories()], [[], [uid]])
  assert.equal(world.machine.containers.size, 1) // ended; its log can still be read
  const free = { type: 'merge' as const, body: { metadata: { finalizers: null } } }
  await world.client.patch('Pod', { namespace: 'default', name: 'p' }, free)
  await world.clock.advance(2_000)
  assert.deepEqual(await world.podDirectories(), [])
  assert.deepEqual((await world.client.list('Pod', {})).items, [])
  assert.equal(world.machine.containers.size, 0)
  await agent.stop()
})

test('a restart unmounts nothing under a running pod and starts nothing twice (WA-8, INV-7)', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  const uid = await world.create(pod('p', [memory('m')]))
  await world.clock.advance(1_000)
  const file = `${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/m/data`
  await world.host.quiet.files.writeFile(file, 'precious', { mode: 0o644 }, world.signal)
  first.crash()
  await world.clock.advance(60_000)

  // A slow disk: the pod is known long before its volumes are wanted, and meanwhile nothing may be undone.
  world.host.faults.plant({ call: 'files.mkdirEach', below: `${root}/pods/${uid}`, kind: 'slow', delayMs: 1_000 })
  const second = await world.start()
  await world.clock.advance(5_000)
  assert.equal(await world.host.quiet.files.readText(file, world.signal), 'precious')
  assert.deepEqual(
    [...second.agent.actual.values()].map(({ pods }) => [...pods.values()].map(({ presence }) => presence)),
    [['present']],
  )
  assert.deepEqual(
    [...world.machine.containers.values()].map(({ attempt, exit }) => [attempt, exit]),
    [[0, undefined]],
  )
  await second.agent.stop()
})

test('a pod that went while the agent was away is cleaned at the next start', async () => {
  const world = await createNodeWorld()
  const first = await world.start()
  await world.create(pod('p', [memory('m'), { name: 'e', emptyDir: {} }]))
  await world.clock.advance(1_000)
  first.crash()
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })

  const second = await world.start()
  await world.clock.advance(5_000)
  assert.deepEqual(await world.mounts(), [])
  assert.deepEqual(await world.podDirectories(), [])
  assert.deepEqual([second.agent.actual.size, world.machine.containers.size], [0, 0])
  await second.agent.stop()
})

test('a pod deleted in the middle of a slow mount leaves no mount (REC-6)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  world.host.faults.plant({ call: 'mounts.mount', kind: 'slow', delayMs: 3_000, times: 1 })
  await world.create(pod('p', [memory('a'), memory('b')]))
  await world.clock.advance(1_000)
  await world.client.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
  await world.clock.advance(10_000)
  assert.deepEqual(await world.mounts(), [])
  assert.deepEqual(await world.podDirectories(), [])
  assert.deepEqual([agent.desired.size, agent.actual.size], [0, 0])
  await agent.stop()
})

test('kill -9 after any host call of mounting or unmounting, then a restart: nothing leaks, the pod runs or is gone', async () => {
  for (let calls = 0; calls < 60; calls++) {
    const world = await createNodeWorld()
    const first = await world.start()
    await world.clock.advance(100)
    // The machine hangs for this agent from the n-th call on; the crash then finds it in the middle of that call.
    using _fault = world.host.faults.plant({ call: '*', below: `${root}/pods`, kind: 'hangs', after: calls })
    await world.create(pod('p', [memory('m'), { name: 'e', emptyDir: {} }]))
    await world.clock.advance(500)
    await world.client.remove('Pod', { namespace: 'default', name: 'p' })
    await world.clock.advance(1_500)
    first.crash()
    world.host.faults.clear()
    const kept = calls % 2 === 0
    if (kept) await world.create(pod('q', [memory('m')]))

    const second = await world.start()
    await world.clock.advance(20_000)
    const wanted = kept ? 1 : 0
    const seen = [
      (await world.mounts()).length,
      (await world.podDirectories()).length,
      second.agent.actual.size,
      (await world.client.list('Pod', {})).items.length,
    ]
    assert.deepEqual(seen, [wanted, wanted, wanted, wanted], `crash at host call ${calls}`)
    await second.agent.stop()
  }
})

test('a missing ConfigMap is told, holds up only its own pod, and is picked up the moment it appears', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.create(pod('waits', [{ name: 'c', configMap: { name: 'late' } }]))
  await world.create(pod('goes', [memory('m')]))
  await world.clock.advance(20_000)
  assert.equal(await world.phase('goes'), 'Running')
  assert.equal(await world.phase('waits'), 'Pending')
  await assertWhy(world, 'pod/waits', 'configMissing')
  assert.ok(
    (await world.events()).some((text) =>
      /^Warning FailedMount: MountVolume\.SetUp failed for volume "c" : .*"late" not found/.test(text),
    ),
  )
  assert.deepEqual(
    [...agent.waiting.values()].flat().map(({ reason }) => reason),
    ['backingOff'],
  )
  await world.client.create('ConfigMap', { metadata: { name: 'late', namespace: 'default' }, data: { k: 'v' } })
  await world.clock.advance(500)
  assert.equal(await world.phase('waits'), 'Running')
  await agent.stop()
})

test('a changed ConfigMap reaches a running pod without a restart; a deleted one leaves the old contents (REC-9, WA-32, INV-9)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const ref = { namespace: 'default', name: 'c' }
  await world.client.create('ConfigMap', { metadata: ref, data: { k: 'one' } })
  const uid = await world.create(pod('p', [{ name: 'v', configMap: { name: 'c' } }]))
  await world.clock.advance(1_000)
  const read = () =>
    world.host.quiet.files.readText(`${root}/pods/${uid}/volumes/kubernetes.io~configmap/v/k`, world.signal)
  assert.equal(await read(), 'one')
  await world.client.patch('ConfigMap', ref, { type: 'merge', body: { data: { k: 'two' } } })
  await world.clock.advance(100)
  assert.equal(await read(), 'two')
  await world.client.remove('ConfigMap', ref)
  await world.clock.advance(60_000)
  assert.equal(await read(), 'two')
  assert.equal(await world.phase('p'), 'Running')
  await agent.stop()
})

test("a pod's new labels reach its downwardAPI volume at once, not with the next refresh (CONF-2)", async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const items = [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }]
  const object = pod('p', [{ name: 'v', downwardAPI: { items } }])
  const uid = await world.create({ ...object, metadata: { ...object.metadata, labels: { a: '1' } } })
  await world.clock.advance(1_000)
  const file = `${root}/pods/${uid}/volumes/kubernetes.io~downward-api/v/labels`
  assert.equal(await world.host.quiet.files.readText(file, world.signal), 'a="1"')
  const body = { metadata: { labels: { b: '2' } } }
  await world.client.patch('Pod', { namespace: 'default', name: 'p' }, { type: 'merge', body })
  await world.clock.advance(2_000)
  assert.equal(await world.host.quiet.files.readText(file, world.signal), 'a="1"\nb="2"')
  await agent.stop()
})

test('a wait that fails names the volumes and the cause, also when it is only time that ran out (VM-4, WA-22, C-8, EVT-3)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.create(pod('p', [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]))
  await world.create(pod('q', [{ name: 'bad', configMap: { name: 'nope' } }]))
  await world.clock.advance(130_000)
  const events = await world.events()
  const claim =
    'error processing PVC default/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found'
  const text = `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: ${claim}`
  assert.ok(events.includes(`Warning FailedMount: ${text}`), events.join('\n'))
  await assertWhy(world, 'pod/p', 'claimMissing')
  await assertWhy(world, 'pod/q', 'configMissing')
  const late =
    'Unable to attach or mount volumes: unmounted volumes=[bad], unattached volumes=[], failed to process volumes=[]: context deadline exceeded'
  assert.ok(events.includes(`Warning FailedMount: ${late}`), events.join('\n'))
  await agent.stop()
})

test('restart policies, exit codes and phases are as kubectl users expect', async () => {
  const ends: Record<string, { endsAfterMs: number; exitCode: number }> = {
    good: { endsAfterMs: 1_000, exitCode: 0 },
    bad: { endsAfterMs: 1_000, exitCode: 3 },
    loops: { endsAfterMs: 1_000, exitCode: 1 },
  }
  const world = await createNodeWorld({ script: ({ podName }) => ends[podName] ?? {} })
  const { agent } = await world.start()
  for (const name of ['good', 'bad']) await world.create(pod(name, [memory('m')]))
  await world.create(pod('loops', [memory('m')], { restartPolicy: 'Always' }))
  await world.clock.advance(8_000)
  assert.deepEqual(
    [await world.phase('good'), await world.phase('bad'), await world.phase('loops')],
    ['Succeeded', 'Failed', 'Running'],
  )
  const statusOf = async (name: string) =>
    (await world.client.get('Pod', { namespace: 'default', name })).status?.containerStatuses?.[0]
  assert.equal((await statusOf('bad'))?.state?.terminated?.exitCode, 3)
  const looping = await statusOf('loops')
  assert.deepEqual(
    [looping?.state?.waiting?.reason, looping?.restartCount, looping?.lastState?.terminated?.exitCode],
    ['CrashLoopBackOff', 1, 1],
  )
  // Pods that ended keep their objects and directories, not their volumes.
  assert.equal((await world.mounts()).length, 1)
  await agent.stop()
})

test('the node registers itself, keeps its lease, and mends a deleted Node', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.clock.advance(1_000)
  const node = await world.client.get('Node', { name: nodeName })
  assert.equal(node.metadata.annotations?.['volumes.kubernetes.io/controller-managed-attach-detach'], 'true')
  assert.equal(node.metadata.labels?.['kubernetes.io/hostname'], nodeName)
  assert.equal(node.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True')
  const lease = async () =>
    (await world.client.get('Lease', { namespace: 'kube-node-lease', name: nodeName })).spec?.renewTime
  const before = await lease()
  await world.clock.advance(20_000)
  assert.notEqual(await lease(), before)
  await world.client.remove('Node', { name: nodeName })
  await world.clock.advance(400_000)
  assert.equal(
    (await world.client.get('Node', { name: nodeName })).status?.conditions?.some(({ type }) => type === 'Ready'),
    true,
  )
  await agent.stop()
})

test('a node counts as registered when the API has its Node, however often that had to be tried', async () => {
  let refusals = 3
  const through = (client: Client): Client => ({
    ...client,
    create: (kind, ...rest) =>
      kind === 'Node' && refusals-- > 0 ? Promise.reject(new Error('not now')) : client.create(kind, ...rest),
  })
  const world = await createNodeWorld({ through })
  const { agent } = await world.start()
  const told: boolean[] = []
  void agent.registered.then(async () => told.push((await world.client.list('Node', {})).items.length === 1))
  await world.clock.advance(100)
  assert.deepEqual(told, [])
  await world.clock.advance(5_000)
  assert.deepEqual(told, [true])
  await agent.stop()
})

test('a node that was counted as silent says at once that it is there, and that its lease runs', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.clock.advance(1_000)
  const readiness = async () => {
    const { status } = await world.client.get('Node', { name: nodeName })
    return status?.conditions?.find(({ type }) => type === 'Ready')
  }
  const calm = await readiness()
  await world.clock.advance(2_000)
  const silent = [{ ...calm, status: 'Unknown', reason: 'NodeStatusUnknown' }]
  const patch = { type: 'merge' as const, body: { status: { conditions: silent } } }
  await world.client.patch('Node', { name: nodeName }, patch, { subresource: 'status' })
  await world.clock.advance(500)
  const lease = await world.client.get('Lease', { namespace: 'kube-node-lease', name: nodeName })
  const now = await readiness()
  assert.deepEqual([now?.status, now?.reason], ['True', 'KubeletReady'])
  assert.notEqual(now?.lastTransitionTime, calm?.lastTransitionTime)
  assert.ok(Date.parse(lease.spec?.renewTime ?? '') >= world.clock.now() - 1_000, 'the lease was renewed with it')
  await agent.stop()
})

test('an idle agent with mounted volumes makes no host calls and few API calls (WA-1)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  for (let index = 0; index < 20; index++)
    await world.create(pod(`p${index}`, [memory('m'), { name: 'e', emptyDir: {} }]))
  await world.clock.advance(5_000)
  // A fault that does no harm counts the calls.
  using _fault = world.host.faults.plant({ call: '*', kind: 'slow', delayMs: 0 })
  const before = world.host.faults.struck
  await world.clock.advance(600_000)
  assert.equal(world.host.faults.struck - before, 0)
  await world.client.remove('Pod', { namespace: 'default', name: 'p0' })
  await world.clock.advance(5_000)
  assert.ok(world.host.faults.struck > before, 'work does make calls')
  assert.equal((await world.mounts()).length, 19)
  await agent.stop()
})

test('pods come from a directory and from a URL, too; they change and go with their manifests, without an API object', async () => {
  const manifest = (name: string, command: string) =>
    `kind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers: [{name: c, image: i, command: [${command}], volumeMounts: [{name: m, mountPath: /m}]}]\n  volumes: [{name: m, emptyDir: {medium: Memory}}]\n`
  let served = manifest('web', 'serve')
  const world = await createNodeWorld({
    manifestDirectory: '/manifests',
    manifestUrl: { url: 'http://x/pods', get: () => Promise.resolve(served) },
  })
  const write = (name: string, text: string) =>
    world.host.quiet.files.writeFile(`/manifests/${name}`, text, { mode: 0o644 }, world.signal)
  await world.host.quiet.files.mkdirAll('/manifests', 0o755, world.signal)
  await write('a.yaml', manifest('one', 'run'))
  await write('broken.yaml', 'kind: Pod\nmetadata: [')
  const { agent } = await world.start()
  await world.clock.advance(2_000)
  const running = () =>
    [...world.machine.containers.entries()]
      .filter(([, { exit }]) => !exit)
      .map(([key]) => `${world.machine.requests.get(key)?.podName} ${world.machine.requests.get(key)?.argv[0]}`)
      .sort()
  assert.deepEqual(running(), ['one-n1 run', 'web-n1 serve'])
  assert.equal((await world.mounts()).length, 2)
  assert.deepEqual((await world.client.list('Pod', {})).items, [])

  await write('a.yaml', manifest('one', 'other'))
  served = ''
  await world.clock.advance(60_000)
  assert.deepEqual(running(), ['one-n1 other'])
  assert.equal((await world.mounts()).length, 1)
  await world.host.quiet.files.unlink('/manifests/a.yaml', world.signal)
  await world.clock.advance(60_000)
  assert.deepEqual([running(), await world.mounts(), await world.podDirectories()], [[], [], []])
  await agent.stop()
})

test('an ephemeral container waits for a volume that nobody mounted before, begins once, and goes with its pod', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const volumes = [memory('m'), memory('extra')]
  const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts: [{ name: 'm', mountPath: '/mnt/m' }] }]
  const uid = await world.create(pod('p', volumes, { containers }))
  await world.clock.advance(1_000)
  const at = (name: string) => `${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/${name}`
  assert.deepEqual(await world.mounts(), [at('m')])

  const mounted = { name: 'extra', mountPath: '/extra' }
  const debug = { name: 'debug', image: 'i', command: ['look'], targetContainerName: 'c', volumeMounts: [mounted] }
  const body = { spec: { ephemeralContainers: [debug] } }
  const ref = { namespace: 'default', name: 'p' }
  await world.client.patch('Pod', ref, { type: 'strategic', body }, { subresource: 'ephemeralcontainers' })
  await world.clock.advance(1_000)
  assert.deepEqual((await world.mounts()).toSorted(), [at('extra'), at('m')])
  const status = (await world.client.get('Pod', ref)).status!
  assert.ok(status.ephemeralContainerStatuses?.[0]?.state?.running, JSON.stringify(status.ephemeralContainerStatuses))
  assert.equal(status.phase, 'Running')

  await world.client.remove('Pod', ref)
  await world.clock.advance(2_000)
  assert.deepEqual([await world.mounts(), await world.podDirectories(), world.machine.containers.size], [[], [], 0])
  await agent.stop()
})
