// What does the server say about itself? Discovery, OpenAPI, version, health and metrics.
import { methodNotAllowed, unknownResource } from '../../api/status-error.ts'
import {
  aggregatedContentType,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  wantedAggregated,
} from './discovery.ts'
import type { Tokens } from '../access/tokens.ts'
import { defaultAudience } from '../access/tokens.ts'
import type { HttpCall } from '../request/http-verbs.ts'
import type { OpenApi } from '../openapi/openapi.ts'
import type { ApiResponse } from '../http/respond.ts'
import { jsonResponse, textResponse } from '../http/respond.ts'

export interface DocumentDeps {
  /** Prometheus text; absent when nobody measures. */
  readonly metrics: (() => Promise<string>) | undefined
  /** Why the server cannot serve yet, or no longer; empty when it can. */
  readonly notReady: () => readonly string[]
  readonly openApi: OpenApi
  readonly tokens: Pick<Tokens, 'keySet'>
}

/** What we claim to be: the reference behaviour is Kubernetes 1.35 (decision 2). */
const serverVersion = {
  major: '1',
  minor: '35',
  emulationMajor: '1',
  emulationMinor: '35',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '34',
  gitVersion: 'v1.35.0+hawser',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'linux/amd64',
} as const

export async function documentResponse(deps: DocumentDeps, path: string, call: HttpCall): Promise<ApiResponse> {
  if (call.method !== 'GET' && call.method !== 'HEAD') throw methodNotAllowed()
  const [root = '', first, second] = path.split('/').slice(1)
  switch (root) {
    case 'api':
      return first === undefined ? discoveryRoot('api', call) : resources('', first, path)
    case 'apis':
      if (first === undefined) return discoveryRoot('apis', call)
      // A group that does not exist is no resource but a page nobody wrote.
      if (apiGroup(first) === undefined) return noPage()
      return second === undefined ? found(apiGroup(first)) : resources(first, second, path)
    case 'version':
      return jsonResponse(200, serverVersion)
    case 'healthz':
    case 'livez':
      return health(root, first, [], call)
    case 'readyz':
      return health(root, first, deps.notReady(), call)
    case 'metrics':
      if (deps.metrics === undefined || first !== undefined) return noPage()
      return textResponse(200, await deps.metrics(), 'text/plain; version=0.0.4; charset=utf-8')
    case '.well-known':
      return path === '/.well-known/openid-configuration' ? issuer(call) : noPage()
    case 'openid':
      return path === '/openid/v1/jwks' ? keySet(deps) : noPage()
    case 'openapi':
      return openapi(deps.openApi, path, call)
    case '':
      return jsonResponse(200, {
        paths: [
          '/.well-known/openid-configuration',
          '/api',
          '/api/v1',
          '/apis',
          '/healthz',
          '/livez',
          '/metrics',
          '/openapi/v2',
          '/openapi/v3',
          '/openid/v1/jwks',
          '/readyz',
          '/version',
        ],
      })
    default:
      return noPage()
  }
}

/** Who signs tokens of service accounts, for those who verify them elsewhere. */
function issuer(call: HttpCall): ApiResponse {
  return jsonResponse(200, {
    issuer: defaultAudience,
    jwks_uri: `https://${hostOf(call)}/openid/v1/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  })
}

function keySet({ tokens }: DocumentDeps): ApiResponse {
  const response = jsonResponse(200, tokens.keySet)
  return { ...response, headers: { ...response.headers, 'content-type': 'application/jwk-set+json' } }
}

function hostOf({ headers }: HttpCall): string {
  return headers['host'] ?? headers[':authority'] ?? ''
}

export function noPage(): ApiResponse {
  return textResponse(404, '404 page not found\n')
}

function openapi(answerOpenApi: OpenApi, path: string, call: HttpCall): ApiResponse {
  const answer = answerOpenApi({
    path,
    accept: call.headers['accept'] ?? '',
    ifNoneMatch: call.headers['if-none-match'],
    hash: call.query.get('hash') ?? undefined,
  })
  return answer ?? noPage()
}

function discoveryRoot(root: 'api' | 'apis', call: HttpCall): ApiResponse {
  const version = wantedAggregated(call.headers['accept'] ?? '')
  if (version !== undefined) {
    const response = jsonResponse(200, aggregatedDiscovery(root, version))
    return { ...response, headers: { 'content-type': aggregatedContentType(version), vary: 'Accept' } }
  }
  return jsonResponse(200, root === 'api' ? apiVersions(hostOf(call)) : apiGroupList())
}

function resources(group: string, version: string, path: string): ApiResponse {
  if (path.split('/').length > (group === '' ? 3 : 4)) throw unknownResource()
  return found(apiResourceList(group, version))
}

function found(document: object | undefined): ApiResponse {
  if (document === undefined) throw unknownResource()
  return jsonResponse(200, document)
}

/** What is looked at; each can be asked for alone (`/livez/ping`) or left out (`?exclude=ping`). */
const healthChecks = ['ping', 'log', 'etcd']

function health(root: string, only: string | undefined, problems: readonly string[], { query }: HttpCall): ApiResponse {
  if (only !== undefined) return healthChecks.includes(only) ? textResponse(200, 'ok') : noPage()
  const excluded = query.getAll('exclude')
  const lines = healthChecks.map((name) => `[+]${name} ${excluded.includes(name) ? 'excluded: ok' : 'ok'}\n`)
  const failed = problems.filter((name) => !excluded.includes(name))
  if (failed.length > 0) {
    const reasons = failed.map((name) => `[-]${name} failed: reason withheld\n`)
    return textResponse(500, `${[...lines, ...reasons].join('')}${root} check failed\n`)
  }
  return textResponse(200, query.has('verbose') ? `${lines.join('')}${root} check passed\n` : 'ok')
}
