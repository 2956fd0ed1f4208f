// What does the server ask of nodes on behalf of its clients? Logs, streams into pods, and a node's own documents. The request is
// checked and named here, in Kubernetes' words; the answer is the node's.
import { kinds } from '../../api/kinds.ts'
import type { ObjectRef } from '../../api/meta.ts'
import {
  badRequest,
  internalError,
  methodNotAllowed,
  notFound,
  StatusError,
  tooManyRequests,
} from '../../api/status-error.ts'
import type { Node, Pod } from '../../api/generated/types.ts'
import { readAll } from '../../streams/byte-stream.ts'
import type { NodeResponse, NodeRequest } from '../../streams/node-server.ts'
import { wantsUpgrade } from '../../streams/upgrade.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject, readStored } from '../objects/context.ts'
import type { HttpCall } from './http-verbs.ts'
import { containerOf, logRequest, logWarnings } from './log-request.ts'
import type { ApiResponse } from '../http/respond.ts'
import { textResponse, uncached } from '../http/respond.ts'

/** How a node's own server is asked; fails when it cannot be reached. */
export type NodeClient = (node: string, request: NodeRequest) => Promise<NodeResponse>

export interface PassThroughDeps {
  readonly context: ServerContext
  /** Absent when this server knows no nodes at all. */
  readonly nodeClient: NodeClient | undefined
}

const longestRefusal = 16_384

export async function podLogs(deps: PassThroughDeps, ref: ObjectRef, call: HttpCall): Promise<ApiResponse> {
  const pod = await podOf(deps.context, ref)
  const { container, ...rest } = logRequest(pod, call.query)
  for (const text of logWarnings(call.query)) call.warn(text)
  const node = pod.spec.nodeName
  if (!node) return textResponse(204, '')
  if (!deps.nodeClient) return textResponse(200, '')
  const asked = Object.entries(rest).flatMap(([name, value]) => (value ? [[name, String(value)]] : []))
  const query = new URLSearchParams(Object.fromEntries(asked) as Record<string, string>)
  // 0 lines and no limit are not the same.
  if (rest.tailLines !== undefined) query.set('tailLines', String(rest.tailLines))
  const path = `/containerLogs/${pathOf(pod)}/${encodeURIComponent(container)}?${query}`
  const answer = await ask(deps, node, 'GET', path, call)
  if (answer.status !== 200) throw await refusal(answer)
  const headers = { 'content-type': 'text/plain', 'cache-control': uncached }
  const what = `the log of pod ${ref.namespace}/${ref.name} from node ${node}`
  return { status: 200, headers, body: bytesOf(answer.body, what, call.signal) }
}

export async function podStream(
  deps: PassThroughDeps,
  ref: ObjectRef,
  subresource: string,
  call: HttpCall,
): Promise<ApiResponse> {
  if (call.method !== 'GET' && call.method !== 'POST') throw methodNotAllowed()
  const pod = await podOf(deps.context, ref)
  const path = streamPath(pod, subresource, call.query)
  const node = pod.spec.nodeName
  if (!node) throw badRequest(`pod ${ref.name} does not have a host assigned`)
  if (!wantsUpgrade(call.headers)) throw badRequest('Upgrade request required')
  const answer = await ask(deps, node, call.method, path, call)
  if (answer.status !== 101 || !answer.upgrade) throw await refusal(answer)
  return { status: 101, headers: answer.headers, body: Buffer.alloc(0), upgrade: answer.upgrade }
}

function streamPath(pod: Pod, subresource: string, query: URLSearchParams): string {
  if (subresource === 'portforward') {
    const ports = query.getAll('ports').map((port) => ['port', port])
    return `/portForward/${pathOf(pod)}?${new URLSearchParams(ports)}`
  }
  const container = containerOf(pod, query.get('container'))
  const names = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' }
  const asked = new URLSearchParams()
  for (const [ours, theirs] of Object.entries(names)) if (isTrue(query.get(ours))) asked.set(theirs, '1')
  if (!asked.has('input') && !asked.has('output') && !asked.has('error'))
    throw badRequest('you must specify at least one of stdin, stdout, stderr')
  const command = subresource === 'exec' ? query.getAll('command') : []
  if (subresource === 'exec' && command.length === 0) throw badRequest('you must specify at least one command')
  for (const word of command) asked.append('command', word)
  return `/${subresource}/${pathOf(pod)}/${encodeURIComponent(container)}?${asked}`
}

/** Documents of a node that may be read through us; its streams have paths of their own here, with rights of their own. */
const documents: ReadonlySet<string> = new Set(['/healthz', '/metrics', '/pods', '/stats/summary'])

/** The port that a kubelet listens on: programs name it without looking. */
const kubeletPort = 10250

export async function nodeProxy(
  deps: PassThroughDeps,
  named: string,
  path: string,
  call: HttpCall,
): Promise<ApiResponse> {
  if (call.method !== 'GET') throw methodNotAllowed()
  const { name, port } = nodeOf(named)
  const node = (await findObject(deps.context, kinds.Node, { name })) as Node | undefined
  if (node === undefined) throw notFound(kinds.Node, name)
  const own = node.status?.daemonEndpoints?.kubeletEndpoint?.Port
  if (port !== undefined && port !== kubeletPort && port !== own) {
    throw new StatusError(
      503,
      'ServiceUnavailable',
      `node ${name} is not asked on port ${port}, only on that of its agent`,
    )
  }
  if (!documents.has(path)) throw new StatusError(404, 'NotFound', 'the server could not find the requested resource')
  const answer = await ask(deps, name, 'GET', path, call)
  const headers = { 'content-type': answer.headers['content-type'] ?? 'text/plain', 'cache-control': uncached }
  return { status: answer.status, headers, body: bytesOf(answer.body, `${path} of node ${name}`, call.signal) }
}

/** `name`, `name:port` or `scheme:name:port`; the agent speaks only https. */
function nodeOf(text: string): { readonly name: string; readonly port: number | undefined } {
  const parts = text.split(':')
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  if (parts.length > 3 || !['', 'https'].includes(scheme) || !/^\d{0,5}$/.test(port)) {
    throw badRequest(`invalid node request ${JSON.stringify(text)}`)
  }
  return { name, port: port === '' ? undefined : Number(port) }
}

async function podOf(context: ServerContext, ref: ObjectRef): Promise<Pod> {
  const { entry } = await readStored(context, kinds.Pod, ref)
  return context.objects.decode(kinds.Pod, entry) as Pod // its kind
}

const pathOf = ({ metadata: { namespace = 'default', name, uid = '' } }: Pod) =>
  [namespace, name, uid].map(encodeURIComponent).join('/')

/** As Kubernetes reads these parameters. */
const isTrue = (text: string | null) => text === 'true' || text === '1'

async function ask(
  deps: PassThroughDeps,
  node: string,
  method: string,
  path: string,
  { headers, signal }: HttpCall,
): Promise<NodeResponse> {
  try {
    if (!deps.nodeClient) throw new Error(`node ${node} is not known to this server`)
    return await deps.nodeClient(node, { method, path, headers, signal })
  } catch (error) {
    if (error instanceof StatusError) throw error
    const why = errorText(error)
    throw new StatusError(500, 'InternalError', `error dialing backend: ${why}`, undefined, { cause: error })
  }
}

/** The node's own words, as an error of ours. */
async function refusal({ status, body }: NodeResponse): Promise<StatusError> {
  const text = Buffer.from(body instanceof Uint8Array ? body : await readAll(body, longestRefusal))
    .toString()
    .trim()
  if (status === 400) return badRequest(text)
  if (status === 429) return tooManyRequests(text, 1)
  if (status === 404) return new StatusError(404, 'NotFound', text)
  return internalError(text)
}

function bytesOf(body: NodeResponse['body'], what: string, signal: AbortSignal): ApiResponse['body'] {
  return body instanceof Uint8Array ? Buffer.from(body) : buffersOf(body, what, signal)
}

async function* buffersOf(
  body: AsyncIterable<Uint8Array>,
  what: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const piece of body) yield Buffer.from(piece.buffer, piece.byteOffset, piece.length)
  } catch (error) {
    // Whoever has had enough of a log is no failure.
    if (!signal.aborted) throw new Error(`${what} broke off`, { cause: error })
  }
}
