// Are namespaces, nodes, config maps, secrets, events and leases right? The smaller core kinds.
import { forbidden, invalid, notSupported, required, tooLong } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { ConfigMap, Event, EventsEvent, Lease, Namespace, Node, OperationRecord, Secret, Taint } from '../types.ts'
import { validateBasicQuantity } from './common.ts'
import { isConfigKey, isLabelValue, isQualifiedName } from './formats.ts'
import { byteLength, checked, repeated, sameData, unchanged } from './metadata.ts'
import type { RulesByKind } from './validate.ts'

const largestData = 1024 * 1024
const frozenText = 'field is immutable when `immutable` is set'

export const coreKinds: RulesByKind = {
  Namespace: { whole: validateNamespace },
  Node: { whole: validateNode, change: validateNodeUpdate, status: validateNodeStatus },
  ConfigMap: { whole: validateConfigMap, change: validateConfigMapUpdate },
  Secret: { whole: validateSecret, change: validateSecretUpdate },
  Event: { whole: validateEvent },
  EventsEvent: { whole: validateNewEvent },
  Lease: { whole: validateLease },
  Operation: { whole: validateOperation },
}

function validateNamespace(namespace: Namespace): readonly FieldError[] {
  return (namespace.spec?.finalizers ?? []).flatMap((name) => checked('spec.finalizers', name, isQualifiedName))
}

function validateNode(node: Node): readonly FieldError[] {
  const taints = node.spec?.taints ?? []
  return [
    ...taints.flatMap((taint, index) => validateTaint(taint, `spec.taints[${index}]`)),
    ...repeated(taints.map(({ key, effect }) => `${key}:${effect}`)).map((index) =>
      invalid(`spec.taints[${index}]`, taints[index], 'taints must be unique by key and effect pair'),
    ),
    ...validateNodeStatus(node),
  ]
}

function validateTaint(taint: Taint, path: string): readonly FieldError[] {
  const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
  return [
    ...checked(`${path}.key`, taint.key, isQualifiedName),
    ...checked(`${path}.value`, taint.value ?? '', isLabelValue),
    ...(taint.effect ? [] : [required(`${path}.effect`)]),
    ...(taint.effect && !effects.includes(taint.effect) ? [notSupported(`${path}.effect`, taint.effect, effects)] : []),
  ]
}

function validateNodeUpdate(next: Node, previous: Node): readonly FieldError[] {
  const [wanted, current] = [next.spec?.providerID ?? '', previous.spec?.providerID ?? '']
  if (current === '' || wanted === current) return []
  return [forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid')]
}

function validateNodeStatus(node: Node): readonly FieldError[] {
  const { capacity, allocatable, volumesAttached } = node.status ?? {}
  const quantities = (list: Readonly<Record<string, string>> | undefined, path: string) =>
    Object.entries(list ?? {}).flatMap(([name, value]) => validateBasicQuantity(value, `${path}[${name}]`))
  return [
    ...quantities(capacity, 'status.capacity'),
    ...quantities(allocatable, 'status.allocatable'),
    ...(volumesAttached ?? []).flatMap(({ name }, index) =>
      name ? [] : [required(`status.volumesAttached[${index}].name`)],
    ),
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
    ...(total(sizes) > largestData ? [tooLong('', largestData)] : []),
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

function validateSecret(secret: Secret): readonly FieldError[] {
  const data = secret.data ?? {}
  const type = secret.type ?? ''
  const sizes = Object.values(data).map((value) => Buffer.byteLength(value, 'base64'))
  const account = 'kubernetes.io/service-account.name'
  return [
    ...Object.keys(data).flatMap((key) => checked(`data[${key}]`, key, isConfigKey)),
    ...(total(sizes) > largestData ? [tooLong('data', largestData)] : []),
    ...(keysOfType.get(type) ?? []).flatMap((key) => (Object.hasOwn(data, key) ? [] : [required(`data[${key}]`)])),
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

/** An event lives where its object lives; events of cluster objects live in default (or kube-system). */
function validateEvent(event: Event): readonly FieldError[] {
  const home = event.metadata.namespace ?? ''
  const namespace = event.involvedObject.namespace ?? ''
  const fits = namespace === '' ? ['', 'default', 'kube-system'].includes(home) : namespace === home
  return fits ? [] : [invalid('involvedObject.namespace', namespace, 'does not match event.namespace')]
}

function validateNewEvent(event: EventsEvent): readonly FieldError[] {
  const { reportingController: controller, reportingInstance, action, reason, type, eventTime } = event
  const home = event.metadata.namespace ?? ''
  const namespace = event.regarding?.namespace ?? ''
  const fits = namespace === '' ? ['', 'default', 'kube-system'].includes(home) : namespace === home
  return [
    ...(fits ? [] : [invalid('regarding.namespace', namespace, 'does not match event.namespace')]),
    ...(eventTime ? [] : [required('eventTime')]),
    ...(controller ? checked('reportingController', controller, isQualifiedName) : [required('reportingController')]),
    ...(reportingInstance ? [] : [required('reportingInstance')]),
    ...(action ? [] : [required('action')]),
    ...(reason ? [] : [required('reason')]),
    ...(type === 'Normal' || type === 'Warning'
      ? []
      : [invalid('type', type ?? '', 'has invalid value: must be Normal or Warning')]),
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
