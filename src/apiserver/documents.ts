// What does the server say about itself? Discovery, OpenAPI, version, health and metrics.
import { methodNotAllowed, unknownResource } from '../api/status-error.ts'
import {
  aggregatedContentType,
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  wantedAggregated,
} from './discovery.ts'
import type { HttpCall } from './http-verbs.ts'
import { answerOpenApi } from './openapi.ts'
import type { ApiResponse } from './respond.ts'
import { jsonResponse, textResponse } from './respond.ts'

export interface DocumentDeps {
  /** Prometheus text; absent when nobody measures. */
  readonly metrics: (() => Promise<string>) | undefined
  /** Why the server cannot serve yet, or no longer; empty when it can. */
  readonly notReady: () => readonly string[]
}

/** What we claim to be: the reference behaviour is Kubernetes 1.35 (decision A.2). */
export const serverVersion = {
  major: '1',
  minor: '35',
  emulationMajor: '1',
  emulationMinor: '35',
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
      return second === undefined ? found(apiGroup(first)) : resources(first, second, path)
    case 'version':
      return jsonResponse(200, serverVersion)
    case 'healthz':
    case 'livez':
      return health([], call)
    case 'readyz':
      return health(deps.notReady(), call)
    case 'metrics':
      if (deps.metrics === undefined) throw unknownResource()
      return textResponse(200, await deps.metrics(), 'text/plain; version=0.0.4; charset=utf-8')
    case 'openapi':
      return openapi(path, call)
    case '':
      return jsonResponse(200, {
        paths: [
          '/api',
          '/api/v1',
          '/apis',
          '/healthz',
          '/livez',
          '/metrics',
          '/openapi/v2',
          '/openapi/v3',
          '/readyz',
          '/version',
        ],
      })
    default:
      throw unknownResource()
  }
}

function openapi(path: string, call: HttpCall): ApiResponse {
  const answer = answerOpenApi({
    path,
    accept: call.headers['accept'] ?? '',
    ifNoneMatch: call.headers['if-none-match'],
    hash: call.query.get('hash') ?? undefined,
  })
  if (answer === undefined) throw unknownResource()
  return answer
}

function discoveryRoot(root: 'api' | 'apis', call: HttpCall): ApiResponse {
  const version = wantedAggregated(call.headers['accept'] ?? '')
  if (version !== undefined) {
    const response = jsonResponse(200, aggregatedDiscovery(root, version))
    return { ...response, headers: { 'content-type': aggregatedContentType(version), vary: 'Accept' } }
  }
  const host = call.headers['host'] ?? call.headers[':authority'] ?? ''
  return jsonResponse(200, root === 'api' ? apiVersions(host) : apiGroupList())
}

function resources(group: string, version: string, path: string): ApiResponse {
  if (path.split('/').length > (group === '' ? 3 : 4)) throw unknownResource()
  return found(apiResourceList(group, version))
}

function found(document: object | undefined): ApiResponse {
  if (document === undefined) throw unknownResource()
  return jsonResponse(200, document)
}

function health(problems: readonly string[], call: HttpCall): ApiResponse {
  if (problems.length > 0) return textResponse(500, problems.map((problem) => `[-]${problem}\n`).join(''))
  return textResponse(200, call.query.has('verbose') ? '[+]ping ok\ncheck passed\n' : 'ok')
}
