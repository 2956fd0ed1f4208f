// Which OpenAPI document does a client get? v3 per group and version under a hash that may be cached for ever,
// v2 whole, in JSON or in the protobuf that kubectl up to 1.28 insists on.
import { createHash } from 'node:crypto'
import { type KindInfo, kindNames, kinds } from '../../api/kinds.ts'
import { pathsOf } from './paths.ts'
import { schemasOf } from './schemas.ts'
import { openApiV2Json, openApiV2Protobuf } from '../protobuf/openapi-v2.ts'

export interface OpenApiDocument {
  readonly body: Buffer
  readonly contentType: string
  /** Of the body, in capitals; also its ETag, in quotes. */
  readonly hash: string
}

interface OpenApiRequest {
  /** `/openapi/v2`, `/openapi/v3`, `/openapi/v3/api/v1`, `/openapi/v3/apis/{group}/{version}` */
  readonly path: string
  readonly accept: string
  readonly ifNoneMatch: string | undefined
  /** The `hash` of the query. */
  readonly hash: string | undefined
}

interface OpenApiAnswer {
  readonly status: 200 | 301 | 304
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export type OpenApi = (request: OpenApiRequest) => OpenApiAnswer | undefined

/** One per server: each document is made when somebody first asks for it. Undefined when there is no such document. */
export function createOpenApi(): OpenApi {
  const documents = new Map<string, OpenApiDocument>()
  return (request) => {
    const key = documentKey(request)
    const known = documents.get(key)
    const document = known ?? makeDocument(key)
    if (document === undefined) return undefined
    documents.set(key, document)
    return answerWith(document, request)
  }
}

function answerWith(document: OpenApiDocument, request: OpenApiRequest): OpenApiAnswer {
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

const v2ProtobufKey = '/openapi/v2 protobuf'

function documentKey({ path, accept }: OpenApiRequest): string {
  const plain = path.replace(/\/$/, '')
  return plain === '/openapi/v2' && v2ProtobufAsked.test(accept) ? v2ProtobufKey : plain
}

function makeDocument(key: string): OpenApiDocument | undefined {
  switch (key) {
    case v2ProtobufKey:
      return document(Buffer.from(openApiV2Protobuf()), v2ProtobufType)
    case '/openapi/v2':
      return document(textOf(openApiV2Json()))
    case '/openapi/v3':
      return v3Index()
    default: {
      const groupVersion = /^\/openapi\/v3\/(api\/v1|apis\/[^/]+\/[^/]+)$/.exec(key)?.[1]
      return groupVersion === undefined ? undefined : v3Document(groupVersion)
    }
  }
}

function document(body: Buffer, contentType = 'application/json'): OpenApiDocument {
  return { body, contentType, hash: createHash('sha256').update(body).digest('hex').toUpperCase() }
}

function v3Index(): OpenApiDocument {
  const paths: Record<string, object> = {}
  for (const key of kindsByGroupVersion.keys()) {
    paths[key] = { serverRelativeURL: `/openapi/v3/${key}?hash=${v3Document(key)?.hash}` }
  }
  return document(textOf({ paths }))
}

/** `api/v1` or `apis/{group}/{version}` */
export function v3Document(groupVersion: string): OpenApiDocument | undefined {
  const infos = kindsByGroupVersion.get(groupVersion)
  if (infos === undefined) return undefined
  return document(
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
