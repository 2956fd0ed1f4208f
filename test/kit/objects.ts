// What do the objects of the tests look like? `claim`, `volume`, `pod` … as they are stored, `claimRequest` … as somebody
// writes them. Sensible defaults, overrides where the test cares.
import type { KubeObject } from '../../src/api/meta.ts'
import type {
  Node,
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../src/api/generated/types.ts'

type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod'

export interface ClaimWishes {
  readonly name?: string
  readonly uid?: string
  readonly request?: string
  readonly modes?: readonly AccessMode[]
  /** null leaves the field out. */
  readonly className?: string | null
  readonly volumeName?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly phase?: 'Pending' | 'Bound' | 'Lost'
  readonly capacity?: string
  readonly deleting?: boolean
  readonly spec?: Partial<PersistentVolumeClaim['spec']>
}

export function claim(wishes: ClaimWishes = {}): PersistentVolumeClaim {
  const { name = 'c', uid = `uid-${name}`, request = '1Gi', modes = ['ReadWriteOnce'], className = '' } = wishes
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: 'ns',
      uid,
      resourceVersion: '1',
      ...(wishes.annotations === undefined ? {} : { annotations: wishes.annotations }),
      ...(wishes.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      accessModes: modes,
      resources: { requests: { storage: request } },
      volumeMode: 'Filesystem',
      ...(className === null ? {} : { storageClassName: className }),
      ...(wishes.volumeName === undefined ? {} : { volumeName: wishes.volumeName }),
      ...wishes.spec,
    },
    status: {
      phase: wishes.phase ?? 'Pending',
      ...(wishes.capacity === undefined ? {} : { capacity: { storage: wishes.capacity } }),
    },
  }
}

export interface VolumeWishes {
  readonly name?: string
  readonly size?: string
  readonly modes?: readonly AccessMode[]
  readonly className?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly claimRef?: { readonly name: string; readonly uid?: string }
  readonly phase?: 'Pending' | 'Available' | 'Bound' | 'Released' | 'Failed'
  readonly policy?: 'Retain' | 'Delete' | 'Recycle'
  readonly deleting?: boolean
  readonly spec?: Partial<PersistentVolume['spec']>
}

export function volume(wishes: VolumeWishes = {}): PersistentVolume {
  const { name = 'v', size = '1Gi', modes = ['ReadWriteOnce'], className = '' } = wishes
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      ...(wishes.labels === undefined ? {} : { labels: wishes.labels }),
      ...(wishes.annotations === undefined ? {} : { annotations: wishes.annotations }),
      ...(wishes.finalizers === undefined ? {} : { finalizers: wishes.finalizers }),
      ...(wishes.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      capacity: { storage: size },
      accessModes: modes,
      storageClassName: className,
      volumeMode: 'Filesystem',
      persistentVolumeReclaimPolicy: wishes.policy ?? 'Retain',
      ...(wishes.claimRef === undefined ? {} : { claimRef: { namespace: 'ns', ...wishes.claimRef } }),
      ...(hasSource(wishes.spec) ? {} : { hostPath: { path: `/tmp/${name}` } }),
      ...wishes.spec,
    },
    status: { phase: wishes.phase ?? 'Available' },
  }
}

export function storageClass(
  name: string,
  wishes: Partial<StorageClass> & { readonly isDefault?: boolean; readonly born?: string } = {},
): StorageClass {
  const { isDefault, born, ...rest } = wishes
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      ...(born === undefined ? {} : { creationTimestamp: born }),
      ...(isDefault === true ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}),
    },
    provisioner: 'csi.example.com',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    ...rest,
  }
}

export function pod(
  name: string,
  wishes: {
    readonly claims?: readonly string[]
    readonly node?: string
    readonly spec?: Partial<Pod['spec']>
    readonly status?: Pod['status']
    readonly deleting?: boolean
    readonly uid?: string
  } = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'ns',
      uid: wishes.uid ?? `uid-${name}`,
      resourceVersion: '1',
      ...(wishes.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      containers: [{ name: 'c', image: 'x' }],
      volumes: (wishes.claims ?? []).map((claimName, at) => ({ name: `v${at}`, persistentVolumeClaim: { claimName } })),
      ...(wishes.node === undefined ? {} : { nodeName: wishes.node }),
      ...wishes.spec,
    },
    ...(wishes.status === undefined ? {} : { status: wishes.status }),
  }
}

export function node(name: string, labels: Readonly<Record<string, string>> = {}, rest: Partial<Node> = {}): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: `uid-${name}`, resourceVersion: '1', labels: { 'kubernetes.io/hostname': name, ...labels } },
    spec: {},
    ...rest,
    status: { conditions: [{ type: 'Ready', status: 'True' }], ...rest.status },
  }
}

/** A claim as a user writes it. */
export function claimRequest(
  name: string,
  spec: Partial<PersistentVolumeClaim['spec']> = {},
  metadata: Partial<ObjectMeta> = { namespace: 'default' },
): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  }
}

/** A volume as an administrator writes it. */
export function volumeRequest(name: string, spec: Partial<PersistentVolume['spec']> = {}): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
  }
}

/** A pod as a user writes it, with one container. */
export function podRequest(
  name: string,
  spec: Partial<NonNullable<Pod['spec']>> = {},
  metadata: Partial<ObjectMeta> = { namespace: 'default' },
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'c', image: 'x' }], ...spec },
  }
}

/** What the pods on a node have in common in tests: they run once, end soon and mount no token. */
export const shortLived = {
  restartPolicy: 'Never',
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
} as const

/** Builders give objects as they are stored; this is what a request to create one holds. */
export function withoutServerFields<T extends KubeObject>(object: T): T {
  const { uid: _uid, resourceVersion: _version, deletionTimestamp: _deletion, ...metadata } = object.metadata
  return { ...object, metadata }
}

function hasSource(spec: Partial<PersistentVolume['spec']> | undefined): boolean {
  const kinds = ['local', 'nfs', 'csi', 'flexVolume', 'awsElasticBlockStore'] as const
  return kinds.some((kind) => spec?.[kind] !== undefined)
}
