// Who am I, and may I? The review kinds: questions that are posted, answered and never stored.
import type { JsonObject } from '../../api/json.ts'
import { jsonObjectOf } from '../../api/json.ts'
import { shown } from './shown.ts'
import { invalid, invalidObject } from '../../api/field-errors.ts'
import type { FieldError } from '../../api/field-errors.ts'
import type { Typed } from '../../api/meta.ts'
import { badRequest } from '../../api/status-error.ts'
import type { AccessVerb } from '../access/grants.ts'
import { mayReadDocument, roleOf } from '../access/grants.ts'
import type { ServerContext } from '../objects/context.ts'
import type { Attributes, Decision } from '../access/roles.ts'
import { authorize, rulesOf } from '../access/roles.ts'
import type { Tokens } from '../access/tokens.ts'
import type { User } from './call.ts'
import type { ReviewName } from './router.ts'

export interface ReviewDeps {
  readonly tokens: Tokens
  readonly context: ServerContext
}

type Question = Exclude<ReviewName, 'nodecertificates'>

const kindOfReview: Readonly<Record<Question, string>> = {
  tokenreviews: 'TokenReview',
  selfsubjectreviews: 'SelfSubjectReview',
  subjectaccessreviews: 'SubjectAccessReview',
  localsubjectaccessreviews: 'LocalSubjectAccessReview',
  selfsubjectaccessreviews: 'SelfSubjectAccessReview',
  selfsubjectrulesreviews: 'SelfSubjectRulesReview',
}

export interface ReviewRequest {
  readonly review: Question
  /** Of the path: only a local review has one. */
  readonly namespace: string | undefined
  readonly body: unknown
  readonly user: User
  /** RFC 3339. */
  readonly now: string
}

export async function review(deps: ReviewDeps, request: ReviewRequest): Promise<Typed> {
  const { review: name, namespace, body, user, now } = request
  const group = name === 'tokenreviews' || name === 'selfsubjectreviews' ? 'authentication' : 'authorization'
  const type = { kind: kindOfReview[name], apiVersion: `${group}.k8s.io/v1` }
  const sent = jsonObjectOf(body)
  if (sent['kind'] !== undefined && sent['kind'] !== type.kind) {
    throw badRequest(`${shown(sent['kind'])} cannot be handled as a ${type.kind}`)
  }
  const spec = jsonObjectOf(sent['spec'])
  const metadata = namespace === undefined ? {} : { namespace }
  const answer = (status: object): Typed => ({ ...type, metadata, spec, status })
  switch (name) {
    case 'tokenreviews':
      return answer(await tokenReview(deps, spec))
    case 'selfsubjectreviews':
      return { ...type, metadata: { creationTimestamp: now }, status: { userInfo: userInfo(user) } }
    case 'selfsubjectrulesreviews':
      return { ...type, metadata, spec: {}, status: rulesOf(user) }
    case 'selfsubjectaccessreviews':
      checkAttributes(spec, type)
      return answer(await accessReview(deps, user, spec))
    case 'subjectaccessreviews':
    case 'localsubjectaccessreviews':
      checkAttributes(spec, type, { subject: true, namespace })
      return answer(await accessReview(deps, subjectOf(spec), spec))
    default:
      return name satisfies never
  }
}

async function tokenReview(deps: ReviewDeps, spec: JsonObject): Promise<object> {
  const { token, audiences } = spec
  if (typeof token !== 'string' || token === '') {
    throw badRequest('token is required for TokenReview in authentication')
  }
  const wanted = Array.isArray(audiences) ? audiences.filter((each) => typeof each === 'string') : undefined
  const found = await deps.tokens.authenticate(token, wanted?.length ? wanted : undefined)
  if (found === undefined) return { user: {}, authenticated: false, error: 'invalid bearer token' }
  return { authenticated: true, user: userInfo(found.user), audiences: found.audiences }
}

/** A question is about a resource or about a path; of somebody else it says about whom. */
function checkAttributes(
  spec: JsonObject,
  type: { readonly kind: string },
  about: { readonly subject?: boolean; readonly namespace?: string | undefined } = {},
): void {
  const { resourceAttributes: resource, nonResourceAttributes: path, user, groups } = spec
  const errors: FieldError[] = []
  if (resource !== undefined && path !== undefined) {
    const { path: Path, verb: Verb } = jsonObjectOf(path)
    const text = 'cannot be specified in combination with resourceAttributes'
    errors.push(invalid('spec.nonResourceAttributes', { Path, Verb }, text))
  }
  if (resource === undefined && path === undefined) {
    const text = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
    errors.push(invalid('spec.resourceAttributes', null, text))
  }
  if (about.subject && !user && !(Array.isArray(groups) && groups.length > 0)) {
    errors.push(invalid('spec.user', '', 'at least one of user or group must be specified'))
  }
  const asked = jsonObjectOf(resource)['namespace'] ?? ''
  if (about.namespace !== undefined && asked !== about.namespace) {
    errors.push(invalid('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace'))
  }
  if (errors.length > 0) throw invalidObject({ group: 'authorization.k8s.io', kind: type.kind }, '', errors)
}

async function accessReview(deps: ReviewDeps, user: User, spec: JsonObject): Promise<object> {
  const { resourceAttributes, nonResourceAttributes } = spec
  if (resourceAttributes === undefined) {
    const asked = jsonObjectOf(nonResourceAttributes)
    const role = roleOf(user)
    const reads = text(asked, 'verb') === 'get' && mayReadDocument(role, text(asked, 'path'))
    return statusOf({ allowed: reads || role === 'admin', reason: '' })
  }
  return statusOf(await authorize(deps.context, user, attributesOf(jsonObjectOf(resourceAttributes))))
}

/** `*` asks for all of something: allowed only when nothing narrower could be refused. */
function attributesOf(sent: JsonObject): Attributes {
  const verb = text(sent, 'verb')
  return {
    // Any verb a client makes up is compared like the known ones, and refused by every role but admin.
    verb: verb as AccessVerb,
    group: text(sent, 'group'),
    resource: text(sent, 'resource'),
    subresource: text(sent, 'subresource') || undefined,
    namespace: text(sent, 'namespace') || undefined,
    name: text(sent, 'name') || undefined,
    fieldSelector: undefined,
  }
}

function statusOf({ allowed, reason }: Decision): object {
  return { allowed, ...(reason === '' ? {} : { reason }) }
}

function subjectOf(spec: JsonObject): User {
  const { user, groups, uid } = spec
  return {
    name: typeof user === 'string' ? user : '',
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
    ...(typeof uid === 'string' ? { uid } : {}),
  }
}

function userInfo(user: User): object {
  return {
    username: user.name,
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(user.extra === undefined ? {} : { extra: user.extra }),
  }
}

function text(map: JsonObject, name: string): string {
  const value = map[name]
  return typeof value === 'string' ? value : ''
}
