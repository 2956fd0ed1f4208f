// Which OpenAPI document does a client get? v3 per group and version under a hash that may be cached for ever,
// v2 whole, in JSON or in the protobuf that kubectl up to 1.28 insists on.
import { createHash } from 'node:crypto'
import { type KindInfo, kindNames, kinds } from '../api/kinds.ts'
import { pathsOf } from './openapi/paths.ts'
import { schemasOf } from './openapi/schemas.ts'
import { openApiV2Json, openApiV2Protobuf } from './protobuf/openapi-v2.ts'

export interface OpenApiDocument {
  readonly body: Buffer
  readonly contentType: string
  /** Of the body, in capitals; also its ETag, in quotes. */
  readonly hash: string
}

export interface OpenApiRequest {
  /** `/openapi/v2`, `/openapi/v3`, `/openapi/v3/api/v1`, `/openapi/v3/apis/{group}/{version}` */
  readonly path: string
  readonly accept: string
  readonly ifNoneMatch: string | undefined
  /** The `hash` of the query. */
  readonly hash: string | undefined
}

export interface OpenApiAnswer {
  readonly status: 200 | 301 | 304
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Undefined when there is no such document. */
export function answerOpenApi(request: OpenApiRequest): OpenApiAnswer | undefined {
  const document = findDocument(request)
  if (document === undefined) return undefined
  const etag = `"${document.hash}"`
  if (request.hash !== undefined && request.hash !== document.hash && request.path !== '/openapi/v2') {
    const location = `${request.path}?hash=${document.hash}`
    return { status: 301, headers: { location, etag }, body: Buffer.alloc(0) }
  }
  const headers = {
    'content-type': document.contentType,
    etag,
    vary: 'Accept',
    ...(request.hash === undefined ? {} : { 'cache-control': 'public, immutable', expires: farFuture }),
  }
  const known = request.ifNoneMatch?.split(',').some((tag) => tag.trim() === etag)
  return known === true
    ? { status: 304, headers, body: Buffer.alloc(0) }
    : { status: 200, headers, body: document.body }
}

const farFuture = 'Thu, 31 Dec 2099 23:59:59 GMT'
/** Clients ask with an `@` before the version; the answer has a dot, for Go's media type parser knows no `@`. */
const v2ProtobufAsked = /application\/com\.github\.proto-openapi\.spec\.v2[@.]v1\.0\+protobuf/
const v2ProtobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

function findDocument(request: OpenApiRequest): OpenApiDocument | undefined {
  const path = request.path.replace(/\/$/, '')
  if (path === '/openapi/v2') return v2ProtobufAsked.test(request.accept) ? v2Protobuf() : v2Json()
  if (path === '/openapi/v3') return v3Index()
  const groupVersion = /^\/openapi\/v3\/(api\/v1|apis\/[^/]+\/[^/]+)$/.exec(path)?.[1]
  return groupVersion === undefined ? undefined : v3Document(groupVersion)
}

const cache = new Map<string, OpenApiDocument>()

function remember(key: string, contentType: string, make: () => Buffer): OpenApiDocument {
  let document = cache.get(key)
  if (document === undefined) {
    const body = make()
    document = { body, contentType, hash: createHash('sha256').update(body).digest('hex').toUpperCase() }
    cache.set(key, document)
  }
  return document
}

const v2Json = () => remember('v2', 'application/json', () => textOf(openApiV2Json()))
const v2Protobuf = () => remember('v2 protobuf', v2ProtobufType, () => Buffer.from(openApiV2Protobuf()))

function v3Index(): OpenApiDocument {
  return remember('v3', 'application/json', () => {
    const paths: Record<string, object> = {}
    for (const key of kindsByGroupVersion.keys()) {
      paths[key] = { serverRelativeURL: `/openapi/v3/${key}?hash=${v3Document(key)?.hash}` }
    }
    return textOf({ paths })
  })
}

/** `api/v1` or `apis/{group}/{version}` */
export function v3Document(groupVersion: string): OpenApiDocument | undefined {
  const infos = kindsByGroupVersion.get(groupVersion)
  if (infos === undefined) return undefined
  return remember(groupVersion, 'application/json', () =>
    textOf({
      openapi: '3.0.0',
      info: { title: 'Hawser', version: 'v1.35.0' },
      paths: pathsOf(infos, 'v3'),
      components: { schemas: schemasOf(infos, 'v3') },
    }),
  )
}

const kindsByGroupVersion: ReadonlyMap<string, readonly KindInfo[]> = Map.groupBy(
  kindNames.map((name) => kinds[name]),
  (info) => (info.group === '' ? 'api/v1' : `apis/${info.group}/${info.version}`),
)

function textOf(document: object): Buffer {
  return Buffer.from(JSON.stringify(document))
}
