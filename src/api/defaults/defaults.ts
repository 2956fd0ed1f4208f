// What does the server fill in when a user leaves it out? One pure function per kind (API-4 and what else is visible);
// applying it twice changes nothing.
import { labels } from '../annotations.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { withLabels } from '../meta.ts'
import type {
  CSIDriver,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  StorageClass,
} from '../types.ts'
import { defaultClaimSpec } from './claim.ts'
import { defaultPod } from './pod.ts'
import { defaultVolumeSource } from './volume-sources.ts'

export function applyDefaults<K extends KindName>(kind: K, object: KindMap[K]): KindMap[K] {
  const table: { readonly [Name in KindName]?: (object: KindMap[Name]) => KindMap[Name] } = perKind
  return table[kind]?.(object) ?? object
}

const perKind: { readonly [Name in KindName]?: (object: KindMap[Name]) => KindMap[Name] } = {
  CSIDriver: defaultDriver,
  Event: (event) => ({ reportingComponent: '', reportingInstance: '', ...event }),
  Namespace: defaultNamespace,
  Node: defaultNode,
  PersistentVolume: defaultVolume,
  PersistentVolumeClaim: defaultClaim,
  Pod: defaultPod,
  Secret: defaultSecret,
  StorageClass: defaultClass,
}

function defaultVolume(volume: PersistentVolume): PersistentVolume {
  const spec = defaultVolumeSource(volume.spec)
  return { ...volume, spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', ...spec } }
}

function defaultClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, spec: defaultClaimSpec(claim.spec) }
}

function defaultClass(storageClass: StorageClass): StorageClass {
  return { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate', ...storageClass }
}

function defaultDriver(driver: CSIDriver): CSIDriver {
  const spec = {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    requiresRepublish: false,
    seLinuxMount: false,
    ...driver.spec,
  } as const
  const modes = driver.spec.volumeLifecycleModes ?? []
  return { ...driver, spec: { ...spec, volumeLifecycleModes: modes.length > 0 ? modes : ['Persistent'] } }
}

function defaultNamespace(namespace: Namespace): Namespace {
  const { name } = namespace.metadata
  const labelled = name ? withLabels(namespace, { [labels.namespaceName]: name }) : namespace
  return { ...labelled, spec: { finalizers: ['kubernetes'], ...namespace.spec } }
}

function defaultNode(node: Node): Node {
  const { capacity, allocatable } = node.status ?? {}
  const withSpec = { ...node, spec: node.spec ?? {} }
  if (capacity === undefined || allocatable !== undefined) return withSpec
  return { ...withSpec, status: { ...node.status, allocatable: capacity } }
}

/** `stringData` is only ever written: it moves into `data`, and wins there. */
function defaultSecret(secret: Secret): Secret {
  const { stringData, ...rest } = secret
  const data = {
    ...secret.data,
    ...Object.fromEntries(
      Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  }
  const kept = Object.keys(data).length > 0 ? { ...rest, data } : rest
  return { ...kept, type: secret.type || 'Opaque' }
}
