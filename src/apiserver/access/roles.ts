// May this user do this? The role's grant decides; what it limits to certain objects is looked up in the store.
import { kindNames, kinds } from '../../api/kinds.ts'
import type { ServerContext } from '../objects/context.ts'
import type { User } from '../request/call.ts'
import type { AccessVerb } from './grants.ts'
import { grantOf, nodeNameOf, roleOf } from './grants.ts'
import { isNamedSecret } from './named-secrets.ts'
import { ofNode } from './node-access.ts'

/** What is asked, in the words of an access review. */
export interface Attributes {
  readonly verb: AccessVerb
  readonly group: string
  readonly resource: string
  readonly subresource: string | undefined
  readonly namespace: string | undefined
  readonly name: string | undefined
  /** Selectors narrow what a node may list and watch. */
  readonly fieldSelector: string | undefined
  /** The body of a create, where the decision needs it. */
  readonly object?: unknown
}

export interface Decision {
  readonly allowed: boolean
  readonly reason: string
}

export async function authorize(context: ServerContext, user: User, attributes: Attributes): Promise<Decision> {
  const grant = grantOf(roleOf(user), attributes)
  switch (grant.to) {
    case 'all':
      return { allowed: true, reason: '' }
    case 'nothing':
      return { allowed: false, reason: grant.reason }
    case 'namedSecrets': {
      const allowed = await isNamedSecret(context, attributes)
      return { allowed, reason: allowed ? '' : 'controllers read only secrets that a class or a volume names' }
    }
    case 'objectsOfNode':
      return ofNode(context, nodeNameOf(user), attributes, grant.rule)
    default:
      return grant satisfies never
  }
}

/** For `kubectl auth can-i --list`; roles that are limited to certain objects are too fine-grained for rules and say so. */
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
  const metrics = { verbs: ['get'], nonResourceURLs: ['/metrics'] }
  const own = [
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ]
  const role = roleOf(user)
  const every = { apiGroups: ['*'], resources: ['*'] }
  switch (role) {
    case 'admin':
      return {
        resourceRules: [...own, { verbs: ['*'], ...every }],
        nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
        incomplete: false,
      }
    case 'read-only': {
      const rule = { verbs: ['get', 'list', 'watch'], ...every }
      return { resourceRules: [...own, rule], nonResourceRules: [documents, metrics], incomplete: true }
    }
    case 'monitoring': {
      const rule = { verbs: ['get'], apiGroups: [''], resources: ['nodes/metrics', 'nodes/stats'] }
      return { resourceRules: [...own, rule], nonResourceRules: [documents, metrics], incomplete: false }
    }
    case 'controller':
      return { resourceRules: [...own, ...controllerRules()], nonResourceRules: [documents], incomplete: true }
    case 'node':
      return { resourceRules: own, nonResourceRules: [documents], incomplete: true }
    case 'node-bootstrap': {
      const rule = { verbs: ['create'], apiGroups: ['hawser.dev'], resources: ['nodecertificates'] }
      return { resourceRules: [...own, rule], nonResourceRules: [documents], incomplete: false }
    }
    case 'none':
      return { resourceRules: own, nonResourceRules: [documents], incomplete: false }
    default:
      return role satisfies never
  }
}

function controllerRules(): readonly object[] {
  return kindNames.flatMap((name) => {
    const { group, plural, access } = kinds[name]
    const { verbs = [], subresources = {}, only } = access.controllers ?? {}
    if (only !== undefined || verbs.length === 0) return []
    const below = Object.entries(subresources).map(([part, its]) => [`${plural}/${part}`, its] as const)
    return [[plural, verbs] as const, ...below].map(([resource, its]) => ({
      verbs: its,
      apiGroups: [group],
      resources: [resource],
    }))
  })
}
