// The facts of a moment, one row per cause of `why` at least, and what they come to.
import type { Node, VolumeSnapshot } from '../../src/api/generated/types.ts'
import type { Cause } from '../../src/why/causes.ts'
import type { Facts } from '../../src/why/facts.ts'
import {
  attachment,
  attributesClass,
  claim,
  csiNode,
  facts,
  failed,
  node,
  pod,
  record,
  snapshot,
  snapshotContent,
  storageClass,
  volume,
  waits,
} from './facts.ts'

export type Row = readonly [cause: Cause, facts: Facts]

export const onClaim = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }
export const onVolume = { kind: 'PersistentVolume', name: 'pv' }
export const onPod = { kind: 'Pod', namespace: 'default', name: 'web', uid: 'uid-web' }
export const ofClaim = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' } as const
export const ofPod = { kind: 'Pod', namespace: 'default', name: 'web' } as const
export const ofVolume = { kind: 'PersistentVolume', name: 'pv' } as const
const ofClass = { kind: 'VolumeAttributesClass', name: 'gold' } as const
export const ofNode = { kind: 'Node', name: 'a' } as const
const ofAttachment = { kind: 'VolumeAttachment', name: 'va' } as const

export const pending = (reason: string, more: Partial<Facts> = {}) =>
  facts(ofClaim, {
    claims: [claim({ phase: 'Pending' })],
    classes: [storageClass()],
    csiNodes: [csiNode()],
    operations: [waits('binding', onClaim, reason)],
    ...more,
  })
const provisionFailed = (code: string) =>
  pending('externalProvisioner', {
    operations: [waits('binding', onClaim, 'externalProvisioner'), failed('csi d', 'provision', [onClaim], code)],
  })
const released = (more: Partial<Facts> = {}, policy: 'Delete' | 'Retain' = 'Delete') =>
  facts(ofVolume, { volumes: [volume({ phase: 'Released', policy })], ...more })

/** A pod on node a whose claim is bound; what follows is attach, mount, start. */
const placed = (more: Partial<Facts> = {}) =>
  facts(ofPod, {
    pods: [pod({ node: 'a' })],
    claims: [claim({ phase: 'Bound' })],
    volumes: [volume({ phase: 'Bound' })],
    nodes: [node()],
    csiNodes: [csiNode()],
    ...more,
  })
const attached = { attachments: [attachment({ attached: true })] }
const attachWaits = (reason: string, message?: string) =>
  placed({ operations: [waits('attachment', onVolume, reason, { node: 'a', ...(message ? { message } : {}) })] })
const leaving = (reason: string) =>
  facts(ofAttachment, {
    volumes: [volume({ phase: 'Bound' })],
    attachments: [attachment({ attached: true })],
    operations: [waits('attachment', onVolume, reason, { node: 'a' })],
  })
const nodeWaits = (reason: string) =>
  placed({ ...attached, operations: [waits('node a', onVolume, reason, { node: 'a', pod: 'uid-web' })] })
export const mountFailed = (code: string) =>
  placed({
    ...attached,
    operations: [
      failed('node a', 'volume_mount', [onVolume, onPod], code, { pod: 'uid-web' }),
      waits('node a', onVolume, 'backingOff', { node: 'a', pod: 'uid-web' }),
    ],
  })
export const started = (status: object, more: Partial<Facts> = {}) =>
  placed({ ...attached, pods: [pod({ node: 'a', status })], ...more })
const going = (more: Partial<Facts>, status: object = {}) =>
  placed({ pods: [pod({ node: 'a', deleting: true, status })], ...more })
const held = (deletionGracePeriodSeconds: number) => {
  const { metadata, ...rest } = pod({ node: 'a', deleting: true })
  return { ...rest, metadata: { ...metadata, deletionGracePeriodSeconds, finalizers: ['example.com/hold'] } }
}
const unplaced = (more: Partial<Facts>) =>
  facts(ofPod, {
    pods: [pod()],
    claims: [claim({ phase: 'Bound' })],
    volumes: [volume({ phase: 'Bound' })],
    nodes: [node()],
    ...more,
  })
const growing = (more: Partial<Facts> = {}, condition?: string) =>
  facts(ofClaim, {
    claims: [claim({ phase: 'Bound', request: '2Gi', capacity: '1Gi', ...(condition ? { condition } : {}) })],
    volumes: [volume({ phase: 'Bound' })],
    classes: [storageClass({ expansion: true })],
    ...more,
  })

const conditions = ['FileSystemResizePending', 'NodeResizeError'].map((type) => ({
  type,
  status: 'True' as const,
  message: 'not while it is mounted',
  lastTransitionTime: '2026-01-01T00:00:30Z',
}))
const grown = claim({ phase: 'Bound', request: '2Gi', capacity: '1Gi' })
const refusedOnNode = growing({
  claims: [{ ...grown, status: { ...grown.status, conditions } }],
  pods: [pod({ node: 'a' })],
})

const bound = claim({ phase: 'Bound' })
const changing = (more: Partial<Facts>) =>
  facts(ofClaim, {
    claims: [{ ...bound, spec: { ...bound.spec, volumeAttributesClassName: 'gold' } }],
    volumes: [volume({ phase: 'Bound' })],
    attributesClasses: [attributesClass()],
    csiNodes: [csiNode()],
    ...more,
  })
const ill = waits('csi d', onClaim, 'volumeAbnormal', { message: 'strange noises' })
const heldBy = (finalizer: string) => {
  const going = claim({ phase: 'Bound', deleting: true })
  return { ...going, metadata: { ...going.metadata, finalizers: [finalizer] } }
}
export const offered = volume({ phase: 'Available', claimed: false })
const ofClassFast = { ...offered, spec: { ...offered.spec, storageClassName: 'fast' } }

const claimRows: readonly Row[] = [
  ['noVolumeFits', pending('noVolumeFits', { claims: [claim({ phase: 'Pending', className: '' })] })],
  ['classMissing', pending('classMissing')],
  ['classMissing', facts(ofClaim, { claims: [claim({ phase: 'Pending' })] })],
  // A name without a class, on volumes made by hand.
  ['noVolumeFits', pending('classMissing', { volumes: [ofClassFast] })],
  ['noVolumeFits', facts(ofClaim, { claims: [claim({ phase: 'Pending' })], volumes: [ofClassFast] })],
  ['noDefaultClass', pending('noVolumeFits', { claims: [claim({ phase: 'Pending', className: undefined })] })],
  ['firstConsumer', pending('firstConsumer')],
  ['podUnscheduled', pending('podUnscheduled')],
  [
    'placedByHand',
    pending('podUnscheduled', { classes: [storageClass({ delayed: true })], pods: [pod({ node: 'a' })] }),
  ],
  ['askedProvisioner', pending('externalProvisioner')],
  ['provisionerAbsent', pending('externalProvisioner', { csiNodes: [] })],
  [
    'provisioning',
    pending('externalProvisioner', {
      operations: [
        waits('binding', onClaim, 'externalProvisioner'),
        record('csi d', 'provision', [onClaim], { phase: 'Running' }),
      ],
    }),
  ],
  ['noProvisioner', pending('noProvisioner')],
  ['provisioningFailed', pending('provisioningFailed')],
  ['provisioningFailed', provisionFailed('SomethingNew')],
  ['provisioningDisabled', pending('provisioningDisabled')],
  ['namedVolumeMissing', pending('namedVolumeMissing')],
  ['namedVolumeUnfit', pending('namedVolumeUnfit')],
  ['namedVolumeTaken', pending('namedVolumeTaken')],
  ['volumeLost', facts(ofClaim, { claims: [claim({ phase: 'Lost' })] })],
  ['volumeLost', pending('volumeLost', { claims: [claim({ phase: 'Lost' })] })],
  ['provisioning', pending('provisioning')],
  [
    'claimProtected',
    facts(ofClaim, {
      claims: [claim({ phase: 'Bound', deleting: true })],
      pods: [pod({ node: 'a' })],
      operations: [waits('protection', onClaim, 'protectedByPods')],
    }),
  ],
  ['misbound', facts(ofClaim, { claims: [claim({ phase: 'Lost' })], volumes: [volume({ phase: 'Available' })] })],
  ['reservedUnfit', pending('classMissing', { volumes: [volume({ phase: 'Available', mode: 'Block' })] })],
  ['misbound', pending('misbound')],
  ['volumeBusy', pending('volumeBusy')],
  ['retrying', pending('retrying')],
  ['classForbidsExpansion', growing({ classes: [storageClass()] })],
  ['driverAbsent', growing({ operations: [waits('expansion', onClaim, 'externalResizer')] })],
  ['askedResizer', growing({ csiNodes: [csiNode()], operations: [waits('expansion', onClaim, 'externalResizer')] })],
  ['expansionFailed', growing({ operations: [failed('csi d', 'expand', [onClaim], 'SomethingNew')] })],
  ['noRoomToGrow', growing({ operations: [failed('csi d', 'expand', [onClaim], 'RESOURCE_EXHAUSTED')] })],
  ['growsOnlyUnused', growing({ operations: [failed('csi d', 'expand', [onClaim], 'GrowsOnlyUnused')] })],
  [
    'outOfRange',
    growing(
      { operations: [failed('node a', 'volume_fs_resize', [onVolume], 'OUT_OF_RANGE')] },
      'FileSystemResizePending',
    ),
  ],
  ['growsAtNextMount', refusedOnNode],
  ['nodeMustExpand', growing({}, 'FileSystemResizePending')],
  ['attributesClassMissing', changing({ attributesClasses: [] })],
  ['attributesClassForeign', changing({ attributesClasses: [{ ...attributesClass(), driverName: 'other' }] })],
  ['modifyFailed', changing({ operations: [failed('csi d', 'modify', [onClaim], 'SomethingNew')] })],
  ['badParameters', changing({ operations: [failed('csi d', 'modify', [onClaim], 'INVALID_ARGUMENT')] })],
  ['modifying', changing({})],
  ['driverAbsent', changing({ csiNodes: [] })],
  ['volumeIll', facts(ofClaim, { claims: [claim({ phase: 'Bound' })], operations: [ill] })],
  [
    'claimProtected',
    facts(ofClaim, { claims: [claim({ phase: 'Bound', deleting: true })], pods: [pod({ node: 'a' })] }),
  ],
  ['finalizersHold', facts(ofClaim, { claims: [claim({ phase: 'Bound', deleting: true })] })],
  ['claimIsSource', facts(ofClaim, { claims: [heldBy('provisioner.storage.kubernetes.io/cloning-protection')] })],
  ['claimIsSource', facts(ofClaim, { claims: [heldBy('snapshot.storage.kubernetes.io/pvc-as-source-protection')] })],
]

const onDriver = { kind: 'CSIDriver', name: 'd' }
const connection = (reason: string) =>
  pending('externalProvisioner', {
    operations: [waits('binding', onClaim, 'externalProvisioner'), away(reason)],
  })
const away = (reason: string) => {
  const { spec, ...rest } = waits('csi d', onDriver, reason)
  return { ...rest, spec: { ...spec, operation: 'connect', endpoint: '/run/d.sock' } }
}
const hanging = { phase: 'Running', step: 'SetUp', startedAt: '2026-01-01T00:00:10.000Z' } as const

const chosenFor = (node: string, all: Facts): Facts => ({
  ...all,
  claims: all.claims.map((each) => ({
    ...each,
    metadata: { ...each.metadata, annotations: { 'hawser.dev/chosen-node': node } },
  })),
})

const driverRows: readonly Row[] = [
  ['driverUnavailable', connection('driverUnreachable')],
  ['driverSilent', connection('driverSilent')],
  ['driverUnready', connection('driverUnready')],
  ['driverUnready', connection('driverRefuses')],
  ['callHangs', placed({ ...attached, operations: [record('node a', 'volume_mount', [onVolume, onPod], hanging)] })],
  [
    'workHangs',
    placed({
      pods: [pod({ node: 'a', configMap: 'settings' })],
      operations: [record('node a', 'volume_mount', [onPod], hanging)],
    }),
  ],
  ['sourceMissing', provisionFailed('SnapshotMissing')],
  ['sourceTooLarge', provisionFailed('SourceTooLarge')],
  ['answerInvalid', provisionFailed('AnswerInvalid')],
  ['callWithoutEffect', mountFailed('WithoutEffect')],
  ['driverUnavailable', provisionFailed('DriverUnreachable')],
  ['driverSaysUnavailable', provisionFailed('UNAVAILABLE')],
  ['driverTimeout', provisionFailed('DEADLINE_EXCEEDED')],
  ['driverBusy', provisionFailed('ABORTED')],
  ['outOfCapacity', provisionFailed('RESOURCE_EXHAUSTED')],
  ['nodeFull', chosenFor('a', provisionFailed('RESOURCE_EXHAUSTED'))],
  ['badParameters', provisionFailed('INVALID_ARGUMENT')],
  ['outOfRange', provisionFailed('OUT_OF_RANGE')],
  ['storageGone', mountFailed('NOT_FOUND')],
  ['alreadyExists', provisionFailed('ALREADY_EXISTS')],
  ['driverForbids', provisionFailed('PERMISSION_DENIED')],
  ['preconditionFailed', mountFailed('FAILED_PRECONDITION')],
  ['notSupported', mountFailed('UNIMPLEMENTED')],
  ['driverError', mountFailed('INTERNAL')],
  ['answerRefused', provisionFailed('AnswerRefused')],
  ['sourceNotReady', provisionFailed('SnapshotNotReady')],
  ['sourceUnusable', provisionFailed('SourceForeign')],
  ['selectorUnsupported', provisionFailed('SelectorUnsupported')],
  ['topologyMissing', provisionFailed('TopologyMissing')],
  ['secretMissing', mountFailed('SecretUnread')],
  ['driverNotOnNode', placed({ ...attached, csiNodes: [] })],
  ['driverNotOnNode', mountFailed('DriverMissing')],
]

const standing = (phase: 'Available' | 'Released' | 'Bound', reason: string, deleting = false) =>
  facts(ofVolume, { volumes: [volume({ phase, deleting })], operations: [waits('binding', onVolume, reason)] })

const volumeRows: readonly Row[] = [
  ['reserved', facts(ofVolume, { volumes: [volume({ phase: 'Available' })] })],
  ['reserved', standing('Available', 'reserved')],
  ['retained', standing('Released', 'retained')],
  ['askedDeleter', { ...standing('Released', 'externalDeleter'), csiNodes: [csiNode()] }],
  ['volumeProtected', standing('Bound', 'protectedByClaim', true)],
  [
    'reservedUnfit',
    facts(ofVolume, {
      volumes: [volume({ phase: 'Available', mode: 'Block' })],
      claims: [claim({ phase: 'Pending' })],
    }),
  ],
  ['misbound', facts(ofVolume, { volumes: [volume({ phase: 'Available' })], claims: [claim({ phase: 'Lost' })] })],
  ['retained', released({}, 'Retain')],
  ['askedDeleter', released({ csiNodes: [csiNode()] })],
  ['driverAbsent', released()],
  ['reclaiming', released({ operations: [waits('binding', onVolume, 'reclaiming')] })],
  ['reclaimFailed', released({ operations: [waits('binding', onVolume, 'reclaimFailed')] })],
  ['stillAttached', released({ operations: [failed('csi d', 'delete', [onVolume], 'StillAttached')] })],
  ['storageShared', released({ operations: [failed('csi d', 'delete', [onVolume], 'HandleShared')] })],
  ['usedByPods', released({ operations: [waits('binding', onVolume, 'usedByPods')] })],
  ['volumeProtected', facts(ofVolume, { volumes: [volume({ phase: 'Bound', deleting: true })] })],
  ['volumeFailed', facts(ofVolume, { volumes: [volume({ phase: 'Failed' })] })],
  [
    'classProtected',
    facts(ofClass, {
      attributesClasses: [attributesClass()],
      operations: [waits('protection', { ...ofClass }, 'protectedByReferences')],
    }),
  ],
  ['finalizersHold', facts(ofClass, { attributesClasses: [attributesClass()] })],
]

const attachmentRows: readonly Row[] = [
  ['inUse', leaving('inUse')],
  ['inUseOnUnhealthyNode', leaving('inUseOnUnhealthyNode')],
  ['forceDetachDisabled', leaving('forceDetachDisabled')],
  ['attachedElsewhere', attachWaits('attachedElsewhere', 'b')],
  ['maybeAttachedElsewhere', attachWaits('maybeAttachedElsewhere', 'b')],
  ['anotherNodeFirst', attachWaits('anotherNodeFirst', 'b')],
  ['attachRunning', placed({ operations: [record('attachment', 'volume_attach', [onVolume], { phase: 'Running' })] })],
  ['attachFailed', placed({ attachments: [attachment({ error: 'no path to the disk' })] })],
  ['attachFailed', placed({ operations: [failed('attachment', 'volume_attach', [onVolume], 'SomethingNew')] })],
  ['attacherSilent', placed({ attachments: [attachment({})] })],
  ['attachLimit', placed({ operations: [failed('attachment', 'volume_attach', [onVolume], 'RESOURCE_EXHAUSTED')] })],
  ['nodeUnknownToDriver', placed({ operations: [failed('attachment', 'volume_attach', [onVolume], 'NodeUnknown')] })],
  [
    'detachFailed',
    facts(ofAttachment, {
      attachments: [attachment({ deleting: true })],
      operations: [failed('csi d', 'attach', [{ kind: 'VolumeAttachment', name: 'va' }], 'SomethingNew')],
    }),
  ],
  ['detaching', facts(ofAttachment, { attachments: [attachment({ deleting: true })] })],
  ['nobodyAttaches', placed({})],
  ['attachmentOrphaned', facts(ofAttachment, { attachments: [attachment({ attached: true })] })],
  ['notAttached', nodeWaits('notAttached')],
  ['notReportedInUse', nodeWaits('notReportedInUse')],
]

const unmountFailed = failed('node a', 'volume_unmount', [onPod], 'SomethingNew')
const scratch = { name: 'v', ephemeral: {} }
const ephemeral = (more: Partial<Facts>) =>
  unplaced({ claims: [], pods: [{ ...pod(), spec: { containers: [], volumes: [scratch] } }], ...more })

const withDiskPressure = (healthy: Node): Node => {
  const low = { type: 'DiskPressure', status: 'True', message: 'the disk of /d has 1 MiB left' } as const
  return { ...healthy, status: { ...healthy.status, conditions: [...(healthy.status?.conditions ?? []), low] } }
}

const nodeRows: readonly Row[] = [
  ['noNodes', unplaced({ nodes: [] })],
  ['noNodeFits', unplaced({ operations: [waits('placement', onPod, 'noNodeFits', { message: '0/1 nodes' })] })],
  ['volumesBeingBound', unplaced({ operations: [waits('placement', onPod, 'bindingVolumes')] })],
  ['noScheduler', unplaced({})],
  ['schedulingGated', unplaced({ pods: [pod({ gate: 'example.com/wait' })] })],
  ['nodeGone', placed({ nodes: [] })],
  ['nodeNotReady', placed({ nodes: [node({ ready: 'Unknown' })] })],
  ['nodeNotReady', facts({ kind: 'Node', name: 'a' }, { nodes: [node({ ready: 'False' })] })],
  ['diskPressure', facts(ofNode, { nodes: [withDiskPressure(node())] })],
  [
    'nodeNotReady',
    placed({ leases: [{ metadata: { name: 'a' }, spec: { renewTime: '2025-12-31T23:00:00.000000Z' } }] }),
  ],
  ['claimMissing', placed({ claims: [] })],
  ['claimDeleting', placed({ claims: [claim({ phase: 'Bound', deleting: true })] })],
  [
    'foreignClaim',
    ephemeral({ claims: [{ ...claim({ phase: 'Bound' }), metadata: { name: 'web-v', namespace: 'default' } }] }),
  ],
  ['foreignClaim', ephemeral({ operations: [waits('ephemeral', onPod, 'foreignClaim')] })],
  ['claimNotMade', ephemeral({ operations: [waits('ephemeral', onPod, 'retrying')] })],
  ['modeMismatch', placed({ ...attached, volumes: [volume({ phase: 'Bound', mode: 'Block' })] })],
  ['configMissing', placed({ pods: [pod({ node: 'a', configMap: 'settings' })], missing: ['ConfigMap settings'] })],
  ['volumesUnresolved', placed({ ...attached, operations: [waits('node a', onPod, 'volumesUnresolved')] })],
  ['pluginMissing', placed({ ...attached, operations: [waits('node a', onPod, 'pluginMissing')] })],
  ['podListIncomplete', nodeWaits('podListIncomplete')],
  ['devicePathUnread', nodeWaits('devicePathUnread')],
  ['labelMismatch', nodeWaits('labelMismatch')],
  ['claimsUnresolved', nodeWaits('claimsUnresolved')],
  [
    'mountRunning',
    placed({ ...attached, operations: [record('node a', 'volume_mount', [onVolume, onPod], { phase: 'Running' })] }),
  ],
  ['mountFailed', mountFailed('SomethingNew')],
  ['unmountFailed', going({ operations: [unmountFailed] })],
  ['unmounting', going({ operations: [record('node a', 'volume_unmount', [onVolume, onPod], { phase: 'Running' })] })],
  ['nodeSilent', going({})],
  ['nodeSilent', going({ pods: [held(30)] })],
  ['finalizersHold', going({ pods: [held(0)] })],
  ['deviceBusy', going({ operations: [failed('node a', 'pod_sync', [onPod], 'EBUSY')] })],
  ['unmountFailed', going({ operations: [unmountFailed, failed('node a', 'pod_sync', [onPod], 'ENOTEMPTY')] })],
  ['readOnlyStorage', placed({ ...attached, operations: [failed('node a', 'pod_sync', [onPod], 'EROFS')] })],
  [
    'readOnlyStorage',
    facts(ofNode, { nodes: [node()], operations: [failed('node a', 'pod_sync', [onPod], 'EROFS', { node: 'a' })] }),
  ],
  [
    'podStopping',
    facts(ofNode, { nodes: [node()], operations: [waits('node a', onVolume, 'containersRunning', { node: 'a' })] }),
  ],
  ['podStopping', going({}, { containerStatuses: [{ name: 'c', state: { running: {} } }] })],
  [
    'containerNotStarted',
    started({ containerStatuses: [{ name: 'c', state: { waiting: { reason: 'CreateContainerError' } } }] }),
  ],
  [
    'subPathLeaves',
    started(
      { containerStatuses: [{ name: 'c', state: { waiting: { reason: 'CreateContainerConfigError' } } }] },
      {
        operations: [
          record(
            'node a',
            'container_start',
            [onPod],
            { phase: 'Failed', step: 'c', error: { code: 'SubPathLeaves', message: 'own words' } },
            { pod: 'uid-web', node: 'a' },
          ),
        ],
      },
    ),
  ],
  [
    'noCommand',
    started(
      { containerStatuses: [{ name: 'c', image: 'nginx', state: { waiting: { reason: 'CreateContainerError' } } }] },
      { nodes: [node({ runtime: 'hawser-processes://1' })] },
    ),
  ],
  ['crashLoop', started({ containerStatuses: [{ name: 'c', state: { waiting: { reason: 'CrashLoopBackOff' } } }] })],
  [
    'containerNotStarted',
    started({
      containerStatuses: [
        {
          name: 'c',
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 127, reason: 'ContainerCannotRun' } },
        },
      ],
    }),
  ],
  [
    'notReady',
    started({
      phase: 'Running',
      containerStatuses: [{ name: 'c', ready: false, restartCount: 0, state: { running: {} } }],
      conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    }),
  ],
  ['podFailed', started({ phase: 'Failed' })],
  ['noRuntime', started({ phase: 'Pending' }, { nodes: [node({ runtime: 'none://1' })] })],
  ['nodeAffinityConflict', mountFailed('NodeAffinity')],
  ['singlePodWriter', mountFailed('SinglePodWriter')],
  ['mountOptionsRefused', mountFailed('MountOptions')],
  ['deviceBusy', mountFailed('EBUSY')],
  ['storageHangs', mountFailed('HUNG')],
  ['mountIsStale', mountFailed('ESTALE')],
  ['ioError', mountFailed('EIO')],
  ['noSpaceOnNode', mountFailed('ENOSPC')],
  ['permissionDenied', mountFailed('EPERM')],
  ['readOnlyStorage', mountFailed('EROFS')],
  ['programMissing', mountFailed('NOPROGRAM')],
  ['wrongFilesystem', mountFailed('FilesystemMismatch')],
  ['wrongFilesystem', mountFailed('HasFilesystemErrors')],
  ['unformattedReadOnly', mountFailed('UnformattedReadOnly')],
  ['pathUnfit', mountFailed('WrongType')],
  ['storageUnreachable', mountFailed('LoginFailed')],
  ['keyMissing', mountFailed('KeyMissing')],
  ['tokenUnavailable', mountFailed('TokenUnavailable')],
  ['imageMissing', mountFailed('ImageMissing')],
  ['volumeSpecInvalid', mountFailed('HugePagesNotRequested')],
  ['ownershipFailed', mountFailed('OwnershipFailed')],
  ['pluginMissing', mountFailed('NoPluginMatched')],
  ['savedStateBroken', mountFailed('SavedDataBroken')],
  ['nodeSilent', placed(attached)],
  [
    'volumeIll',
    started(
      { phase: 'Running', containerStatuses: [{ name: 'c', restartCount: 0, state: { running: {} } }] },
      { operations: [ill] },
    ),
  ],
  [
    'initRunning',
    started({
      initContainerStatuses: [{ name: 'i', state: { running: {} } }],
      containerStatuses: [{ name: 'c', state: { waiting: { reason: 'PodInitializing' } } }],
    }),
  ],
  [
    'containerStarting',
    started({
      conditions: [{ type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
      containerStatuses: [{ name: 'c', state: { waiting: { reason: 'ContainerCreating' } } }],
    }),
  ],
  [
    'mountRunning',
    placed({
      pods: [pod({ node: 'a', configMap: 'settings' })],
      operations: [record('node a', 'volume_mount', [onPod], { phase: 'Running', step: 'SetUp' })],
    }),
  ],
  ['busy', nodeWaits('busy')],
]

const ofSnapshot = { kind: 'VolumeSnapshot', namespace: 'default', name: 'snap' } as const
const onSnapshot = { kind: 'VolumeSnapshot', namespace: 'default', name: 'snap' }
const onContent = { kind: 'VolumeSnapshotContent', name: 'content' }
const wishedFor = (more: Partial<Facts>, status?: VolumeSnapshot['status']) =>
  facts(ofSnapshot, {
    snapshots: [snapshot(status)],
    claims: [claim({ phase: 'Bound' })],
    volumes: [volume({ phase: 'Bound' })],
    csiNodes: [csiNode()],
    ...more,
  })
const notBound = (code: string) => wishedFor({ operations: [failed('csi snapshots', 'snapshot', [onSnapshot], code)] })
export const described = (more: Partial<Facts> = {}) => wishedFor({ snapshotContents: [snapshotContent()], ...more })
const leavingSnapshot = (finalizer: string, more: Partial<Facts> = {}) =>
  described({ snapshots: [snapshot({ boundVolumeSnapshotContentName: 'content' }, [finalizer])], ...more })

const snapshotRows: readonly Row[] = [
  ['snapshotSourceMissing', wishedFor({ claims: [] })],
  ['snapshotClassMissing', notBound('ClassMissing')],
  ['snapshotSourceUnbound', notBound('SourceUnbound')],
  ['snapshotClassForeign', notBound('SnapshotClassForeign')],
  ['snapshotFailed', notBound('SomethingNew')],
  ['snapshotRunning', described()],
  ['driverAbsent', described({ csiNodes: [] })],
  ['outOfCapacity', described({ operations: [failed('csi d', 'snapshot', [onContent], 'RESOURCE_EXHAUSTED')] })],
  ['snapshotUnknown', described({ operations: [failed('csi d', 'snapshot', [onContent], 'SnapshotMissing')] })],
  ['snapshotInUse', leavingSnapshot('provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection')],
  ['finalizersHold', leavingSnapshot('snapshot.storage.kubernetes.io/volumesnapshot-bound-protection')],
  ['driverAbsent', leavingSnapshot('snapshot.storage.kubernetes.io/volumesnapshot-bound-protection', { csiNodes: [] })],
  [
    'driverSaysUnavailable',
    leavingSnapshot('snapshot.storage.kubernetes.io/volumesnapshot-bound-protection', {
      operations: [failed('csi d', 'snapshot', [onContent], 'UNAVAILABLE')],
    }),
  ],
]

export const rows: readonly Row[] = [
  ...snapshotRows,
  ...claimRows,
  ...driverRows,
  ...volumeRows,
  ...attachmentRows,
  ...nodeRows,
]
