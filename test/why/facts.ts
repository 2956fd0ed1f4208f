// Builders for the facts of a moment: one claim `data`, one volume `pv`, one pod `web`, one node `a`, one driver `d`.
import type {
  CSINode,
  Node,
  ObjectReference,
  OperationRecord,
  OperationRecordStatus,
  OperationWaiting,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  VolumeAttachment,
  VolumeAttributesClass,
  VolumeSnapshot,
  VolumeSnapshotContent,
} from '../../src/api/generated/types.ts'
import type { Facts, WhySubject } from '../../src/why/facts.ts'

const made = '2026-01-01T00:00:00Z'
const since = '2026-01-01T00:00:10.000Z'
const now = Date.parse('2026-01-01T00:01:00Z')

export function facts(subject: WhySubject, more: Partial<Facts>): Facts {
  return {
    now,
    subject,
    pods: [],
    claims: [],
    volumes: [],
    classes: [],
    attributesClasses: [],
    attachments: [],
    snapshots: [],
    snapshotContents: [],
    nodes: [],
    leases: [],
    csiNodes: [],
    csiDrivers: [],
    operations: [],
    missing: [],
    ...more,
  }
}

interface ClaimOptions {
  readonly phase: 'Pending' | 'Bound' | 'Lost'
  readonly className?: string | undefined
  readonly deleting?: boolean
  readonly request?: string
  readonly capacity?: string
  readonly condition?: string
  readonly namespace?: string
}

export function claim(options: ClaimOptions): PersistentVolumeClaim {
  const { phase, request = '1Gi', capacity = '1Gi', deleting, condition, namespace = 'default' } = options
  const className = 'className' in options ? options.className : 'fast'
  return {
    metadata: {
      name: 'data',
      namespace,
      uid: 'uid-data',
      creationTimestamp: made,
      ...(deleting ? { deletionTimestamp: since, finalizers: ['kubernetes.io/pvc-protection'] } : {}),
    },
    spec: {
      resources: { requests: { storage: request } },
      ...(className === undefined ? {} : { storageClassName: className }),
      ...(phase === 'Pending' ? {} : { volumeName: 'pv' }),
    },
    status: {
      phase,
      capacity: { storage: capacity },
      ...(condition ? { conditions: [{ type: condition, status: 'True' as const }] } : {}),
    },
  }
}

export function storageClass(options: { delayed?: boolean; expansion?: boolean } = {}): StorageClass {
  return {
    metadata: { name: 'fast' },
    provisioner: 'd',
    volumeBindingMode: options.delayed ? 'WaitForFirstConsumer' : 'Immediate',
    allowVolumeExpansion: options.expansion === true,
  }
}

interface VolumeOptions {
  readonly phase: 'Available' | 'Bound' | 'Released' | 'Failed'
  readonly policy?: 'Delete' | 'Retain'
  readonly mode?: 'Block' | 'Filesystem'
  readonly claimed?: boolean
  readonly deleting?: boolean
}

export function volume(options: VolumeOptions): PersistentVolume {
  return {
    metadata: {
      name: 'pv',
      creationTimestamp: made,
      ...(options.deleting ? { deletionTimestamp: since, finalizers: ['kubernetes.io/pv-protection'] } : {}),
    },
    spec: {
      persistentVolumeReclaimPolicy: options.policy ?? 'Delete',
      volumeMode: options.mode ?? 'Filesystem',
      csi: { driver: 'd', volumeHandle: 'h' },
      ...(options.claimed === false ? {} : { claimRef: { name: 'data', namespace: 'default', uid: 'uid-data' } }),
    },
    status: { phase: options.phase },
  }
}

export function snapshot(status: VolumeSnapshot['status'], deleting: readonly string[] = []): VolumeSnapshot {
  return {
    metadata: {
      name: 'snap',
      namespace: 'default',
      uid: 'uid-snap',
      creationTimestamp: made,
      ...(deleting.length > 0 ? { deletionTimestamp: since, finalizers: deleting } : {}),
    },
    spec: { source: { persistentVolumeClaimName: 'data' }, volumeSnapshotClassName: 'daily' },
    ...(status ? { status } : {}),
  }
}

export function snapshotContent(): VolumeSnapshotContent {
  return {
    metadata: { name: 'content', creationTimestamp: made },
    spec: {
      volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace: 'default', name: 'snap', uid: 'uid-snap' },
      deletionPolicy: 'Delete',
      driver: 'd',
      source: { volumeHandle: 'h' },
    },
  }
}

/** One that is being deleted. */
export function attributesClass(): VolumeAttributesClass {
  const finalizers = ['kubernetes.io/vac-protection']
  return {
    metadata: { name: 'gold', creationTimestamp: made, deletionTimestamp: since, finalizers },
    driverName: 'd',
  }
}

interface PodOptions {
  readonly node?: string
  readonly deleting?: boolean
  readonly gate?: string
  readonly configMap?: string
  readonly status?: object
}

export function pod(options: PodOptions = {}): Pod {
  const { node, deleting, gate, configMap, status = {} } = options
  const source = configMap ? { configMap: { name: configMap } } : { persistentVolumeClaim: { claimName: 'data' } }
  return {
    metadata: {
      name: 'web',
      namespace: 'default',
      uid: 'uid-web',
      creationTimestamp: made,
      ...(deleting ? { deletionTimestamp: since } : {}),
    },
    spec: {
      containers: [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/data' }] }],
      volumes: [{ name: 'v', ...source }],
      ...(node ? { nodeName: node } : {}),
      ...(gate ? { schedulingGates: [{ name: gate }] } : {}),
    },
    status: { phase: 'Pending', ...status },
  }
}

export function node(options: { ready?: 'True' | 'False' | 'Unknown'; runtime?: string } = {}): Node {
  return {
    metadata: { name: 'a', creationTimestamp: made },
    status: {
      conditions: [{ type: 'Ready', status: options.ready ?? 'True', lastTransitionTime: made }],
      nodeInfo: { containerRuntimeVersion: options.runtime ?? 'process://1' } as NonNullable<
        Node['status']
      >['nodeInfo'] &
        object,
    },
  }
}

export function csiNode(): CSINode {
  return { metadata: { name: 'a' }, spec: { drivers: [{ name: 'd', nodeID: 'a' }] } }
}

export function attachment(options: { attached?: boolean; error?: string; deleting?: boolean }): VolumeAttachment {
  return {
    metadata: {
      name: 'va',
      creationTimestamp: made,
      ...(options.deleting ? { deletionTimestamp: since, finalizers: ['external-attacher/d'] } : {}),
    },
    spec: { attacher: 'd', nodeName: 'a', source: { persistentVolumeName: 'pv' } },
    status: {
      attached: options.attached === true,
      ...(options.error ? { attachError: { message: options.error } } : {}),
    },
  }
}

export function record(
  actor: string,
  operation: string,
  objects: readonly ObjectReference[],
  status: OperationRecordStatus,
  more: { readonly pod?: string; readonly node?: string } = {},
): OperationRecord {
  return { metadata: { name: `${operation}-${actor}` }, spec: { actor, operation, objects, ...more }, status }
}

export function waits(
  actor: string,
  on: ObjectReference,
  reason: string,
  more: Partial<OperationWaiting> = {},
): OperationRecord {
  return record(actor, 'wait', [on], { phase: 'Waiting', waiting: [{ reason, since, ...more }] })
}

export function failed(
  actor: string,
  operation: string,
  objects: readonly ObjectReference[],
  code: string,
  more: { readonly pod?: string; readonly node?: string } = {},
): OperationRecord {
  const status: OperationRecordStatus = {
    phase: 'Failed',
    step: 'SetUp',
    startedAt: since,
    finishedAt: since,
    error: { code, message: 'own words', effect: 'none' },
    attempts: 3,
    nextTry: '2026-01-01T00:01:10.000Z',
  }
  return record(actor, operation, objects, status, more)
}
