// What is the answer to a request? Route, authorize, act, and turn every failure into a Status; no sockets here,
// so the same function serves HTTP and tests.
import type { Verb } from '../api/kinds.ts'
import {
  badRequest,
  forbidden,
  internalError,
  methodNotAllowed,
  StatusError,
  tooManyRequests,
  unauthorized,
  unknownResource,
} from '../api/status-error.ts'
import { timestamp } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { NodeAccess } from './access/node-access.ts'
import type { Attributes } from './access/roles.ts'
import { authorize } from './access/roles.ts'
import type { Tokens } from './access/tokens.ts'
import type { User } from './call.ts'
import type { Audit } from './audit.ts'
import { auditRecord, isMutating } from './audit.ts'
import { decodeBody, MalformedJson } from './codec.ts'
import type { ServerContext } from './context.ts'
import type { DocumentDeps } from './documents.ts'
import { documentResponse, noPage } from './documents.ts'
import type { HttpCall } from './http-verbs.ts'
import { collectionVerb, isWatch, objectVerb } from './http-verbs.ts'
import { parseFlag } from './options.ts'
import type { NodeDoors } from './pass-through.ts'
import type { ApiResponse } from './respond.ts'
import { errorResponse, jsonResponse } from './respond.ts'
import type { ReviewRequest } from './reviews.ts'
import { review } from './reviews.ts'
import type { ResourceRoute, ReviewRoute, Route } from './router.ts'
import { route } from './router.ts'
import { createWatchLines } from './watch-stream.ts'

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
  readonly signal: AbortSignal
}

export interface HandlerDeps extends DocumentDeps {
  readonly context: ServerContext
  readonly tokens: Tokens
  readonly nodes: NodeAccess
  readonly log: Log
  readonly audit: Audit
  readonly doors: NodeDoors | undefined
  /** Requests other than watches served at the same time; more are told to come back. */
  readonly concurrency: number
  /** Streams (watches, logs) open at the same time; more are told to come back. */
  readonly streams: number
  /** Counts a finished request. */
  readonly observe?: (verb: string, resource: string, code: number, seconds: number) => void
}

export type ApiHandler = (request: ApiRequest) => Promise<ApiResponse>

/** Health is for everyone: load balancers have no token. */
const open: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz', '/version'])

export function createApiHandler(deps: HandlerDeps): ApiHandler {
  const lines = createWatchLines()
  const verbs = { context: deps.context, tokens: deps.tokens, lines, doors: deps.doors }
  let active = 0
  let streams = 0

  /** Counts a stream until its reader is done with it. */
  async function* counted(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    streams++
    try {
      yield* body
    } finally {
      streams--
    }
  }

  const countedUpgrade =
    (upgrade: NonNullable<ApiResponse['upgrade']>): typeof upgrade =>
    async (connection) => {
      streams++
      try {
        await upgrade(connection)
      } finally {
        streams--
      }
    }

  async function answer(call: HttpCall, where: Route): Promise<ApiResponse> {
    switch (where.kind) {
      case 'none':
        if (where.known) throw unknownResource()
        return noPage()
      case 'document':
        return documentResponse(deps, where.path, call)
      case 'review':
        await checkAccess(deps, call, reviewAttributes(where))
        if (call.method !== 'POST') throw methodNotAllowed()
        return jsonResponse(201, await review(deps, reviewRequest(deps, where, call)))
      case 'resource':
        await checkAccess(deps, call, attributesOf(where, call))
        if (where.name === undefined) return collectionVerb(verbs, where, call)
        return objectVerb(verbs, where, where.name, call)
      default:
        return where satisfies never
    }
  }

  return async (request) => {
    const started = deps.context.clock.now()
    const warnings: string[] = []
    const where = route(request.path)
    let made: string | undefined
    const call: HttpCall = {
      ...request,
      user: request.user ?? anonymous,
      warn: (text) => warnings.push(text),
      made: (name) => void (made = name),
    }
    let response: ApiResponse
    if (isLong(where, call) ? streams >= deps.streams : active >= deps.concurrency) {
      response = errorResponse(tooManyRequests('please try again later.', 1))
    } else {
      active++
      try {
        checkKnown(request, where)
        response = await answer(call, where)
        if (!(response.body instanceof Uint8Array)) response = { ...response, body: counted(response.body) }
        if (response.upgrade) response = { ...response, upgrade: countedUpgrade(response.upgrade) }
      } catch (error) {
        if (!(error instanceof StatusError)) deps.log.error('api request failed', { path: request.path, error })
        response = errorResponse(error instanceof StatusError ? error : internalError('see the server log', error))
      } finally {
        active--
      }
    }
    const ms = deps.context.clock.now() - started
    if (isMutating(request.method) || isStream(where)) deps.audit(auditRecord(call, where, response.status, ms, made))
    deps.observe?.(
      request.method,
      where.kind === 'resource' ? where.info.plural : where.kind,
      response.status,
      ms / 1000,
    )
    return withWarnings(wantsPretty(call) ? pretty(response) : response, warnings)
  }
}

/** People who look by hand get lines and indents, unless they say otherwise. */
function wantsPretty({ query, headers }: HttpCall): boolean {
  const asked = query.get('pretty')
  if (asked !== null) return parseFlag(asked)
  return /^(curl|Wget|Mozilla\/5\.0)/.test(headers['user-agent'] ?? '')
}

function pretty(response: ApiResponse): ApiResponse {
  const { body, headers } = response
  if (!(body instanceof Uint8Array) || !/^application\/json\b/.test(headers['content-type'] ?? '')) return response
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

/** Somebody looks into a pod: that is recorded, and is no mere reading, whatever the method says. */
function isStream(where: Route): boolean {
  return where.kind === 'resource' && where.info.name === 'Pod' && streamNames.has(where.subresource ?? '')
}

const streamNames: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward'])

async function checkAccess(deps: HandlerDeps, call: HttpCall, attributes: Attributes): Promise<void> {
  const { user } = call
  const { allowed, reason } = await authorize(user, attributes, deps.nodes)
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
  const group =
    name === 'tokenreviews' || name === 'selfsubjectreviews' ? 'authentication.k8s.io' : 'authorization.k8s.io'
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

function reviewRequest(deps: HandlerDeps, where: ReviewRoute, call: HttpCall): ReviewRequest {
  const now = timestamp(deps.context.clock.now())
  return { review: where.review, namespace: where.namespace, body: reviewBody(call), user: call.user, now }
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
