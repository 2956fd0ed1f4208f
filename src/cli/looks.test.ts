// When is it done, and is it safe? The pure judgements of the commands, as tables.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, PersistentVolumeClaim, Pod } from '../api/generated/types.ts'
import { holderOf } from './commands/delete.ts'
import { dangersOf } from './commands/detach.ts'
import { missingFor } from './commands/demo.ts'
import { methodFrom } from './commands/driver/rpc.ts'
import { exitOf, mountFrom, podOf, started } from './commands/run.ts'
import { modeFrom, sizeFrom } from './commands/volume/options.ts'
import { sized } from './commands/volume/resize.ts'
import { planOf } from './commands/volume/rm.ts'
import { readyToUse } from './commands/volume/snapshot.ts'
import { contradictions } from '../lab/driver-report.ts'
import { askAbout } from './hints.ts'
import { duration, table } from './output.ts'
import { kindFrom } from './resources.ts'
import type { VolumeFacts } from './volume-facts.ts'
import { factsOf } from './volume-facts.ts'
import { effectText } from './why-text.ts'

const pod = (status: Pod['status'], nodeName?: string): Pod => ({
  metadata: { name: 'p', namespace: 'default' },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
  ...(status === undefined ? {} : { status }),
})

const withState = (state: object): Pod =>
  pod(
    {
      containerStatuses: [{ name: 'c', ready: false, restartCount: 0, image: '', imageID: '', state }],
    } as Pod['status'],
    'n1',
  )

test('a run has started when its process runs, ended, or the pod is gone', () => {
  assert.equal(started(undefined).done, true)
  assert.deepEqual(started(pod({})), { done: false, waiting: 'pod p waits for a node' })
  assert.deepEqual(started(pod({}, 'n1')), { done: false, waiting: 'pod p waits for its volumes on n1' })
  assert.equal(started(withState({ running: {} })).done, true)
  assert.equal(started(withState({ terminated: { exitCode: 0 } })).done, true)
  assert.equal(started(withState({ waiting: { reason: 'CreateContainerError', message: 'no' } })).done, 'failed')
})

test('the exit code of a run is its container’s; a pod that failed without one is no success', () => {
  assert.deepEqual(exitOf(withState({ terminated: { exitCode: 9 } })), { done: true, value: 9 })
  assert.deepEqual(exitOf(undefined), { done: true, value: undefined })
  assert.equal(exitOf(withState({ running: {} })).done, false)
  assert.deepEqual(exitOf(pod({ phase: 'Failed', message: 'evicted' })), { done: 'failed', message: 'evicted' })
})

test('a size needs a unit: what is below a mebibyte is refused, with what was probably meant', () => {
  for (const fine of ['1Mi', '500Mi', '1.5Gi', '2T', '1048576']) assert.equal(sizeFrom(fine), fine)
  assert.throws(() => sizeFrom('10'), /"10" is 10 bytes; did you mean 10Mi or 10Gi\?/)
  assert.throws(() => sizeFrom('500m'), /"500m" is 1 byte; did you mean 500Mi or 500Gi\?/)
  assert.throws(() => sizeFrom('64k'), /"64k" is 64000 bytes; did you mean 64Mi or 64Gi\?/)
  assert.throws(() => sizeFrom('1GB'), /"1GB" is not a size; did you mean 1Gi or 1G\?/)
  assert.throws(() => sizeFrom('10 gib'), /did you mean 10Gi or 10G\?/)
  for (const wrong of ['', 'big', '0', '-1Gi', '1 Gi']) assert.throws(() => sizeFrom(wrong), /is not a size/)
})

test('claims become volumes of the pod, in order', () => {
  const made = podOf({ name: 'x', command: ['ls'], claim: [mountFrom('a:/a'), mountFrom('b:/b:ro')], node: 'n2' }, 'ns')
  assert.deepEqual(made.spec.volumes, [
    { name: 'claim-0', persistentVolumeClaim: { claimName: 'a' } },
    { name: 'claim-1', persistentVolumeClaim: { claimName: 'b' } },
  ])
  assert.deepEqual(made.spec.containers[0]?.volumeMounts, [
    { name: 'claim-0', mountPath: '/a' },
    { name: 'claim-1', mountPath: '/b', readOnly: true },
  ])
  assert.deepEqual(made.spec.nodeSelector, { 'kubernetes.io/hostname': 'n2' })
  for (const wrong of ['a', 'a:b', ':/a', 'a:/b:rx', 'a:/b:ro:x']) assert.throws(() => mountFrom(wrong), SyntaxError)
})

const claim = (status: object): PersistentVolumeClaim =>
  ({ metadata: { name: 'c' }, spec: {}, status }) as PersistentVolumeClaim
const condition = (type: string) => ({ phase: 'Bound', conditions: [{ type, status: 'True', message: 'm' }] })

test('a volume has grown when its capacity says so, or when only a pod is missing', () => {
  assert.deepEqual(sized(claim({ phase: 'Bound', capacity: { storage: '2Gi' } }), '2Gi', true), {
    done: true,
    value: { capacity: '2Gi', pending: false },
  })
  const tried = { allocatedResources: { storage: '2Gi' } }
  assert.deepEqual(sized(claim({ ...condition('FileSystemResizePending'), ...tried }), '2Gi', false).done, true)
  assert.deepEqual(
    sized(claim({ ...condition('FileSystemResizePending'), ...tried }), '3Gi', false).done,
    false,
    'what waits for a pod is an earlier growth',
  )
  assert.deepEqual(sized(claim(condition('FileSystemResizePending')), '2Gi', true), {
    done: false,
    waiting: 'growing the filesystem',
  })
  assert.deepEqual(sized(claim(condition('ControllerResizeError')), '2Gi', true), {
    done: false,
    waiting: 'resizing fails, it is tried again: m',
  })
  const infeasible = { ...condition('ControllerResizeError'), capacity: { storage: '1Gi' }, ...tried }
  const refused = claim({ ...infeasible, allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } })
  assert.deepEqual(sized(refused, '2Gi', true), {
    done: 'failed',
    message: 'c cannot have 2Gi: m',
    hint: 'hawser volume resize c SIZE (above the 1Gi that it has)',
  })
  assert.equal(sized(refused, '3Gi', true).done, false, 'it was refused another size')
  assert.equal(sized(undefined, '2Gi', true).done, 'failed')
})

test('a snapshot is ready when the driver says so; its errors are told', () => {
  const snapshot = (status: object) => ({ metadata: { name: 's' }, spec: { source: {} }, status })
  assert.deepEqual(readyToUse(snapshot({ readyToUse: true, restoreSize: '1Gi' })), { done: true, value: '1Gi' })
  assert.deepEqual(readyToUse(snapshot({ error: { message: 'full' } })), {
    done: false,
    waiting: 'the snapshot fails, it is tried again: full',
  })
  assert.equal(readyToUse(undefined).done, 'failed')
})

const node = (ready: boolean, volumesInUse: string[] = []): Node =>
  ({
    metadata: { name: 'n' },
    status: { volumesInUse, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }) as Node

test('detaching is safe only when a healthy node uses nothing and no pod wants it (FD-1, FD-3)', () => {
  const name = 'kubernetes.io/csi/d^h'
  const dangers = (facts: { node?: Node; pods?: Pod[] }) =>
    dangersOf({ node: facts.node, pods: facts.pods ?? [], uniqueName: name }, 'n').length
  assert.equal(dangers({ node: node(true) }), 0)
  assert.equal(dangers({ node: node(true, ['kubernetes.io/csi/d^other']) }), 0)
  assert.equal(dangers({ node: node(true, [name]) }), 1)
  assert.equal(dangers({ node: node(false) }), 1)
  assert.equal(dangers({}), 1)
  assert.equal(dangers({ node: node(true), pods: [pod({})] }), 1)
  assert.equal(dangersOf({ node: node(true, ['x']), pods: [], uniqueName: undefined }, 'n').length, 1)
})

test('what a claim’s volume, pods and attachments say comes together', () => {
  const bound = {
    metadata: { name: 'data', namespace: 'ns' },
    spec: { volumeName: 'pv', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  } as PersistentVolumeClaim
  const user = (name: string, phase: string) =>
    ({
      metadata: { name, namespace: 'ns' },
      spec: { containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
      status: { phase },
    }) as Pod
  const attachment = (nodeName: string, attached: boolean) => ({
    metadata: { name: nodeName },
    spec: { attacher: 'd', nodeName, source: { persistentVolumeName: 'pv' } },
    status: { attached },
  })
  const facts = factsOf(bound, {
    volumes: [
      {
        metadata: { name: 'pv' },
        spec: { csi: { driver: 'd', volumeHandle: 'h' }, persistentVolumeReclaimPolicy: 'Delete' },
      },
    ],
    pods: [user('runs', 'Running'), user('ended', 'Succeeded')],
    attachments: [attachment('n1', true), attachment('n2', false)],
    snapshots: [{ metadata: { name: 's', namespace: 'ns' }, spec: { source: { persistentVolumeClaimName: 'data' } } }],
  })
  assert.deepEqual([facts.usedBy, facts.attachedTo, facts.snapshots, facts.handle], [['runs'], ['n1'], ['s'], 'h'])
})

test('the plan of a deletion says what happens to the data', () => {
  const facts = { name: 'c', volume: 'pv', capacity: '1Gi', usedBy: [], snapshots: [] } as unknown as VolumeFacts
  assert.match(planOf({ ...facts, reclaimPolicy: 'Delete' }).join(), /all data on it will be deleted/)
  assert.match(planOf({ ...facts, reclaimPolicy: 'Retain' }).join(), /stays, with its data/)
  assert.match(planOf({ ...facts, usedBy: ['p'] }).join(), /nothing is deleted before these pods are gone/)
})

test('drivers that contradict themselves are found out', () => {
  const good = {
    name: 'a.b',
    version: '1',
    ready: true,
    plugin: ['CONTROLLER_SERVICE'],
    controller: [],
    node: [],
    nodeId: 'n',
    failures: {},
  }
  assert.deepEqual(contradictions(good), [])
  assert.equal(contradictions({ ...good, plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] }).length, 1)
  assert.equal(contradictions({ ...good, controller: ['LIST_VOLUMES_PUBLISHED_NODES'] }).length, 1)
  assert.equal(contradictions({ ...good, controller: ['PUBLISH_READONLY'] }).length, 1)
  assert.equal(contradictions({ ...good, nodeId: '' }).length, 1)
  assert.equal(contradictions({ ...good, name: '-x' }).length, 1)
})

test('words of the user', () => {
  assert.equal(modeFrom('rwx'), 'ReadWriteMany')
  assert.throws(() => modeFrom('x'), SyntaxError)
  assert.equal(sizeFrom('1.5Gi'), '1.5Gi')
  for (const wrong of ['0', '-1Gi', '1 Gi', 'x']) assert.throws(() => sizeFrom(wrong), SyntaxError)
  assert.equal(methodFrom('csi.v1.Node/NodeGetInfo').name, 'NodeGetInfo')
  assert.throws(() => methodFrom('Node/CreateVolume'), /no CSI call/)
  assert.equal(kindFrom('SC'), 'StorageClass')
  assert.equal(kindFrom('volumeattachments.storage.k8s.io'), 'VolumeAttachment')
  assert.throws(
    () => kindFrom('pvcx'),
    (error: { hint?: string }) => /pvc/.test(error.hint ?? ''),
  )
})

test('the demo says what it lacks', () => {
  const facts = {
    platform: 'linux',
    kernel: '6',
    uid: 1000,
    capabilities: 0n,
    tools: new Set<string>(),
    loopControl: false,
    fuse: true,
  }
  assert.equal(missingFor(facts).length, 4)
  assert.deepEqual(
    missingFor({
      ...facts,
      uid: 0,
      capabilities: 1n << 21n,
      tools: new Set(['mkfs.ext4', 'blkid']),
      loopControl: true,
    }),
    [],
  )
})

test('what holds an object that is being deleted is named: a dead node is not a grace period', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const leaving = { ...pod({}, 'n1'), metadata: { name: 'p', deletionTimestamp: '2026-01-01T00:00:20Z' } }
  const ready = (status: string) => ({ metadata: { name: 'n1' }, status: { conditions: [{ type: 'Ready', status }] } })
  const reasonOf = (around: object, at = now) => holderOf('Pod', leaving, around, at)
  assert.match(reasonOf({ node: ready('True') }), /its grace period ends in 20 s/)
  assert.match(reasonOf({ node: ready('True') }, now + 30_000), /node n1 stops it and unmounts its volumes/)
  assert.match(reasonOf({ node: ready('Unknown') }), /node n1 is not ready, so nothing confirms that the pod has ended/)
  assert.match(reasonOf({}), /node n1 does not exist/)
  const held = { metadata: { name: 'c', finalizers: ['kubernetes.io/pvc-protection'] } }
  const user: Pod = {
    metadata: { name: 'web' },
    spec: { containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
  }
  assert.equal(holderOf('PersistentVolumeClaim', held, { pods: [user] }, now), 'used by pod web')
  assert.equal(holderOf('PersistentVolumeClaim', held, {}, now), 'held by kubernetes.io/pvc-protection')
})

test('what is suggested keeps the namespace and names a command that knows the kind', () => {
  const ref = { name: 'a', namespace: 'shop' }
  assert.equal(askAbout('Pod', ref), 'hawser why pod/a -n shop')
  assert.equal(askAbout('ConfigMap', ref), 'hawser describe configmap/a -n shop')
  assert.equal(askAbout('Namespace', { name: 'shop' }), 'hawser get pods,pvc,volumesnapshots -n shop')
  assert.equal(askAbout('PersistentVolume', { name: 'v' }), 'hawser why persistentvolume/v')
})

test('tables align, durations are short', () => {
  assert.equal(
    table(
      ['A', 'BB'],
      [
        ['long', 'x'],
        ['s', ''],
      ],
    ),
    'A      BB\nlong   x\ns',
  )
  assert.deepEqual([850, 2_345, 61_000, 200_000, 9_000_000, 200_000_000].map(duration), [
    '850 ms',
    '2.3 s',
    '61 s',
    '3 min',
    '3 h',
    '2 d',
  ])
})

test('that a call had no effect is said as ours only where we know it, else as the driver’s word', () => {
  assert.equal(effectText('NodeAffinity', 'none'), 'it had no effect')
  assert.equal(effectText('INTERNAL', 'none'), 'by this status the driver says that it had no effect')
  assert.equal(effectText('UNAVAILABLE', 'unknown'), 'it may have had an effect')
  assert.equal(effectText('NOT_FOUND', 'untried'), 'it was not attempted')
  assert.equal(effectText('INTERNAL', undefined), '')
})
