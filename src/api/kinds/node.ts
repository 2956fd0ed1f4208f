// What is a node? Its kubelet registers it with its status and keeps both up to date.
import { withConditionTimes } from '../defaults/absent.ts'
import { duplicate, forbidden, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Node, Taint } from '../generated/types.ts'
import { validateNonNegativeQuantity } from '../validation/common.ts'
import { isAddressRange, isLabelValue, isQualifiedName } from '../validation/formats.ts'
import { checked, repeated, sameData } from '../validation/metadata.ts'
import { age } from './age.ts'
import { defineKind, reading, statusOf, statusVerbs } from './define-kind.ts'
import { ageColumn, column, nameColumn, wideColumn } from './printer.ts'

export const nodeKind = defineKind<Node>({
  kind: 'Node',
  group: '',
  plural: 'nodes',
  scope: 'Cluster',
  shortNames: ['no'],
  subresources: [
    { name: 'proxy', kind: 'NodeProxyOptions', verbs: ['get'], answeredByNode: 'document', takesPath: true },
    statusOf('Node'),
  ],
  message: 'core.Node',
  description: 'A machine that runs pods and mounts their volumes.',
  selectableFields: { 'spec.unschedulable': { absent: 'false' } },
  defaults: defaultNode,
  validation: { whole: validateNode, change: validateNodeUpdate, status: validateNodeUpdate },
  strategy: { creatorSetsStatus: true },
  access: {
    controllers: { verbs: reading, subresources: { status: statusVerbs } },
    nodes: { may: 'ownName', keeps: true },
  },
  table: {
    columns: [
      nameColumn,
      column('Status', 'Whether the node is ready and takes pods.'),
      column('Roles', 'The roles of the node, from its labels.'),
      ageColumn,
      column('Version', 'The version of the node agent.'),
      wideColumn('Internal-IP', 'Addresses within the cluster.'),
      wideColumn('External-IP', 'Addresses reachable from outside.'),
      wideColumn('OS-Image', 'The operating system of the node.'),
      wideColumn('Kernel-Version', 'The kernel of the node.'),
      wideColumn('Container-Runtime', 'What runs the containers.'),
    ],
    cells(node, now) {
      const info = node.status?.nodeInfo
      return [
        node.metadata.name,
        nodeStatus(node),
        nodeRoles(node),
        age(node.metadata.creationTimestamp, now),
        info?.kubeletVersion ?? '',
        nodeAddress(node, 'InternalIP'),
        nodeAddress(node, 'ExternalIP'),
        info?.osImage || '<unknown>',
        info?.kernelVersion || '<unknown>',
        info?.containerRuntimeVersion || '<unknown>',
      ]
    },
  },
})

function defaultNode(given: Node): Node {
  const node = withConditionTimes(given, ['lastHeartbeatTime', 'lastTransitionTime'])
  const { capacity, allocatable } = node.status ?? {}
  const withSpec = { ...node, spec: node.spec ?? {} }
  if (capacity === undefined || allocatable !== undefined) return withSpec
  return { ...withSpec, status: { ...node.status, allocatable: capacity } }
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

function nodeStatus(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready')
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (node.spec?.unschedulable === true) words.push('SchedulingDisabled')
  return words.join(',')
}

const rolePrefix = 'node-role.kubernetes.io/'

function nodeRoles(node: Node): string {
  const roles = new Set<string>()
  for (const [label, value] of Object.entries(node.metadata.labels ?? {})) {
    if (label.startsWith(rolePrefix) && label.length > rolePrefix.length) roles.add(label.slice(rolePrefix.length))
    else if (label === 'kubernetes.io/role' && value !== '') roles.add(value)
  }
  return roles.size === 0 ? '<none>' : [...roles].toSorted().join(',')
}

function nodeAddress(node: Node, type: string): string {
  return node.status?.addresses?.find((address) => address.type === type)?.address || '<none>'
}
