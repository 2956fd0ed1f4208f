// What does `kubectl get` show for the core kinds apart from volumes?
// Names, order, priority and cell texts are those of Kubernetes 1.35.
import type {
  ConfigMap,
  Event,
  EventsEvent,
  Lease,
  Namespace,
  Node,
  ObjectReference,
  Pod,
  Secret,
  ServiceAccount,
} from '../../api/types.ts'
import { age } from './age.ts'
import { summarizePod } from './pod-status.ts'
import { ageColumn, type Cell, column, nameColumn, type Printer, wideColumn } from './printer.ts'

export const podPrinter: Printer<Pod> = {
  columns: [
    nameColumn,
    column('Ready', 'Ready containers of all containers.'),
    column('Status', 'The phase of the pod, or what holds it back.'),
    column('Restarts', 'How often containers were restarted, and when last.'),
    ageColumn,
    wideColumn('IP', 'The address of the pod.'),
    wideColumn('Node', 'The node the pod is bound to.'),
    wideColumn('Nominated Node', 'The node the pod may get after preemption.'),
    wideColumn('Readiness Gates', 'True readiness gates of all readiness gates.'),
  ],
  cells(pod, now) {
    const summary = summarizePod(pod)
    return [
      pod.metadata.name,
      `${summary.ready}/${summary.total}`,
      summary.status,
      restartsCell(summary.restarts, summary.lastRestart, now),
      age(pod.metadata.creationTimestamp, now),
      pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>',
      pod.spec?.nodeName || '<none>',
      pod.status?.nominatedNodeName || '<none>',
      readinessGatesCell(pod),
    ]
  },
  conditions(pod) {
    switch (pod.status?.phase) {
      case 'Succeeded':
        return [
          { type: 'Completed', status: 'True', reason: 'Succeeded', message: 'The pod has completed successfully.' },
        ]
      case 'Failed':
        return [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod failed.' }]
      default:
        return []
    }
  },
}

function restartsCell(restarts: number, lastRestart: string | undefined, now: number): string {
  return restarts !== 0 && lastRestart !== undefined ? `${restarts} (${age(lastRestart, now)} ago)` : `${restarts}`
}

function readinessGatesCell(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? []
  if (gates.length === 0) return '<none>'
  const met = gates.filter((gate) =>
    pod.status?.conditions?.some((condition) => condition.type === gate.conditionType && condition.status === 'True'),
  )
  return `${met.length}/${gates.length}`
}

export const nodePrinter: Printer<Node> = {
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

export const namespacePrinter: Printer<Namespace> = {
  columns: [nameColumn, column('Status', 'Active or Terminating.'), ageColumn],
  cells: (namespace, now) => [
    namespace.metadata.name,
    namespace.status?.phase ?? '',
    age(namespace.metadata.creationTimestamp, now),
  ],
}

export const secretPrinter: Printer<Secret> = {
  columns: [nameColumn, column('Type', 'What the secret is for.'), column('Data', 'The number of entries.'), ageColumn],
  cells: (secret, now) => [
    secret.metadata.name,
    secret.type ?? '',
    Object.keys(secret.data ?? {}).length,
    age(secret.metadata.creationTimestamp, now),
  ],
}

export const configMapPrinter: Printer<ConfigMap> = {
  columns: [nameColumn, column('Data', 'The number of entries, text and binary.'), ageColumn],
  cells: (configMap, now) => [
    configMap.metadata.name,
    Object.keys(configMap.data ?? {}).length + Object.keys(configMap.binaryData ?? {}).length,
    age(configMap.metadata.creationTimestamp, now),
  ],
}

export const serviceAccountPrinter: Printer<ServiceAccount> = {
  columns: [nameColumn, column('Secrets', 'The number of secrets.'), ageColumn],
  cells: (account, now) => [
    account.metadata.name,
    (account.secrets ?? []).length,
    age(account.metadata.creationTimestamp, now),
  ],
}

export const leasePrinter: Printer<Lease> = {
  columns: [nameColumn, column('Holder', 'Who holds the lease.'), ageColumn],
  cells: (lease, now) => [
    lease.metadata.name,
    lease.spec?.holderIdentity ?? '',
    age(lease.metadata.creationTimestamp, now),
  ],
}

const eventColumns: Printer<Event>['columns'] = [
  column('Last Seen', 'When this was last seen.'),
  column('Type', 'Normal or Warning.'),
  column('Reason', 'One word for machines.'),
  column('Object', 'What the event is about.'),
  wideColumn('Subobject', 'The part of the object it is about.'),
  wideColumn('Source', 'Who reported it.'),
  column('Message', 'One sentence for people.'),
  wideColumn('First Seen', 'When this was first seen.'),
  wideColumn('Count', 'How often this was seen.'),
  { ...nameColumn, priority: 1 },
]

/** What both forms of an event say. */
interface EventFacts {
  readonly name: string
  readonly type: string | undefined
  readonly reason: string | undefined
  readonly about: ObjectReference | undefined
  readonly component: string | undefined
  readonly instance: string | undefined
  readonly message: string | undefined
  readonly firstSeen: string | undefined
  readonly lastSeen: string | undefined
  readonly eventTime: string | undefined
  readonly count: number | undefined
  readonly series: { readonly count?: number; readonly lastObservedTime?: string } | undefined
}

function eventCells(facts: EventFacts, now: number): readonly Cell[] {
  const first = facts.firstSeen ?? facts.eventTime
  const last = facts.series?.lastObservedTime ?? facts.lastSeen ?? first
  const about = facts.about ?? {}
  const kind = (about.kind ?? '').toLowerCase()
  return [
    age(last, now),
    facts.type ?? '',
    facts.reason ?? '',
    about.name ? `${kind}/${about.name}` : kind,
    about.fieldPath ?? '',
    [facts.component, facts.instance].filter((word) => word !== undefined && word !== '').join(', '),
    (facts.message ?? '').trim(),
    age(first, now),
    facts.series?.count ?? (facts.count || 1),
    facts.name,
  ]
}

export const eventPrinter: Printer<Event> = {
  columns: eventColumns,
  cells: (event, now) =>
    eventCells(
      {
        name: event.metadata.name,
        type: event.type,
        reason: event.reason,
        about: event.involvedObject,
        component: event.source?.component || event.reportingComponent,
        instance: event.source?.host || event.reportingInstance,
        message: event.message,
        firstSeen: event.firstTimestamp,
        lastSeen: event.lastTimestamp,
        eventTime: event.eventTime,
        count: event.count,
        series: event.series,
      },
      now,
    ),
}

export const eventsEventPrinter: Printer<EventsEvent> = {
  columns: eventColumns,
  cells: (event, now) =>
    eventCells(
      {
        name: event.metadata.name,
        type: event.type,
        reason: event.reason,
        about: event.regarding,
        component: event.deprecatedSource?.component || event.reportingController,
        instance: event.deprecatedSource?.host || event.reportingInstance,
        message: event.note,
        firstSeen: event.deprecatedFirstTimestamp,
        lastSeen: event.deprecatedLastTimestamp,
        eventTime: event.eventTime,
        count: event.deprecatedCount,
        series: event.series,
      },
      now,
    ),
}
