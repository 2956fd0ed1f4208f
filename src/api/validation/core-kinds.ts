// Are namespaces, nodes, config maps, secrets and leases right? The smaller core kinds; events are in events.ts.
import { duplicate, forbidden, invalid, notSupported, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { ConfigMap, Lease, Namespace, Node, OperationRecord, Secret, Taint } from '../types.ts'
import { validateNonNegativeQuantity } from './common.ts'
import { eventRules, newEventRules } from './events.ts'
import { isAddressRange, isConfigKey, isLabelValue, isQualifiedName } from './formats.ts'
import { byteLength, checked, repeated, sameData, unchanged } from './metadata.ts'
import type { RulesByKind } from './validate.ts'

const largestData = 1024 * 1024
const frozenText = 'field is immutable when `immutable` is set'

export const coreKinds: RulesByKind = {
  Namespace: { whole: validateNamespace, status: validateNamespaceStatus },
  Node: { whole: validateNode, change: validateNodeUpdate, status: validateNodeUpdate },
  ConfigMap: { whole: validateConfigMap, change: validateConfigMapUpdate },
  Secret: { whole: validateSecret, change: validateSecretUpdate },
  Event: eventRules,
  EventsEvent: newEventRules,
  Lease: { whole: validateLease },
  Operation: { whole: validateOperation },
}

function validateNamespace(namespace: Namespace): readonly FieldError[] {
  const text = 'name is neither a standard finalizer name nor is it fully qualified'
  return (namespace.spec?.finalizers ?? []).flatMap((name) => [
    ...checked('spec.finalizers', name, isQualifiedName),
    ...(name.includes('/') || name === 'kubernetes' ? [] : [invalid('spec.finalizers', name, text)]),
  ])
}

/** The phase says whether the namespace is being deleted, and nothing else does. */
function validateNamespaceStatus({ metadata, status }: Namespace): readonly FieldError[] {
  const going = metadata.deletionTimestamp !== undefined
  const phase = going ? 'Terminating' : 'Active'
  if (status?.phase === phase) return []
  const text = `may only be '${phase}' if \`deletionTimestamp\` is ${going ? 'not empty' : 'empty'}`
  return [invalid('status.Phase', status?.phase ?? '', text)]
}

function validateNode(node: Node): readonly FieldError[] {
  return [
    ...validateTaints(node.spec?.taints ?? []),
    ...validateNodeResources(node),
    ...(node.spec?.podCIDRs ?? []).flatMap((range, index) => checked(`spec.podCIDRs[${index}]`, range, isAddressRange)),
  ]
}

/** Kubernetes says that taints are metadata. */
function validateTaints(taints: readonly Taint[]): readonly FieldError[] {
  const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
  const twins = new Set(repeated(taints.map(({ key, effect }) => `${key}:${effect}`)))
  return taints.flatMap(({ key, value = '', effect, timeAdded = null }, index) => {
    const path = `metadata.taints[${index}]`
    const twin = { Key: key, Value: value, Effect: effect, TimeAdded: timeAdded }
    return [
      ...checked(`${path}.key`, key, isQualifiedName),
      ...checked(`${path}.value`, value, isLabelValue),
      ...(effect ? [] : [required(`${path}.effect`)]),
      ...(effect && !effects.includes(effect) ? [notSupported(`${path}.effect`, effect, effects)] : []),
      ...(twins.has(index) ? [duplicate(path, twin, 'taints must be unique by key and effect pair')] : []),
    ]
  })
}

function validateNodeResources(node: Node): readonly FieldError[] {
  const amounts = (list: Readonly<Record<string, string>> | undefined, path: string) =>
    Object.entries(list ?? {}).flatMap(([name, value]) => validateNonNegativeQuantity(value, `${path}.${name}`))
  const { capacity, allocatable } = node.status ?? {}
  return [...amounts(capacity, 'status.capacity'), ...amounts(allocatable, 'status.allocatable')]
}

/** For the node and for its status; Kubernetes looks at taints and resources once more. */
function validateNodeUpdate(next: Node, previous: Node): readonly FieldError[] {
  const addresses = (next.status?.addresses ?? []).map(({ type, address }) => ({ Type: type, Address: address }))
  const ranges = previous.spec?.podCIDRs ?? []
  const [wanted, current] = [next.spec?.providerID ?? '', previous.spec?.providerID ?? '']
  const once = 'except from "" to valid'
  return [
    ...validateNodeResources(next),
    ...repeated(addresses.map((each) => JSON.stringify(each))).map((index) =>
      duplicate(`status.addresses[${index}]`, addresses[index]),
    ),
    ...(ranges.length === 0 || sameData(next.spec?.podCIDRs, ranges)
      ? []
      : [forbidden('spec.podCIDRs', `node updates may not change podCIDR ${once}`)]),
    ...(current === '' || wanted === current
      ? []
      : [forbidden('spec.providerID', `node updates may not change providerID ${once}`)]),
    ...validateTaints(next.spec?.taints ?? []),
  ]
}

function validateConfigMap(config: ConfigMap): readonly FieldError[] {
  const { data = {}, binaryData = {} } = config
  const sizes = [
    ...Object.values(data).map(byteLength),
    ...Object.values(binaryData).map((value) => Buffer.byteLength(value, 'base64')),
  ]
  return [
    ...Object.keys(data).flatMap((key) => [
      ...checked(`data[${key}]`, key, isConfigKey),
      ...(Object.hasOwn(binaryData, key)
        ? [invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')]
        : []),
    ]),
    ...Object.keys(binaryData).flatMap((key) => checked(`binaryData[${key}]`, key, isConfigKey)),
    // Nothing in particular is too long; Kubernetes prints no path as brackets.
    ...(total(sizes) > largestData ? [tooLong('[]', largestData)] : []),
  ]
}

function validateConfigMapUpdate(next: ConfigMap, previous: ConfigMap): readonly FieldError[] {
  if (previous.immutable !== true) return []
  return [
    ...(next.immutable === true ? [] : [forbidden('immutable', frozenText)]),
    ...(sameData(next.data, previous.data) ? [] : [forbidden('data', frozenText)]),
    ...(sameData(next.binaryData, previous.binaryData) ? [] : [forbidden('binaryData', frozenText)]),
  ]
}

/** Types that promise certain keys. */
const keysOfType: ReadonlyMap<string, readonly string[]> = new Map([
  ['kubernetes.io/dockercfg', ['.dockercfg']],
  ['kubernetes.io/dockerconfigjson', ['.dockerconfigjson']],
  ['kubernetes.io/ssh-auth', ['ssh-privatekey']],
  ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
])

const dockerKeys = ['.dockercfg', '.dockerconfigjson']

/** The content is JSON; what it says is nobody's business. */
function validateDockerConfig(value: string | undefined, type: string, key: string): readonly FieldError[] {
  if (value === undefined || type !== `kubernetes.io/${key.slice(1)}`) return []
  try {
    const content: unknown = JSON.parse(Buffer.from(value, 'base64').toString())
    if (typeof content === 'object' && !Array.isArray(content)) return []
  } catch {
    // Told below.
  }
  return [invalid(`data[${key}]`, '<secret contents redacted>', 'must be a JSON object')]
}

/** One of them is enough. */
const loginKeys = ['username', 'password']

function validateSecret(secret: Secret): readonly FieldError[] {
  const data = secret.data ?? {}
  const type = secret.type ?? ''
  const sizes = Object.values(data).map((value) => Buffer.byteLength(value, 'base64'))
  const account = 'kubernetes.io/service-account.name'
  return [
    ...Object.keys(data).flatMap((key) => checked(`data[${key}]`, key, isConfigKey)),
    ...(total(sizes) > largestData ? [tooLong('data', largestData)] : []),
    ...(keysOfType.get(type) ?? []).flatMap((key) => (Object.hasOwn(data, key) ? [] : [required(`data[${key}]`)])),
    ...dockerKeys.flatMap((key) => validateDockerConfig(data[key], type, key)),
    ...(type === 'kubernetes.io/basic-auth' && !loginKeys.some((key) => Object.hasOwn(data, key))
      ? loginKeys.map((key) => required(`data[${key}]`))
      : []),
    ...(type === 'kubernetes.io/service-account-token' && !secret.metadata.annotations?.[account]
      ? [required(`metadata.annotations[${account}]`)]
      : []),
  ]
}

function validateSecretUpdate(next: Secret, previous: Secret): readonly FieldError[] {
  const errors = unchanged(next.type, previous.type, 'type')
  if (previous.immutable !== true) return errors
  return [
    ...errors,
    ...(next.immutable === true ? [] : [forbidden('immutable', frozenText)]),
    ...(sameData(next.data, previous.data) ? [] : [forbidden('data', frozenText)]),
  ]
}

function validateLease(lease: Lease): readonly FieldError[] {
  const { leaseDurationSeconds: duration, leaseTransitions: transitions } = lease.spec ?? {}
  return [
    ...(duration !== undefined && duration <= 0
      ? [invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0')]
      : []),
    ...(transitions !== undefined && transitions < 0
      ? [invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]
      : []),
  ]
}

function validateOperation(record: OperationRecord): readonly FieldError[] {
  const spec: Partial<OperationRecord['spec']> | undefined = record.spec
  return [...(spec?.actor ? [] : [required('spec.actor')]), ...(spec?.operation ? [] : [required('spec.operation')])]
}

function total(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0)
}
