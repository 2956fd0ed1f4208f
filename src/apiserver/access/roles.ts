// Who may do what? Four roles, decided from the user's groups; the node role looks at what its pods use.
import type { Verb } from '../../api/kinds.ts'
import type { User } from '../call.ts'
import type { NodeAccess } from './node-access.ts'

/** What is asked, in the words of an access review. */
export interface Attributes {
  readonly verb: Verb
  readonly group: string
  readonly resource: string
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string | undefined
  /** Selectors narrow what a node may list and watch. */
  readonly fieldSelector: string | undefined
  /** The body of a write, where the decision needs it. */
  readonly object?: unknown
}

export interface Decision {
  readonly allowed: boolean
  readonly reason: string
}

export type Role = 'admin' | 'read-only' | 'node' | 'controller' | 'none'

export const groupsOfRoles = {
  admin: 'system:masters',
  'read-only': 'hawser:read-only',
  controller: 'hawser:controllers',
  node: 'system:nodes',
} as const

const nodePrefix = 'system:node:'
const reading: ReadonlySet<Verb> = new Set<Verb>(['get', 'list', 'watch'])
/** What lets its holder become somebody else, or end everything, is for administrators. */
const beyondControllers: ReadonlySet<string> = new Set(['/secrets', '/serviceaccounts', '/namespaces'])
const secrets = '/secrets'
/** Whoever looks into a pod is whoever the pod is, and reads what it reads. */
const streams: ReadonlySet<string> = new Set(['pods/exec', 'pods/attach', 'pods/portforward'])

export function roleOf(user: User): Role {
  const { groups, name } = user
  if (groups.includes(groupsOfRoles.admin)) return 'admin'
  if (groups.includes(groupsOfRoles.controller)) return 'controller'
  if (groups.includes(groupsOfRoles.node) && name.startsWith(nodePrefix)) return 'node'
  if (groups.includes(groupsOfRoles['read-only'])) return 'read-only'
  return 'none'
}

export function nodeNameOf(user: User): string {
  return user.name.slice(nodePrefix.length)
}

/** Reviews about oneself and the server's documents are open to every known user. */
export function isOpen(attributes: Pick<Attributes, 'group' | 'resource' | 'verb'>): boolean {
  const { group, resource, verb } = attributes
  if (verb !== 'create') return false
  if (group === 'authentication.k8s.io') return resource === 'selfsubjectreviews'
  return group === 'authorization.k8s.io' && resource.startsWith('selfsubject')
}

export async function authorize(user: User, attributes: Attributes, nodes: NodeAccess): Promise<Decision> {
  if (isOpen(attributes)) return { allowed: true, reason: 'every known user may ask about itself' }
  const role = roleOf(user)
  const resource = `${attributes.group}/${attributes.resource}`
  switch (role) {
    case 'admin':
      return { allowed: true, reason: '' }
    case 'read-only':
      return decide(
        reading.has(attributes.verb) && resource !== secrets && !opensPods(attributes),
        'read-only users read everything but secrets',
      )
    case 'controller':
      return decide(
        !opensPods(attributes) && (reading.has(attributes.verb) || !beyondControllers.has(resource)),
        'controllers do not write secrets, service accounts and namespaces, nor look into pods',
      )
    case 'node':
      return nodes.decide(nodeNameOf(user), attributes)
    case 'none':
      return { allowed: false, reason: '' }
    default:
      return role satisfies never
  }
}

function opensPods({ verb, group, resource, subresource }: Attributes): boolean {
  if (group !== '') return false
  return (
    streams.has(`${resource}/${subresource}`) || (resource === 'nodes' && subresource === 'proxy' && verb !== 'get')
  )
}

function decide(allowed: boolean, rule: string): Decision {
  return { allowed, reason: allowed ? '' : rule }
}

/** For `kubectl auth can-i --list`; the node role is too fine-grained for rules and says so. */
export function rulesOf(user: User): {
  readonly resourceRules: readonly object[]
  readonly nonResourceRules: readonly object[]
  readonly incomplete: boolean
} {
  const documents = {
    verbs: ['get'],
    nonResourceURLs: [
      '/api',
      '/api/*',
      '/apis',
      '/apis/*',
      '/healthz',
      '/livez',
      '/openapi',
      '/openapi/*',
      '/readyz',
      '/version',
      '/version/',
    ],
  }
  const own = [
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ]
  const role = roleOf(user)
  const all = { apiGroups: ['*'], resources: ['*'] }
  switch (role) {
    case 'admin':
      return {
        resourceRules: [...own, { verbs: ['*'], ...all }],
        nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        incomplete: false,
      }
    case 'controller':
    case 'read-only':
    case 'node': {
      const verbs = role === 'controller' ? ['*'] : ['get', 'list', 'watch']
      return { resourceRules: [...own, { verbs, ...all }], nonResourceRules: [documents], incomplete: true }
    }
    case 'none':
      return { resourceRules: own, nonResourceRules: [documents], incomplete: false }
    default:
      return role satisfies never
  }
}
