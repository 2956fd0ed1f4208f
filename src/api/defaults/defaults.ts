// What does the server fill in when a user leaves it out? One pure function per kind (API-4 and what else is visible);
// applying it twice changes nothing.
import { labels } from '../annotations.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { withLabels } from '../meta.ts'
import type {
  CSIDriver,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  StorageClass,
  VolumeAttachment,
} from '../types.ts'
import { filled, withAbsent } from './absent.ts'
import { defaultClaimSpec } from './claim.ts'
import { defaultPod } from './pod.ts'
import { defaultVolumeSource } from './volume-sources.ts'

export function applyDefaults<K extends KindName>(kind: K, object: KindMap[K]): KindMap[K] {
  const table: { readonly [Name in KindName]?: (object: KindMap[Name]) => KindMap[Name] } = perKind
  return table[kind]?.(object) ?? object
}

const perKind: { readonly [Name in KindName]?: (object: KindMap[Name]) => KindMap[Name] } = {
  CSIDriver: defaultDriver,
  Event: defaultEvent,
  Namespace: defaultNamespace,
  Node: defaultNode,
  PersistentVolume: defaultVolume,
  PersistentVolumeClaim: defaultClaim,
  Pod: (pod) => withConditionTimes(defaultPod(pod), ['lastProbeTime', 'lastTransitionTime']),
  Secret: defaultSecret,
  StorageClass: defaultClass,
  VolumeAttachment: defaultAttachment,
}

function defaultVolume(volume: PersistentVolume): PersistentVolume {
  const spec = defaultVolumeSource(volume.spec)
  return { ...volume, spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', ...spec } }
}

function defaultClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...withConditionTimes(claim, ['lastProbeTime', 'lastTransitionTime']), spec: defaultClaimSpec(claim.spec) }
}

function withConditionTimes<T extends { readonly status?: { readonly conditions?: readonly object[] } }>(
  object: T,
  times: readonly string[],
): T {
  const { conditions } = object.status ?? {}
  if (conditions === undefined) return object
  const shown = withAbsent(conditions, times)
  return shown === conditions ? object : { ...object, status: { ...object.status, conditions: shown } }
}

function defaultEvent(event: Event): Event {
  const shown = { reportingComponent: '', reportingInstance: '', source: {}, ...event }
  return filled(shown, ['eventTime', 'firstTimestamp', 'lastTimestamp'])
}

function defaultAttachment(attachment: VolumeAttachment): VolumeAttachment {
  const { attachError, detachError } = attachment.status ?? {}
  if (attachError === undefined && detachError === undefined) return attachment
  const status = {
    ...attachment.status,
    ...(attachError && { attachError: filled(attachError, ['time']) }),
    ...(detachError && { detachError: filled(detachError, ['time']) }),
  }
  return { ...attachment, status } as VolumeAttachment // attached is what it was
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

function defaultNode(given: Node): Node {
  const node = withConditionTimes(given, ['lastHeartbeatTime', 'lastTransitionTime'])
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
