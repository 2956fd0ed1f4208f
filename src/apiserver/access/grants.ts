// Which role may do what with which kind? One pure function: the authorizer follows it, docs/reference/access.md is printed
// from it, and a test compares both with what the server answers.
import { kindByPlural } from '../../api/kinds.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { NodeRule, Verb } from '../../api/kinds/define-kind.ts'
import { reading, statusVerbs } from '../../api/kinds/define-kind.ts'
import type { User } from '../request/call.ts'

export const roles = ['admin', 'read-only', 'monitoring', 'controller', 'node', 'node-bootstrap', 'none'] as const
export type Role = (typeof roles)[number]

export const groupsOfRoles = {
  admin: 'system:masters',
  'read-only': 'hawser:read-only',
  monitoring: 'system:monitoring',
  controller: 'hawser:controllers',
  node: 'system:nodes',
  'node-bootstrap': 'system:bootstrappers',
} as const

/** `impersonate` is asked of users, groups, uids and extras, which are no kinds. */
export type AccessVerb = Verb | 'impersonate'

interface Question {
  readonly group: string
  readonly resource: string
  readonly subresource: string | undefined
  readonly verb: AccessVerb
}

export type Grant =
  | { readonly to: 'all' }
  | { readonly to: 'nothing'; readonly reason: string }
  /** Only secrets that a class or a volume names. */
  | { readonly to: 'namedSecrets' }
  /** Only objects that have to do with the node. */
  | { readonly to: 'objectsOfNode'; readonly rule: NodeRule }

const all: Grant = { to: 'all' }
const nodePrefix = 'system:node:'

export function roleOf({ groups, name }: User): Role {
  if (groups.includes(groupsOfRoles.admin)) return 'admin'
  if (groups.includes(groupsOfRoles.controller)) return 'controller'
  if (groups.includes(groupsOfRoles.node) && name.startsWith(nodePrefix)) return 'node'
  if (groups.includes(groupsOfRoles['node-bootstrap']) && name.startsWith('system:bootstrap:')) return 'node-bootstrap'
  if (groups.includes(groupsOfRoles['read-only'])) return 'read-only'
  if (groups.includes(groupsOfRoles.monitoring)) return 'monitoring'
  return 'none'
}

/** Of a user with the role node. */
export function nodeNameOf({ name }: User): string {
  return name.slice(nodePrefix.length)
}

export function grantOf(role: Role, question: Question): Grant {
  if (asksAboutItself(question)) return all
  const { group, resource, verb } = question
  if (role !== 'admin' && verb === 'impersonate') return { to: 'nothing', reason: '' }
  const info = kindByPlural(group, resource)
  switch (role) {
    case 'admin':
      return all
    case 'read-only':
      return allIf(
        reads(verb) && !info?.access.confidential && !reachesIntoNode(info, question),
        'read-only users read everything but secrets',
      )
    case 'monitoring':
      return allIf(isMeasurement(question), 'monitoring reads metrics only')
    case 'controller':
      return controllerGrant(info, question)
    case 'node':
      return nodeGrant(info, question)
    case 'node-bootstrap':
      return allIf(asksForCertificate(question), 'a bootstrap token is good for the certificate of a node only')
    case 'none':
      return { to: 'nothing', reason: '' }
    default:
      return role satisfies never
  }
}

/** The server's documents are open to every known user; metrics tell the names of objects. */
export function mayReadDocument(role: Role, path: string): boolean {
  if (path !== '/metrics' && !path.startsWith('/metrics/')) return true
  return role === 'admin' || role === 'read-only' || role === 'monitoring'
}

/** A node asks for tokens that its pods use now; whoever steals it must not take tokens for years. */
export function longestTokenSeconds(user: User): number {
  return roleOf(user) === 'node' ? 24 * 3600 : Infinity
}

function reads(verb: AccessVerb): boolean {
  return reading.some((each) => each === verb)
}

function allIf(allowed: boolean, reason: string): Grant {
  return allowed ? all : { to: 'nothing', reason }
}

/** Reviews about oneself are open to every known user. */
function asksAboutItself({ group, resource, verb }: Question): boolean {
  if (verb !== 'create') return false
  if (group === 'authentication.k8s.io') return resource === 'selfsubjectreviews'
  return group === 'authorization.k8s.io' && resource.startsWith('selfsubject')
}

/** The server itself looks whose certificate it is. */
function asksForCertificate({ group, resource, verb }: Question): boolean {
  return group === 'hawser.dev' && resource === 'nodecertificates' && verb === 'create'
}

/** Exec, attach and port-forward act as the pod and read what it reads; a proxy shows what the node's own pods were given. */
function reachesIntoNode(info: KindInfo | undefined, { subresource }: Question): boolean {
  const { answeredByNode, takesPath } = info?.subresources.find(({ name }) => name === subresource) ?? {}
  return answeredByNode === 'stream' || takesPath === true
}

/** What an agent's own server asks about before it answers /metrics and /stats. */
function isMeasurement({ group, resource, subresource, verb }: Question): boolean {
  return (
    group === '' && resource === 'nodes' && verb === 'get' && (subresource === 'metrics' || subresource === 'stats')
  )
}

function controllerGrant(info: KindInfo | undefined, { subresource, verb }: Question): Grant {
  const rule = info?.access.controllers
  const verbs = subresource === undefined ? rule?.verbs : rule?.subresources?.[subresource]
  if (!verbs?.some((each) => each === verb)) {
    return { to: 'nothing', reason: 'controllers do only what binding, attaching and the CSI jobs need' }
  }
  return rule?.only === 'namedSecrets' ? { to: 'namedSecrets' } : all
}

function nodeGrant(info: KindInfo | undefined, question: Question): Grant {
  const { group, resource, subresource, verb } = question
  const rule = info?.access.nodes
  if (rule === undefined) {
    const what = `${group}/${resource}`
    const asksForOthers =
      what === 'authentication.k8s.io/tokenreviews' || what === 'authorization.k8s.io/subjectaccessreviews'
    const isAllowed = (asksForOthers && verb === 'create') || asksForCertificate(question)
    return allIf(isAllowed, `nodes have no access to ${resource}`)
  }
  const verbs = nodeVerbs(rule, subresource)
  if (verbs.some((each) => each === verb)) return { to: 'objectsOfNode', rule }
  const what = subresource === undefined ? resource : `${resource}/${subresource}`
  return { to: 'nothing', reason: `nodes may not ${verb} ${what}` }
}

function nodeVerbs(rule: NodeRule, subresource: string | undefined): readonly Verb[] {
  const main = subresource === undefined
  const status = subresource === 'status' ? statusVerbs : []
  const writing: readonly Verb[] = ['create', 'update', 'patch']
  switch (rule.may) {
    case 'ownName':
      return main ? [...reading, ...writing, ...(rule.keeps ? [] : (['delete'] as const))] : status
    case 'ownPods':
      if (subresource === 'eviction') return ['create']
      return main ? [...reading, 'delete'] : status
    case 'usedByPods':
      if (main) return rule.onlyGet ? ['get'] : reading
      if (subresource !== rule.writes) return []
      return subresource === 'status' ? statusVerbs : ['create']
    case 'volumesOfPods':
    case 'readAll':
      return main ? reading : []
    case 'ownAttachments':
      return main ? ['get'] : []
    case 'ownEvents':
      return main ? ['create', 'patch'] : []
    case 'ownRecords':
      return main ? [...reading, ...writing, 'delete'] : status
    default:
      return rule satisfies never
  }
}
