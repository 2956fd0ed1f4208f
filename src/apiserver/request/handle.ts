// What is the answer to a request? Route, authorize, act, and turn every failure into a Status; no sockets here,
// so the same function serves HTTP and tests.
import type { Verb } from '../../api/kinds/define-kind.ts'
import type { Typed } from '../../api/meta.ts'
import {
  badRequest,
  forbidden,
  internalError,
  methodNotAllowed,
  serviceUnavailable,
  StatusError,
  tooManyRequests,
  unauthorized,
  unknownResource,
} from '../../api/status-error.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Attributes } from '../access/roles.ts'
import { authorize } from '../access/roles.ts'
import { mayReadDocument, roleOf } from '../access/grants.ts'
import type { NodeSigner } from '../access/node-certificates.ts'
import { issueNodeCertificate } from '../access/node-certificates.ts'
import type { Tokens } from '../access/tokens.ts'
import type { User } from './call.ts'
import type { Audit } from '../../telemetry/audit.ts'
import { auditRecord, isRefusal, mustBeAudited } from '../access/audit.ts'
import { decodeBody, MalformedJson } from '../http/codec.ts'
import type { ServerContext } from '../objects/context.ts'
import { createObjectApi } from '../objects/object-api.ts'
import type { DocumentDeps } from '../discovery/documents.ts'
import { documentResponse, noPage } from '../discovery/documents.ts'
import type { HttpCall, VerbDeps } from './http-verbs.ts'
import { collectionVerb, isWatch, objectVerb } from './http-verbs.ts'
import { impersonatedUser, impersonationAttributes } from './impersonate.ts'
import { parseFlag } from './options.ts'
import type { NodeClient } from './pass-through.ts'
import type { Form } from '../http/negotiate.ts'
import { negotiate, offerOf, statusForm } from '../http/negotiate.ts'
import type { ApiResponse } from '../http/respond.ts'
import { errorResponse, valueResponse, jsonResponse } from '../http/respond.ts'
import { review } from './reviews.ts'
import type { ResourceRoute, ReviewRoute, Route } from './router.ts'
import { isStream, route } from './router.ts'
import { createWatchLines } from '../http/watch-stream.ts'

export interface ApiRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** Undefined when the client did not say who it is, or lied. */
  readonly user: User | undefined
  /** The address that it came from, as far as known. */
  readonly source?: string | undefined
  readonly signal: AbortSignal
}

export interface HandlerDeps extends DocumentDeps {
  readonly context: ServerContext
  readonly tokens: Tokens
  readonly log: Log
  readonly audit: Audit
  readonly nodeClient: NodeClient | undefined
  readonly nodeSigner: NodeSigner | undefined
  /** Requests other than watches served at the same time; more are told to come back. */
  readonly concurrency: number
  /** Streams (watches, logs) open at the same time; more are told to come back. */
  readonly streams: number
  /** Those of one user. */
  readonly streamsPerUser: number
  /** Counts a finished request. */
  readonly observe?: (verb: string, resource: string, code: number, seconds: number) => void
}

export type ApiHandler = (request: ApiRequest) => Promise<ApiResponse>

/** Health is for everyone: load balancers have no token. */
const open: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/version'])

export function createApiHandler(deps: HandlerDeps): ApiHandler {
  const lines = createWatchLines(deps.context.objects)
  const verbs: VerbDeps = { context: deps.context, tokens: deps.tokens, lines, nodeClient: deps.nodeClient }
  const load: Load = { active: 0, streams: 0, streamsOf: new Map() }
  return async (request) => {
    const started = deps.context.clock.now()
    const warnings: string[] = []
    const where = route(request.path)
    let made: string | undefined
    const asker = request.user ?? anonymous
    const named = readImpersonation(request)
    const call: HttpCall = {
      ...request,
      user: named.user ?? asker,
      warn: (text) => warnings.push(text),
      made: (name) => void (made = name),
    }
    // Whoever acts as somebody else is written down, whatever the request is.
    const mustBe = mustBeAudited(request.method, where) || named.user !== undefined || named.error !== undefined
    const unwritten = mustBe ? deps.audit.refusal() : undefined
    let response =
      unwritten === undefined
        ? await attempt(deps, load, request, where, call, async () => {
            if (named.error) throw named.error
            if (named.user) await checkImpersonation(deps, { ...call, user: asker }, named.user)
            return answer(deps, verbs, call, where)
          })
        : errorResponse(serviceUnavailable(`${unwritten}. Nothing was done.`), errorForm(request, where))
    const ms = deps.context.clock.now() - started
    if (unwritten === undefined && (mustBe || isRefusal(response.status))) {
      const who = { user: asker.name, source: request.source, impersonatedUser: named.user?.name }
      const record = auditRecord(call, where, { ...who, code: response.status, ms, made })
      await deps.audit.write(record).catch(() => {
        response = errorResponse(
          serviceUnavailable('the audit log cannot be written. What was asked may have been done.'),
          errorForm(request, where),
        )
      })
    }
    const resource = where.kind === 'resource' ? where.info.plural : where.kind
    deps.observe?.(request.method, resource, response.status, ms / 1000)
    return withWarnings(wantsPretty(call) ? pretty(response) : response, warnings)
  }
}

/** How many requests are being served, and how many of their bodies are open streams. */
interface Load {
  active: number
  streams: number
  /** By the name of the user who opened them, whoever they act as. */
  readonly streamsOf: Map<string, number>
}

function checkLoad(deps: HandlerDeps, load: Load, where: Route, call: HttpCall, asker: string): void {
  if (!isLong(where, call)) {
    if (load.active > deps.concurrency) throw tooManyRequests('please try again later.', 1)
    return
  }
  if (load.streams >= deps.streams) throw tooManyRequests('please try again later.', 1)
  if ((load.streamsOf.get(asker) ?? 0) < deps.streamsPerUser) return
  const why = `you have ${deps.streamsPerUser} watches, logs and other streams open; close some first.`
  throw tooManyRequests(why, 1)
}

/** Every failure becomes a Status; those that are not meant for clients are logged. */
async function attempt(
  deps: HandlerDeps,
  load: Load,
  request: ApiRequest,
  where: Route,
  call: HttpCall,
  act: () => Promise<ApiResponse>,
): Promise<ApiResponse> {
  const asker = (request.user ?? anonymous).name
  load.active++
  try {
    checkKnown(request, where)
    checkLoad(deps, load, where, call, asker)
    return counted(load, asker, await act())
  } catch (error) {
    const form = errorForm(request, where)
    if (error instanceof StatusError) return errorResponse(error, form)
    deps.log.error('api request failed', { path: request.path, error })
    return errorResponse(internalError('see the server log', error), form)
  } finally {
    load.active--
  }
}

function errorForm({ headers }: ApiRequest, where: Route): Form {
  return statusForm(headers['accept'], where.kind === 'resource' ? offerOf(where.info) : { protobuf: true })
}

async function answer(deps: HandlerDeps, verbs: VerbDeps, call: HttpCall, where: Route): Promise<ApiResponse> {
  switch (where.kind) {
    case 'none':
      if (where.known) throw unknownResource()
      return noPage()
    case 'document':
      checkDocument(call, where.path)
      return documentResponse(deps, where.path, call)
    case 'review':
      await checkAccess(deps, call, reviewAttributes(where))
      if (call.method !== 'POST') throw methodNotAllowed()
      return await reviewed(deps, where, call)
    case 'resource':
      await checkAccess(deps, call, attributesOf(where, call))
      if (where.name === undefined) return collectionVerb(verbs, where, call)
      return objectVerb(verbs, where, where.name, call)
    default:
      return where satisfies never
  }
}

/** Counts a stream until its reader is done with it. */
function counted(load: Load, asker: string, response: ApiResponse): ApiResponse {
  const { body, upgrade } = response
  return {
    ...response,
    ...(body instanceof Uint8Array ? {} : { body: countedBody(load, asker, body) }),
    ...(upgrade === undefined ? {} : { upgrade: countedUpgrade(load, asker, upgrade) }),
  }
}

async function* countedBody(
  load: Load,
  asker: string,
  body: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  using _ = countStream(load, asker)
  yield* body
}

function countedUpgrade(
  load: Load,
  asker: string,
  upgrade: NonNullable<ApiResponse['upgrade']>,
): NonNullable<ApiResponse['upgrade']> {
  return async (connection) => {
    using _ = countStream(load, asker)
    await upgrade(connection)
  }
}

function countStream(load: Load, asker: string): Disposable {
  const add = (count: number): void => {
    load.streams += count
    const own = (load.streamsOf.get(asker) ?? 0) + count
    if (own === 0) load.streamsOf.delete(asker)
    else load.streamsOf.set(asker, own)
  }
  add(1)
  return { [Symbol.dispose]: () => add(-1) }
}

/** Curl, wget and browsers get indented JSON unless the query says otherwise. */
function wantsPretty({ query, headers }: HttpCall): boolean {
  const asked = query.get('pretty')
  if (asked !== null) return parseFlag(asked)
  return /^(curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '')
}

const longestPretty = 256 * 1024

function pretty(response: ApiResponse): ApiResponse {
  const { body, headers } = response
  // For people, who do not read as much.
  if (!(body instanceof Uint8Array) || body.length > longestPretty) return response
  if (!/^application\/json\b/.test(headers['content-type'] ?? '')) return response
  return { ...response, body: Buffer.from(`${JSON.stringify(JSON.parse(body.toString()), undefined, 2)}\n`) }
}

const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

function checkKnown(request: ApiRequest, where: Route): void {
  if (request.user !== undefined) return
  if (where.kind === 'document' && open.has(where.path)) return
  throw unauthorized()
}

/** Watches, logs and streams live long; they are bounded elsewhere. */
function isLong(where: Route, call: HttpCall): boolean {
  if (isStream(where)) return true
  return where.kind === 'resource' && call.method === 'GET' && (isWatch(where, call) || where.subresource === 'log')
}

/** The user that the request acts as; what is wrong with its headers is told when the request is answered. */
function readImpersonation({ headers }: ApiRequest): { readonly user?: User; readonly error?: unknown } {
  try {
    const user = impersonatedUser(headers)
    return user === undefined ? {} : { user }
  } catch (error) {
    return { error }
  }
}

async function checkImpersonation(deps: HandlerDeps, call: HttpCall, as: User): Promise<void> {
  for (const attributes of impersonationAttributes(call.headers, as)) await checkAccess(deps, call, attributes)
}

function checkDocument({ user, method }: HttpCall, path: string): void {
  if (mayReadDocument(roleOf(user), path)) return
  const why = `User ${JSON.stringify(user.name)} cannot ${method.toLowerCase()} path ${JSON.stringify(path)}`
  throw forbidden({ group: '', plural: '' }, '', why)
}

async function checkAccess(deps: HandlerDeps, call: HttpCall, attributes: Attributes): Promise<void> {
  const { user } = call
  const { allowed, reason } = await authorize(deps.context, user, attributes)
  if (allowed) return
  const { verb, group, resource, subresource, namespace, name } = attributes
  const what = subresource === undefined ? resource : `${resource}/${subresource}`
  const place = namespace === undefined ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  const why = `User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${place}`
  throw forbidden({ group, plural: resource }, name ?? '', reason === '' ? why : `${why}: ${reason}`)
}

function attributesOf(where: ResourceRoute, call: HttpCall): Attributes {
  const { info, namespace, name, subresource } = where
  const base = {
    group: info.group,
    resource: info.plural,
    subresource,
    namespace: info.name === 'Namespace' ? name : namespace,
    name,
    fieldSelector: call.query.get('fieldSelector') ?? undefined,
  }
  const verb = verbOf(where, call)
  return verb === 'create' ? { ...base, verb, object: bodyIfReadable(call) } : { ...base, verb }
}

function verbOf(where: ResourceRoute, call: HttpCall): Verb {
  const { name } = where
  if (isStream(where)) return 'create'
  switch (call.method) {
    case 'GET':
    case 'HEAD':
      if (isWatch(where, call)) return 'watch'
      return name === undefined ? 'list' : 'get'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return name === undefined ? 'deletecollection' : 'delete'
    default:
      return 'create'
  }
}

/** Only the node role looks into bodies; what cannot be read is refused by the verb itself, with a better text. */
function bodyIfReadable(call: HttpCall): unknown {
  if (!call.user.groups.includes('system:nodes')) return undefined
  try {
    return decodeBody(call.headers['content-type'], call.body)
  } catch {
    return undefined
  }
}

function reviewAttributes({ review: name, namespace }: ReviewRoute): Attributes {
  const group = groupOfReview(name)
  return {
    verb: 'create',
    group,
    resource: name,
    subresource: undefined,
    namespace,
    name: undefined,
    fieldSelector: undefined,
  }
}

function reviewResponse(answered: Typed, { headers }: HttpCall): ApiResponse {
  return valueResponse(201, answered, negotiate(headers['accept'], offerOf(answered)))
}

function groupOfReview(name: ReviewRoute['review']): string {
  if (name === 'nodecertificates') return 'hawser.dev'
  return name === 'tokenreviews' || name === 'selfsubjectreviews' ? 'authentication.k8s.io' : 'authorization.k8s.io'
}

async function reviewed(deps: HandlerDeps, where: ReviewRoute, call: HttpCall): Promise<ApiResponse> {
  const { review: name, namespace } = where
  const [body, now] = [reviewBody(call), timestamp(deps.context.clock.now())]
  if (name !== 'nodecertificates')
    return reviewResponse(await review(deps, { review: name, namespace, body, user: call.user, now }), call)
  const api = createObjectApi(deps, { name: 'system:apiserver', groups: ['system:masters'] })
  const issuing = { context: deps.context, api, signer: deps.nodeSigner }
  return jsonResponse(201, await issueNodeCertificate(issuing, call.user, body))
}

function reviewBody(call: HttpCall): unknown {
  try {
    return decodeBody(call.headers['content-type'], call.body)
  } catch (error) {
    if (error instanceof MalformedJson)
      throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`)
    throw error
  }
}

const warningLimit = 20

function withWarnings(response: ApiResponse, warnings: readonly string[]): ApiResponse {
  if (warnings.length === 0) return response
  const texts = [...new Set(warnings)].slice(0, warningLimit).map((text) => `299 - ${quoted(text)}`)
  return { ...response, headers: { ...response.headers, warning: texts.join(', ') } }
}

/** A quoted-string of printable ASCII, short enough for a header. */
function quoted(text: string): string {
  const plain = text.replace(/[^\u0020-\u007e]/g, '?').slice(0, 256)
  return `"${plain.replace(/[\\"]/g, (character) => `\\${character}`)}"`
}
