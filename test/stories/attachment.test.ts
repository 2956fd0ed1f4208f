// The stories of attaching and detaching, on the real server and controller with model nodes, in virtual time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { nodeName, uniqueVolumeName } from '../../src/api/names.ts'
import { managedAnnotation, outOfServiceTaint } from '../../src/controllers/attachment/nodes.ts'
import type { Cluster, ClusterOptions } from '../../src/sim/cluster.ts'
import { addNode, createCluster, setNotReady } from '../../src/sim/cluster.ts'
import { addBoundClaim, podFor } from '../../src/sim/workload.ts'
import type { Cause } from '../../src/why/causes.ts'
import { assertWhy } from '../kit/assert-why.ts'

const namespace = 'default'
const minute = 60_000
const nameOf = (handle: string) => uniqueVolumeName(`kubernetes.io/csi/model.hawser.dev^${handle}`)

async function quietCluster(context: TestContext, options: Partial<ClusterOptions> = {}): Promise<Cluster> {
  const cluster = await createCluster({ seed: 1, nodes: 2, history: true, ...options })
  cluster.faults.calm = true
  await cluster.start()
  await cluster.clock.advance(2_000)
  context.after(async () => {
    assert.deepEqual(cluster.violations, [], cluster.trace.tail().join('\n'))
    await cluster[Symbol.asyncDispose]()
  })
  return cluster
}

const run = (cluster: Cluster, name: string, node: string, ...claims: string[]) =>
  cluster.admin.create('Pod', podFor(name, node, claims))
const remove = (cluster: Cluster, name: string, force = false) =>
  cluster.admin.remove('Pod', { namespace, name }, force ? { gracePeriodSeconds: 0 } : {})
const attachments = async (cluster: Cluster) =>
  (await cluster.admin.list('VolumeAttachment')).items.map(
    ({ spec }) => `${spec.source.persistentVolumeName}@${spec.nodeName}`,
  )
const listed = async (cluster: Cluster, node: string) =>
  ((await cluster.admin.get('Node', { name: node })).status?.volumesAttached ?? []).map(({ name }) => name)
const happened = (cluster: Cluster, text: RegExp) => cluster.trace.tail().findIndex((line) => text.test(line))
const reasons = (cluster: Cluster, handle: string) =>
  (cluster.controller().waiting.get(nameOf(handle)) ?? []).map(({ reason }) => reason)
const says = ({ admin, clock }: Cluster, words: string, cause: Cause) =>
  assertWhy({ client: admin, clock }, words, cause)
/** The one attachment that there is. */
const attachmentSays = async (cluster: Cluster, cause: Cause) => {
  const [attachment] = (await cluster.admin.list('VolumeAttachment')).items
  return says(cluster, `va/${attachment?.metadata.name}`, cause)
}
const isRunning = async (cluster: Cluster, name: string) =>
  (await cluster.admin.get('Pod', { namespace, name })).status?.phase === 'Running'
async function events(cluster: Cluster, pod: string) {
  const items = (await cluster.admin.list('Event', { namespace })).items
  return items
    .filter(({ involvedObject }) => involvedObject?.name === pod)
    .map(({ reason, message }) => `${reason}: ${message}`)
}
const metric = async (cluster: Cluster, reason: string) =>
  new RegExp(`forced_detaches\\{reason="${reason}"\\} (\\d+)`).exec(await cluster.metrics.text())?.[1]

test('a pod leads to an attachment, a report, a mount (AD-5, AD-6, ATT-4, ATT-5, ADS-2, NSP-2, TA-14)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  assert.deepEqual(await listed(cluster, 'n1'), [nameOf('h1')])
  assert.ok(await isRunning(cluster, 'p'))
  assert.deepEqual(await events(cluster, 'p'), [
    'SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "v1" ',
  ])
})

test('the node unmounts and says so, the volume leaves the report, then it is detached (FD-1, NSP-3, NSP-4, TA-15)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  await remove(cluster, 'p')
  await cluster.clock.advance(3_000)
  assert.deepEqual(await attachments(cluster), [])
  assert.deepEqual(await listed(cluster, 'n1'), [])
  const [unmounted, unpublished] = [happened(cluster, /unmount node=n1/), happened(cluster, /unpublish handle=h1/)]
  assert.ok(unmounted >= 0 && unmounted < unpublished)
})

test('no polling: a whole life of an attachment takes less than a second of waiting on our side (DES-1, DET-4)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  const start = cluster.clock.now()
  await run(cluster, 'p', 'n1', 'c1')
  while (!(await isRunning(cluster, 'p'))) await cluster.clock.advance(10)
  await remove(cluster, 'p')
  while ((await attachments(cluster)).length > 0) await cluster.clock.advance(10)
  // Of this, up to 1.3 s are the model storage's and the model node's own delays.
  assert.ok(cluster.clock.now() - start < 2_300, `${cluster.clock.now() - start} ms`)
})

test('a restart keeps what is used, detaches what is not, attaches what is new (AD-1, AD-2, AD-3, AD-4, TA-32, TA-33)', async (context) => {
  const cluster = await quietCluster(context)
  for (const number of ['1', '2', '3']) await addBoundClaim(cluster, number)
  await run(cluster, 'kept', 'n1', 'c1')
  await run(cluster, 'leaving', 'n1', 'c2')
  await cluster.clock.advance(2_000)
  cluster.crashController()
  // While nobody watches: one pod goes, one comes.
  await remove(cluster, 'leaving', true)
  await run(cluster, 'new', 'n2', 'c3')
  await cluster.clock.advance(5_000)
  assert.deepEqual((await attachments(cluster)).toSorted(), ['v1@n1', 'v3@n2'])
  assert.equal(happened(cluster, /unpublish handle=h1/), -1)
})

test('an attachment that nobody wants and no node lists is detached after a start (AD-3, FD-7)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  const spec = { attacher: 'model.hawser.dev', nodeName: 'n2', source: { persistentVolumeName: 'v1' } }
  await cluster.admin.create('VolumeAttachment', { metadata: { name: 'csi-by-hand' }, spec })
  const { createHash } = await import('node:crypto')
  const name = `csi-${createHash('sha256').update('h1model.hawser.devn2').digest('hex')}`
  await cluster.admin.create('VolumeAttachment', { metadata: { name }, spec })
  await cluster.clock.advance(5_000)
  assert.equal((await attachments(cluster)).length, 2) // 265: what others make is left alone while we run
  cluster.crashController()
  await cluster.clock.advance(10_000)
  const left = (await cluster.admin.list('VolumeAttachment')).items.map(({ metadata }) => metadata.name)
  assert.deepEqual(left, ['csi-by-hand'])
})

test('a volume of which only a name in node status is left is detached by that name (DET-2)', async (context) => {
  const cluster = await quietCluster(context)
  const volumesAttached = [{ name: nameOf('gone'), devicePath: '' }]
  await cluster.admin.patch(
    'Node',
    { name: 'n1' },
    { type: 'merge', body: { status: { volumesAttached } } },
    { subresource: 'status' },
  )
  cluster.crashController()
  await cluster.clock.advance(5_000)
  assert.deepEqual(await listed(cluster, 'n1'), [])
  assert.equal(cluster.controller().actual.size, 0)
})

test('force only after six minutes and only while the node is unhealthy, with its time shown (FD-2, FD-3, TA-16, TA-23, C-3)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  cluster.trouble.set('n1', Infinity)
  cluster.cutOff('n1', true) // the machine goes on, and nobody hears of it
  const gone = cluster.clock.now()
  await remove(cluster, 'p', true)
  await cluster.clock.advance(20 * minute)
  await attachmentSays(cluster, 'inUse')
  assert.deepEqual(reasons(cluster, 'h1'), ['inUse']) // still Ready: never forced, however long it takes
  await setNotReady(cluster.admin, 'n1')
  await cluster.clock.advance(1_000)
  assert.equal(await metric(cluster, 'timeout'), '1') // the timer ran since the pod left, not since the node fell ill
  assert.deepEqual(await attachments(cluster), [])
  assert.ok(cluster.clock.now() - gone > 6 * minute)
})

test('before the six minutes are over it waits, and says until when (FD-2)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  cluster.trouble.set('n1', Infinity)
  cluster.cutOff('n1', true)
  await setNotReady(cluster.admin, 'n1')
  await remove(cluster, 'p', true)
  await cluster.clock.advance(1_000)
  const [waiting] = cluster.controller().waiting.get(nameOf('h1')) ?? []
  assert.equal(waiting?.reason, 'inUseOnUnhealthyNode')
  const { blocked } = await attachmentSays(cluster, 'inUseOnUnhealthyNode')
  assert.equal(Date.parse(blocked?.nextTry ?? ''), waiting?.until)
  await cluster.clock.advance(waiting!.until! - cluster.clock.now() - 1)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  await cluster.clock.advance(2_000)
  assert.deepEqual(await attachments(cluster), [])
})

test('the out-of-service taint detaches at once although in use (FD-4, TA-22, NSP-6)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  cluster.trouble.set('n1', Infinity)
  cluster.cutOff('n1', true)
  await setNotReady(cluster.admin, 'n1')
  await remove(cluster, 'p', true)
  await cluster.clock.advance(1_000)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  await attachmentSays(cluster, 'inUseOnUnhealthyNode')
  await says(cluster, 'node/n1', 'nodeNotReady')
  const taints = [{ key: outOfServiceTaint, effect: 'NoExecute' }]
  await cluster.admin.patch('Node', { name: 'n1' }, { type: 'merge', body: { spec: { taints } } })
  await cluster.clock.advance(1_000)
  assert.deepEqual(await attachments(cluster), [])
  assert.equal(await metric(cluster, 'out-of-service'), '1')
})

test('with forced detach on timeout switched off only the taint helps (FD-5, TA-24, C-6)', async (context) => {
  const cluster = await quietCluster(context, { attachment: { forceDetachOnTimeout: false } })
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  cluster.trouble.set('n1', Infinity)
  cluster.cutOff('n1', true)
  await setNotReady(cluster.admin, 'n1')
  await remove(cluster, 'p', true)
  await cluster.clock.advance(30 * minute)
  assert.deepEqual(reasons(cluster, 'h1'), ['forceDetachDisabled'])
  await attachmentSays(cluster, 'forceDetachDisabled')
  assert.equal(await metric(cluster, 'timeout'), undefined)
  const taints = [{ key: outOfServiceTaint, effect: 'NoExecute' }]
  await cluster.admin.patch('Node', { name: 'n1' }, { type: 'merge', body: { spec: { taints } } })
  await cluster.clock.advance(1_000)
  assert.deepEqual(await attachments(cluster), [])
})

test('a deleted Node that used the volume is waited for; one that did not is not (AD-9, FD-6)', async (context) => {
  const cluster = await quietCluster(context)
  for (const number of ['1', '2']) await addBoundClaim(cluster, number)
  await run(cluster, 'p', 'n1', 'c1')
  await run(cluster, 'q', 'n2', 'c2')
  await cluster.clock.advance(2_000)
  for (const node of ['n1', 'n2']) cluster.trouble.set(node, Infinity)
  cluster.cutOff('n1', true)
  await remove(cluster, 'p', true)
  await remove(cluster, 'q')
  cluster.crashAttacher() // so that the second volume is still attached when its Node goes
  await cluster.clock.advance(1_200)
  await cluster.admin.remove('Node', { name: 'n1' })
  await cluster.admin.remove('Node', { name: 'n2' })
  await cluster.clock.advance(10_000)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  await attachmentSays(cluster, 'inUseOnUnhealthyNode')
  await cluster.clock.advance(6 * minute)
  assert.deepEqual(await attachments(cluster), [])
  assert.equal(cluster.controller().nodes.size, 0) // WA-34: nothing of a deleted node stays behind
})

test('a re-created Node gets its attached volumes reported again (AD-8, ADS-2)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  await cluster.admin.remove('Node', { name: 'n1' })
  await cluster.clock.advance(1_000)
  await addNode(cluster.admin, 'n1')
  await cluster.clock.advance(2_000)
  assert.deepEqual(await listed(cluster, 'n1'), [nameOf('h1')])
  assert.equal(happened(cluster, /unpublish/), -1)
})

test('a node without the annotation gets nothing, until it gets the annotation (AD-6, C-15, ADP-3)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await cluster.admin.create('Node', { metadata: { name: 'own' }, spec: {} })
  await run(cluster, 'p', 'own', 'c1')
  await cluster.clock.advance(10_000)
  assert.deepEqual(await attachments(cluster), [])
  await says(cluster, 'pod/p', 'nodeNotReady')
  await cluster.admin.patch(
    'Node',
    { name: 'own' },
    { type: 'merge', body: { metadata: { annotations: { [managedAnnotation]: 'true' } } } },
  )
  await cluster.clock.advance(1_000)
  assert.deepEqual(await attachments(cluster), ['v1@own'])
})

test('a pod before its claim is bound waits for it; a pod that vanishes and returns as another is two pods (AD-7, ADP-1, TA-34, TA-35, WA-17)', async (context) => {
  const cluster = await quietCluster(context)
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  assert.equal(cluster.controller().desired.size, 0)
  await says(cluster, 'pod/p', 'claimMissing')
  await addBoundClaim(cluster, '1')
  await cluster.clock.advance(1_000)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  await cluster.clock.advance(30_000)
  await remove(cluster, 'p', true)
  await run(cluster, 'p', 'n1', 'c1') // the same name, another uid
  await cluster.clock.advance(30_000)
  const pods = cluster.controller().desired.get(nameOf('h1'))?.nodes.get(nodeName('n1'))?.pods
  const { metadata } = await cluster.admin.get('Pod', { namespace, name: 'p' })
  assert.deepEqual([...(pods?.keys() ?? [])], [metadata.uid])
})

test('an exclusive volume goes from node to node, and its users are told (MA-1, MA-2, MA-3, MA-4, TA-19, ADR-4)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'first', 'n1', 'c1')
  await run(cluster, 'beside', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  await run(cluster, 'second', 'n2', 'c1')
  await cluster.clock.advance(2_000)
  assert.ok(await isRunning(cluster, 'beside'))
  assert.deepEqual(reasons(cluster, 'h1'), ['attachedElsewhere'])
  const { blocked } = await says(cluster, 'pod/second', 'attachedElsewhere')
  assert.match(blocked?.sentence ?? '', /n1/)
  assert.deepEqual(await events(cluster, 'second'), [
    'FailedAttachVolume: Multi-Attach error for volume "v1" Volume is already used by pod(s) first, beside',
  ])
  await remove(cluster, 'first')
  await remove(cluster, 'beside')
  await cluster.clock.advance(5_000)
  assert.ok(await isRunning(cluster, 'second'))
  assert.deepEqual(await attachments(cluster), ['v1@n2'])
  assert.equal((await events(cluster, 'second')).length, 2)
})

test('a shared volume is attached to both nodes (MA-1, TA-18)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1', 'ReadWriteMany')
  await run(cluster, 'first', 'n1', 'c1')
  await run(cluster, 'second', 'n2', 'c1')
  await cluster.clock.advance(3_000)
  assert.deepEqual((await attachments(cluster)).toSorted(), ['v1@n1', 'v1@n2'])
})

test('an attachment that someone removes under us is noticed at once, and made again (VVA-3, VVA-4)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  const [attachment] = (await cluster.admin.list('VolumeAttachment')).items
  // Without the finalizer it is simply gone: nothing was unpublished, the storage still holds the volume there.
  await cluster.admin.patch(
    'VolumeAttachment',
    { name: attachment!.metadata.name },
    { type: 'merge', body: { metadata: { finalizers: null } } },
  )
  await cluster.admin.remove('VolumeAttachment', { name: attachment!.metadata.name })
  await cluster.clock.advance(5_000)
  assert.deepEqual(await attachments(cluster), ['v1@n1'])
  assert.deepEqual(await listed(cluster, 'n1'), [nameOf('h1')])
})

test('a pod that comes while the volume is being detached elsewhere is told nothing but its success (ADR-4)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  await remove(cluster, 'p')
  const isLeaving = async () =>
    (await cluster.admin.list('VolumeAttachment')).items.some(({ metadata }) => metadata.deletionTimestamp)
  while (!(await isLeaving())) await cluster.clock.advance(10)
  await run(cluster, 'q', 'n2', 'c1')
  await cluster.clock.advance(5_000)
  assert.deepEqual(await attachments(cluster), ['v1@n2'])
  assert.deepEqual(await events(cluster, 'q'), [
    'SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "v1" ',
  ])
})

test('a driver that stops wanting attaching lets its volumes go (ADP-2, TA-34)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  await cluster.admin.create('Node', { metadata: { name: 'bare', annotations: { [managedAnnotation]: '' } }, spec: {} })
  await cluster.admin.patch(
    'Node',
    { name: 'bare' },
    { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
    { subresource: 'status' },
  )
  await run(cluster, 'p', 'bare', 'c1') // a node without an agent: nothing is mounted
  await cluster.clock.advance(2_000)
  assert.deepEqual(await attachments(cluster), ['v1@bare'])
  await cluster.admin.remove('CSIDriver', { name: 'model.hawser.dev' })
  await cluster.admin.create('CSIDriver', { metadata: { name: 'model.hawser.dev' }, spec: { attachRequired: false } })
  await cluster.clock.advance(5_000)
  assert.deepEqual(await attachments(cluster), [])
  assert.equal(cluster.controller().desired.has(nameOf('h1')), false)
})

test('the last pod goes while the driver is silent: what was asked for is waited for, then taken back (ATT-5, CSI-21)', async (context) => {
  const cluster = await quietCluster(context)
  await addBoundClaim(cluster, '1')
  const driverless = 'silent.example.com'
  const source = (await cluster.admin.get('PersistentVolume', { name: 'v1' })).spec!
  await cluster.admin.create('PersistentVolume', {
    metadata: { name: 'vs' },
    spec: { ...source, claimRef: { namespace, name: 'cs' }, csi: { driver: driverless, volumeHandle: 'hs' } },
  })
  const claim = await cluster.admin.create('PersistentVolumeClaim', {
    metadata: { name: 'cs', namespace },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeName: 'vs',
      storageClassName: '',
    },
  })
  await cluster.admin.patch(
    'PersistentVolume',
    { name: 'vs' },
    { type: 'merge', body: { spec: { claimRef: { uid: claim.metadata.uid } } } },
  )
  await cluster.admin.patch(
    'PersistentVolumeClaim',
    { namespace, name: 'cs' },
    { type: 'merge', body: { status: { phase: 'Bound' } } },
    { subresource: 'status' },
  )
  await run(cluster, 'p', 'n1', 'cs')
  await cluster.clock.advance(2_000)
  assert.deepEqual(await attachments(cluster), ['vs@n1'])
  await cluster.clock.advance(5_000)
  await says(cluster, 'pod/p', 'attacherSilent')
  await remove(cluster, 'p', true)
  await cluster.clock.advance(2_000)
  // As recorded from Kubernetes: the driver may be at work, and its answer decides what has to be undone.
  assert.deepEqual(await attachments(cluster), ['vs@n1'])
  await cluster.clock.advance(120_000)
  assert.deepEqual(await attachments(cluster), [])
})

test('after a failed detach only a fresh attach brings the volume back into the report (NSP-7, TA-21)', async (context) => {
  const cluster = await quietCluster(context, {
    rates: { refused: 0, answerLost: 0, watchCut: 0, delayMs: 1, storage: 1 },
  })
  await addBoundClaim(cluster, '1')
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(2_000)
  cluster.faults.calm = false // from now on the storage fails every call
  await remove(cluster, 'p')
  await cluster.clock.advance(3_000)
  assert.deepEqual(await listed(cluster, 'n1'), [])
  const record = cluster.controller().actual.get(nameOf('h1'))?.nodes.get(nodeName('n1'))
  assert.equal(record?.presence, 'uncertain')
  await attachmentSays(cluster, 'detachFailed')
  cluster.faults.calm = true
  await run(cluster, 'again', 'n1', 'c1')
  await cluster.clock.advance(5 * minute)
  assert.ok(await isRunning(cluster, 'again'))
  assert.deepEqual(await listed(cluster, 'n1'), [nameOf('h1')])
})

test('an attach that happened unheard is doubt, not reported; it is taken back, and another node gets it (TA-20, ATT-3)', async (context) => {
  const cluster = await quietCluster(context, {
    rates: { refused: 0, answerLost: 0, watchCut: 0, delayMs: 1, storage: 1 },
  })
  await addBoundClaim(cluster, '1')
  cluster.faults.calm = false
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(5_000)
  const presence = () => cluster.controller().actual.get(nameOf('h1'))?.nodes.get(nodeName('n1'))?.presence
  assert.deepEqual([presence(), await listed(cluster, 'n1')], ['uncertain', []])
  cluster.faults.calm = true
  await remove(cluster, 'p', true)
  await run(cluster, 'q', 'n2', 'c1')
  await cluster.clock.advance(5 * minute)
  assert.ok(await isRunning(cluster, 'q'))
  assert.deepEqual([presence(), await listed(cluster, 'n1'), await attachments(cluster)], [undefined, [], ['v1@n2']])
})

test('a failed attach backs off, says until when, and is over the moment the driver succeeds (ADR-5, BO-2, DES-1)', async (context) => {
  const cluster = await quietCluster(context, {
    rates: { refused: 0, answerLost: 0, watchCut: 0, delayMs: 1, storage: 1 },
  })
  await addBoundClaim(cluster, '1')
  cluster.faults.calm = false // the storage fails every call
  await run(cluster, 'p', 'n1', 'c1')
  await cluster.clock.advance(60_000)
  const [waiting] = cluster.controller().waiting.get(nameOf('h1')) ?? []
  assert.equal(waiting?.reason, 'backingOff')
  assert.match(waiting?.detail ?? '', /the storage said no/)
  await says(cluster, 'pod/p', 'attachFailed')
  assert.ok(waiting!.until! - cluster.clock.now() <= 122_001)
  assert.match(
    (await events(cluster, 'p'))[0] ?? '',
    /^FailedAttachVolume: AttachVolume.Attach failed for volume "v1" : simulated/,
  )
  cluster.faults.calm = true
  const published = async () => (await cluster.admin.list('VolumeAttachment')).items[0]?.status?.attached === true
  while (!(await published())) await cluster.clock.advance(100)
  await cluster.clock.advance(500)
  assert.deepEqual(await listed(cluster, 'n1'), [nameOf('h1')])
})
