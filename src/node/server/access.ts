// Who may ask a node directly? Certificates of the cluster's authority and bearer tokens tell who it is; whether that user may,
// the API server decides, as it does for a kubelet. Nobody is let in without a name, wherever the call comes from.
import { hash } from 'node:crypto'
import { isWithin } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { NodeRequest } from '../../streams/node-server.ts'

export interface Caller {
  readonly name: string
  readonly groups: readonly string[]
}

export interface Credentials {
  /** The user of a client certificate that the cluster's authority has signed. */
  readonly certificate: Caller | undefined
  readonly token: string | undefined
}

export interface AccessDeps {
  readonly clock: Clock
  readonly node: string
  /** Posts a review to the API server and answers what it says. */
  review(path: string, body: object): Promise<unknown>
}

export type Verdict =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'allowed' | 'forbidden'; /** Who it is. */ readonly user: string }

export type Access = (credentials: Credentials, request: Pick<NodeRequest, 'method' | 'path'>) => Promise<Verdict>

const masters = 'system:masters'
/** Prometheus asks every few seconds; what was decided is good for this long. */
const rememberMs = 30_000
const mostRemembered = 256

export function createAccess(deps: AccessDeps): Access {
  const remembered = new Map<string, { readonly verdict: Verdict; readonly until: number }>()
  const decide = async (credentials: Credentials, request: Pick<NodeRequest, 'method' | 'path'>): Promise<Verdict> => {
    const { token, certificate } = credentials
    // A bearer token first: whoever brings one wants to be that user.
    const caller = token === undefined ? certificate : await callerOfToken(deps, token)
    if (!caller) return { kind: 'unknown' }
    const { name: user, groups } = caller
    const mayEverything = groups.includes(masters)
    return { kind: mayEverything || (await isAllowed(deps, caller, request)) ? 'allowed' : 'forbidden', user }
  }
  return async (credentials, request) => {
    const { verb, subresource } = actionOf(request)
    const who = [
      credentials.token ?? '',
      credentials.certificate?.name ?? '',
      credentials.certificate?.groups.join() ?? '',
    ]
    const key = hash('sha256', JSON.stringify([...who, verb, subresource]), 'hex')
    const known = remembered.get(key)
    if (known && isWithin(deps.clock.now(), known.until - rememberMs, known.until)) return known.verdict
    const verdict = await decide(credentials, request)
    remembered.delete(key)
    if (remembered.size >= mostRemembered) remembered.delete(remembered.keys().next().value ?? '')
    remembered.set(key, { verdict, until: deps.clock.now() + rememberMs })
    return verdict
  }
}

/** Streams into pods change something, whatever the method says: a WebSocket begins with GET. */
function actionOf({ method, path }: Pick<NodeRequest, 'method' | 'path'>): {
  readonly verb: 'get' | 'create'
  readonly subresource: string
} {
  const [, first = ''] = path.split(/[/?]/)
  if (first === 'metrics' || first === 'stats') return { verb: method === 'GET' ? 'get' : 'create', subresource: first }
  const reads = method === 'GET' && ['healthz', 'pods', 'containerLogs'].includes(first)
  return { verb: reads ? 'get' : 'create', subresource: 'proxy' }
}

async function callerOfToken(deps: AccessDeps, token: string): Promise<Caller | undefined> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
  const { status } = (await deps.review('/apis/authentication.k8s.io/v1/tokenreviews', body)) as {
    status?: { authenticated?: boolean; user?: { username?: string; groups?: readonly string[] } }
  }
  const name = status?.user?.username
  return status?.authenticated === true && name ? { name, groups: status.user?.groups ?? [] } : undefined
}

async function isAllowed(
  deps: AccessDeps,
  { name, groups }: Caller,
  request: Pick<NodeRequest, 'method' | 'path'>,
): Promise<boolean> {
  const { verb, subresource } = actionOf(request)
  const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: deps.node }
  const spec = { user: name, groups, resourceAttributes }
  const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec }
  const answer = await deps.review('/apis/authorization.k8s.io/v1/subjectaccessreviews', body)
  return (answer as { status?: { allowed?: boolean } }).status?.allowed === true
}
