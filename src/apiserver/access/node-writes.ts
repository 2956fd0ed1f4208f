// What may a node's write change? The authorizer has said which object; this looks at what becomes of it. Through /status a
// node changes no labels, finalizers or owners, of a claim only what growing it changes, and its records stay its own. Of its Node it
// changes neither taints nor the labels that are kept for administrators: they decide which pods come to it.
import { isDeepStrictEqual } from 'node:util'
import type { Node, ObjectReference } from '../../api/generated/types.ts'
import type { KindInfo } from '../../api/kinds.ts'
import { omit } from '../../api/members.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import type { User } from '../request/call.ts'
import { nodeNameOf, roleOf } from './grants.ts'
import { changedByStatus, sameList } from './status-writes.ts'

/** What expansion on the node writes. */
const claimMembers = ['capacity', 'conditions', 'allocatedResources', 'allocatedResourceStatuses']

export function checkNodeWrite(
  user: User,
  info: KindInfo,
  next: KubeObject,
  current: KubeObject | undefined,
  subresource: string | undefined,
): void {
  if (roleOf(user) !== 'node') return
  const node = nodeNameOf(user)
  const refuse = (what: string) => forbidden(info, next.metadata.name, `node ${JSON.stringify(node)} ${what}`)
  if (subresource === 'status' && current !== undefined) {
    const changed = changedByStatus(next, current)
    if (changed !== undefined) throw refuse(`cannot update ${changed} through ${info.kind.toLowerCase()} status`)
  }
  if (info.access.nodes?.may === 'ownName' && !sameList(next.metadata.finalizers, current?.metadata.finalizers))
    throw refuse('is not allowed to modify finalizers')
  if (info.access.nodes?.may === 'ownEvents') {
    const problem = problemOfEvent(node, next, current)
    if (problem !== undefined) throw refuse(problem)
  }
  if (info.name === 'Node') {
    const problem = problemOfNode(next as Node, current as Node | undefined)
    if (problem !== undefined) throw refuse(problem)
  }
  if (
    info.name === 'PersistentVolumeClaim' &&
    current &&
    !isDeepStrictEqual(restOfStatus(next), restOfStatus(current))
  ) {
    throw refuse(
      `is not allowed to update fields other than ${claimMembers.map((name) => `status.${name}`).join(', ')}`,
    )
  }
  if (info.access.nodes?.may === 'ownRecords') {
    const { spec } = next as { spec?: { node?: unknown } } // an Operation
    if (spec?.node !== node) throw refuse(`records ${info.plural} of its own`)
  }
}

/** What an event is about, whichever of the two kinds it has. */
export function subjectOfEvent(event: KubeObject): ObjectReference {
  const { involvedObject, regarding } = event as { involvedObject?: ObjectReference; regarding?: ObjectReference } // an Event
  return involvedObject ?? regarding ?? {}
}

/** Who says so: both places where a reporter names its machine. */
function hostsOfEvent(event: KubeObject): readonly string[] {
  const { source, deprecatedSource, reportingInstance } = event as {
    source?: { host?: string }
    deprecatedSource?: { host?: string }
    reportingInstance?: string
  } // an Event
  return [source?.host, deprecatedSource?.host, reportingInstance].filter(
    (host) => host !== undefined && host !== '',
  ) as string[]
}

function problemOfEvent(node: string, next: KubeObject, current: KubeObject | undefined): string | undefined {
  for (const event of current === undefined ? [next] : [next, current]) {
    const hosts = hostsOfEvent(event)
    if (hosts.length === 0 || hosts.some((host) => host !== node)) return 'writes events in its own name only'
  }
  if (current !== undefined && !isDeepStrictEqual(subjectOfEvent(next), subjectOfEvent(current)))
    return 'is not allowed to change what an event is about'
  return undefined
}

/** As Kubernetes' NodeRestriction does. */
function problemOfNode(next: Node, current: Node | undefined): string | undefined {
  if (current !== undefined && !sameList(next.spec?.taints, current.spec?.taints))
    return 'is not allowed to modify taints'
  const [after, before] = [next.metadata.labels ?? {}, current?.metadata.labels ?? {}]
  const changed = Object.keys({ ...before, ...after })
    .filter((label) => after[label] !== before[label] && isReserved(label))
    .sort()
  return changed.length > 0 ? `is not allowed to modify labels: ${changed.join(', ')}` : undefined
}

/** What a kubelet tells of its machine. */
const ownLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
])
const ownDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const kubernetesDomains = ['kubernetes.io', 'k8s.io']

/** Kubernetes' own labels but for those of kubelets: roles, and what administrators keep nodes apart by. */
function isReserved(label: string): boolean {
  const [domain = '', name] = label.split('/')
  if (name === undefined || ownLabels.has(label)) return false
  const isWithin = (domains: readonly string[]) =>
    domains.some((each) => domain === each || domain.endsWith(`.${each}`))
  return isWithin(kubernetesDomains) && !isWithin(ownDomains)
}

function restOfStatus(object: KubeObject): object {
  const { status } = object as { status?: Record<string, unknown> } // any kind
  return omit(status ?? {}, claimMembers)
}
