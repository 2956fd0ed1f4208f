// How do lists and structs merge? Which lists merge by which keys, which are sets, which values are replaced as a
// whole: for strategic merge patch, server-side apply and OpenAPI. What is not named here follows the defaults.

export interface ListRule {
  /** Server-side apply: `atomic` replaces the list, `set` merges values, `map` merges items by `keys`. */
  readonly apply: 'atomic' | 'set' | 'map'
  readonly keys: readonly string[]
  /** Strategic merge patch; without a strategy the list is replaced. */
  readonly strategy: 'replace' | 'merge' | 'merge,retainKeys'
  /** The one key of strategic merge; undefined for lists of plain values. */
  readonly mergeKey?: string
}

const atomicList: ListRule = { apply: 'atomic', keys: [], strategy: 'replace' }

/** The rule of a list field, by the message that holds it and its JSON name. */
export function listRule(message: string, field: string): ListRule {
  return lists.get(`${message}.${field}`) ?? atomicList
}

/** Whether server-side apply replaces this field's struct or map as a whole; `type` is the field's message, if any. */
export function isAtomic(message: string, field: string, type: string): boolean {
  const key = `${message}.${field}`
  return atomicFields.has(key) || (atomicMessages.has(type) && !granularFields.has(key))
}

/** Whether an item of this message, inside a list or map, is owned as a whole. */
export function isAtomicMessage(message: string): boolean {
  return atomicMessages.has(message)
}

const merged = (...keys: readonly [string, ...string[]]): ListRule => ({
  apply: 'map',
  keys,
  strategy: 'merge',
  mergeKey: keys[0],
})
const retained = (key: string): ListRule => ({ ...merged(key), strategy: 'merge,retainKeys' })
const mergedSet: ListRule = { apply: 'set', keys: [], strategy: 'merge' }

const containerLists = (message: string): readonly (readonly [string, ListRule])[] => [
  [`${message}.ports`, merged('containerPort', 'protocol')],
  [`${message}.env`, merged('name')],
  [`${message}.volumeMounts`, merged('mountPath')],
  [`${message}.volumeDevices`, merged('devicePath')],
]

const lists: ReadonlyMap<string, ListRule> = new Map([
  ['meta.ObjectMeta.ownerReferences', merged('uid')],
  ['meta.ObjectMeta.finalizers', mergedSet],
  ['core.PodSpec.volumes', retained('name')],
  ['core.PodSpec.initContainers', merged('name')],
  ['core.PodSpec.containers', merged('name')],
  ['core.PodSpec.ephemeralContainers', merged('name')],
  ['core.PodSpec.imagePullSecrets', merged('name')],
  ['core.PodSpec.hostAliases', merged('ip')],
  ['core.PodSpec.topologySpreadConstraints', merged('topologyKey', 'whenUnsatisfiable')],
  ['core.PodSpec.schedulingGates', merged('name')],
  ['core.PodSpec.resourceClaims', retained('name')],
  ...containerLists('core.Container'),
  ...containerLists('core.EphemeralContainerCommon'),
  ['core.ResourceRequirements.claims', { apply: 'map', keys: ['name'], strategy: 'replace' }],
  ['core.PodStatus.conditions', merged('type')],
  ['core.PodStatus.podIPs', merged('ip')],
  ['core.PodStatus.hostIPs', { apply: 'atomic', keys: [], strategy: 'merge', mergeKey: 'ip' }],
  ['core.PodStatus.resourceClaimStatuses', retained('name')],
  ['core.PodStatus.volumeHealth', { apply: 'map', keys: ['name'], strategy: 'replace' }],
  ['core.PodVolumeHealth.healthConditions', merged('status', 'reason')],
  ['storage.CSINodeStatus.storageHealth', merged('name')],
  ['core.ContainerStatus.volumeMounts', merged('mountPath')],
  ['core.ContainerStatus.allocatedResourcesStatus', merged('name')],
  ['core.ResourceStatus.resources', { apply: 'map', keys: ['resourceID'], strategy: 'replace' }],
  ['core.PersistentVolumeClaimStatus.conditions', merged('type')],
  ['core.NodeSpec.podCIDRs', mergedSet],
  ['core.NodeStatus.conditions', merged('type')],
  ['core.NodeStatus.addresses', merged('type')],
  ['core.NamespaceStatus.conditions', merged('type')],
  ['core.ServiceAccount.secrets', merged('name')],
  ['storage.CSINodeSpec.drivers', merged('name')],
  ['storage.CSIDriverSpec.volumeLifecycleModes', { apply: 'set', keys: [], strategy: 'replace' }],
])

const atomicFields: ReadonlySet<string> = new Set(['core.PodSpec.nodeSelector'])

/** A claim reference is an ObjectReference whose fields may have different owners. */
const granularFields: ReadonlySet<string> = new Set(['core.PersistentVolumeSpec.claimRef'])

const atomicMessages: ReadonlySet<string> = new Set([
  'core.LocalObjectReference',
  'core.ObjectReference',
  'core.SecretReference',
  'core.SecretKeySelector',
  'core.ConfigMapKeySelector',
  'core.FileKeySelector',
  'core.TypedLocalObjectReference',
  'core.ObjectFieldSelector',
  'core.ResourceFieldSelector',
  'core.NodeSelector',
  'core.NodeSelectorTerm',
  'core.TopologySelectorTerm',
  'meta.LabelSelector',
])
