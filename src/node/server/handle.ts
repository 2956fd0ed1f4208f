// What does a node answer when it is asked directly? The kubelet's paths: health, metrics, pods, usage, logs, and streams
// into its pods. No sockets here: the same function serves the API server in this process and the HTTPS listener.
import type { Pod } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { ByteStream } from '../../streams/byte-stream.ts'
import { joinStreams } from '../../streams/byte-stream.ts'
import type { NodeServer, NodeResponse, NodeRequest } from '../../streams/node-server.ts'
import { driverProtocol, parsePath } from '../../streams/node-server.ts'
import { negotiateUpgrade, textAnswer } from '../../streams/upgrade.ts'
import type { PodView } from '../pods/pods.ts'
import type { InteractiveRequest, ProcessSettings, Runtime, WriteStdinRequest } from '../runtime/port.ts'
import type { ContainerLogs } from './logs.ts'
import { logsAnswer } from './logs.ts'
import type { SummaryDeps } from './summary.ts'
import { summaryOf } from './summary.ts'

export interface NodeServerDeps extends SummaryDeps {
  readonly clock: Clock
  readonly runtime: Pick<Runtime, 'runInteractive' | 'writeStdin'>
  readonly logs: ContainerLogs
  readonly metrics: { text(): Promise<string> }
  /** As whom and with which variables the container's processes run. */
  settings(view: PodView, container: string, signal: AbortSignal): Promise<ProcessSettings>
  /** A connection to a port of this machine's own address: containers share its network. */
  dial(port: number, signal: AbortSignal): Promise<ByteStream>
  /** A connection to the socket of a driver that is registered here; undefined for any other. */
  dialDriver(name: string, signal: AbortSignal): Promise<ByteStream> | undefined
}

/** Each has processes and sockets of its own. */
const mostStreams = 256

export function createNodeServer(deps: NodeServerDeps): NodeServer {
  const answer = answerer(deps)
  let streams = 0
  return async (request) => {
    const answered = await answer(request)
    const { upgrade } = answered
    if (!upgrade) return answered
    if (streams >= mostStreams) return textAnswer(429, `this node has ${mostStreams} streams open; try again later`)
    return {
      ...answered,
      async upgrade(connection) {
        streams++
        try {
          await upgrade(connection)
        } finally {
          streams--
        }
      },
    }
  }
}

function answerer(deps: NodeServerDeps): NodeServer {
  return async (request) => {
    const { words, query } = parsePath(request.path)
    const [first = '', ...rest] = words
    const path = `/${words.join('/')}`
    if (first === 'exec' || first === 'attach') return await command(deps, first, rest, query, request)
    if (first === 'portForward') return await portForward(deps, rest, query, request)
    if (first === 'csi') return await callDriver(deps, rest[0] ?? '', request)
    if (request.method !== 'GET') return textAnswer(405, 'only GET is answered here')
    if (first === 'containerLogs') return await logs(deps, rest, query, request)
    switch (path) {
      case '/healthz':
        return textAnswer(200, 'ok')
      case '/metrics':
        return textAnswer(200, await deps.metrics.text(), 'text/plain; version=0.0.4; charset=utf-8')
      case '/pods':
        return json({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items: deps.pods().map(({ pod }) => pod) })
      case '/stats/summary':
        return json(await summaryOf(deps, request.signal))
      default:
        return textAnswer(404, '404 page not found')
    }
  }
}

/** The server makes the controller calls of drivers on this node. */
async function callDriver(deps: NodeServerDeps, name: string, request: NodeRequest): Promise<NodeResponse> {
  if (request.headers['upgrade'] !== driverProtocol) return textAnswer(400, 'Upgrade request required')
  const dialled = deps.dialDriver(name, request.signal)
  if (!dialled) return textAnswer(404, `driver ${name} is not registered on this node`)
  const driver = await dialled.catch(() => undefined)
  if (!driver) return textAnswer(503, `driver ${name} does not answer on its socket`)
  const headers = { connection: 'Upgrade', upgrade: driverProtocol }
  return { status: 101, headers, body: new Uint8Array(), upgrade: (connection) => joinStreams(connection, driver) }
}

function json(value: unknown): NodeResponse {
  return textAnswer(200, JSON.stringify(value), 'application/json')
}

/** `<namespace>/<pod>[/<uid>]/<container>`, or without a container. */
function target(deps: NodeServerDeps, words: readonly string[], named: number): PodView | undefined {
  const [namespace, name] = words
  const uid = words.length === named + 1 ? words[2] : undefined
  return deps.pods().find(({ pod: { metadata } }) => {
    const same = metadata.namespace === namespace && metadata.name === name
    return same && (uid === undefined || metadata.uid === uid)
  })
}

async function logs(
  deps: NodeServerDeps,
  words: readonly string[],
  query: URLSearchParams,
  request: NodeRequest,
): Promise<NodeResponse> {
  const view = target(deps, words, 3)
  const [namespace, name] = words
  const container = words.at(-1) ?? ''
  if (!view) return textAnswer(404, `pod ${name}_${namespace} not found on this node`)
  return await logsAnswer(deps.logs, () => target(deps, words, 3), view, container, query, request.signal)
}

async function command(
  deps: NodeServerDeps,
  verb: 'exec' | 'attach',
  words: readonly string[],
  query: URLSearchParams,
  request: NodeRequest,
): Promise<NodeResponse> {
  const view = target(deps, words, 3)
  const container = words.at(-1) ?? ''
  if (!view) return textAnswer(404, 'pod does not exist')
  const record = view.containers.get(container)?.record
  if (!record) return textAnswer(404, `container not found (${JSON.stringify(container)})`)
  if (record.exit) return textAnswer(500, `container not running (${container})`)
  const flag = (name: string) => query.get(name) === '1' || query.get(name) === 'true'
  const options = { stdin: flag('input'), stdout: flag('output'), stderr: flag('error'), tty: flag('tty') }
  if (!options.stdin && !options.stdout && !options.stderr)
    return textAnswer(400, 'you must specify at least 1 of stdin, stdout, stderr')
  const argv = query.getAll('command')
  if (verb === 'exec' && argv.length === 0) return textAnswer(400, 'no command was specified')
  // Loaded when first used: most nodes rarely see exec or attach.
  const { commandProtocols, openSpdyCommand, openWebSocketCommand, serveCommand } =
    await import('../../streams/remote-command.ts')
  const upgrade = negotiateUpgrade(request, commandProtocols)
  if (upgrade.kind === 'refused') return textAnswer(upgrade.status, upgrade.message)
  return {
    status: 101,
    headers: upgrade.headers,
    body: new Uint8Array(),
    async upgrade(connection) {
      const open = upgrade.kind === 'spdy' ? openSpdyCommand : openWebSocketCommand
      // A client that goes before its streams are open, or opens too few, is no failure of ours: nothing has begun.
      const session = await open(connection, options, deps.clock).catch(() => undefined)
      if (!session) return
      await serveCommand(session, async (streams, signal) => {
        if (verb === 'attach') return await attach(deps, view, container, options, streams, signal)
        const settings = await deps.settings(view, container, signal)
        const asked: InteractiveRequest = { ...settings, pod: view.uid, name: container, argv, tty: options.tty }
        return await deps.runtime.runInteractive(asked, { ...streams, stdin: wholeInput(streams.stdin) }, signal)
      })
    },
  }
}

type Streams = Parameters<Runtime['runInteractive']>[1]

/** An input that broke off has no end: the command is killed, and must not take what came so far for the whole. */
function wholeInput(stdin: Streams['stdin']): Streams['stdin'] {
  async function* read(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* input
    } catch {
      await new Promise<never>(() => {})
    }
  }
  return stdin && read(stdin)
}

/** The container's output from now on, until it ends; and input for it, if it has stdin. */
async function attach(
  deps: NodeServerDeps,
  { pod, uid }: PodView,
  container: string,
  options: { readonly stdin: boolean; readonly tty: boolean },
  streams: Streams,
  signal: AbortSignal,
): Promise<number> {
  const { namespace = 'default', name } = pod.metadata
  const ended = () => {
    const view = deps.pods().find((each) => each.uid === uid)
    // A pod that is gone has taken its record along.
    return view === undefined || view.containers.get(container)?.record?.exit !== undefined
  }
  const what = { namespace, pod: name, uid, container, previous: false, tailLines: 0 }
  // The log is followed before any input is written, so that no output is missed.
  const output = await deps.logs({ ...what, follow: { ended } }, signal)
  const found = containersOf(pod).find((each) => each.name === container)
  if (options.stdin && found?.stdin !== true) {
    // The input is read all the same: on a connection that nobody reads we would not notice that the client has gone.
    void drop(streams.stdin)
    await streams.stderr(Buffer.from(`container ${container} reads no input: what you type goes nowhere\n`))
  } else if (streams.stdin) {
    const request = { pod: uid, name: container, once: found?.stdinOnce === true }
    void writeStdin(deps, request, streams.stdin, signal)
  }
  for await (const bytes of output ?? []) await streams.stdout(bytes)
  return 0
}

async function drop(input: AsyncIterable<Uint8Array> | undefined): Promise<void> {
  try {
    for await (const bytes of input ?? []) void bytes
  } catch {
    // the client has gone
  }
}

/** A container that stops reading stdin is no error: the session goes on until the container ends. */
async function writeStdin(
  { clock, runtime }: Pick<NodeServerDeps, 'clock' | 'runtime'>,
  request: WriteStdinRequest,
  stdin: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  await runtime.writeStdin(request, stdin, signal).catch(() => {})
  if (!request.once || !signal.aborted) return
  // The client was lost. With stdinOnce, the container's input ends with the first client, so its end is written now.
  using deadline = clock.deadline(endOfInputMs, new AbortController().signal)
  await runtime.writeStdin(request, nothing(), deadline.signal).catch(() => {})
}

const endOfInputMs = 5_000

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}

const containersOf = ({ spec }: Pod) => [
  ...(spec?.initContainers ?? []),
  ...(spec?.containers ?? []),
  ...(spec?.ephemeralContainers ?? []),
]

async function portForward(
  deps: NodeServerDeps,
  words: readonly string[],
  query: URLSearchParams,
  request: NodeRequest,
): Promise<NodeResponse> {
  const view = target(deps, words, 2)
  if (!view) return textAnswer(404, 'pod does not exist')
  const isUp = [...view.containers.values()].some(({ record }) => record && !record.exit)
  if (!isUp) return textAnswer(500, 'pod is not running')
  const { isPort, portForwardProtocols, serveChannelForward, serveSpdyForward } =
    await import('../../streams/port-forward.ts')
  const { channels, spdy, tunnelled } = portForwardProtocols
  const upgrade = negotiateUpgrade(request, { spdy, webSocket: [tunnelled, channels] })
  if (upgrade.kind === 'refused') return textAnswer(upgrade.status, upgrade.message)
  const ports = query
    .getAll('port')
    .flatMap((text) => text.split(','))
    .map(Number)
  const byChannels = upgrade.protocol === channels
  if (byChannels && (ports.length === 0 || ports.length > mostPorts || !ports.every(isPort)))
    return textAnswer(400, 'query parameter "port" is required, and takes numbers of ports')
  const { clock, dial } = deps
  return {
    status: 101,
    headers: upgrade.headers,
    body: new Uint8Array(),
    async upgrade(connection) {
      if (byChannels) return await serveChannelForward(connection, ports, dial, clock)
      if (upgrade.kind === 'spdy') return await serveSpdyForward(connection, dial, clock)
      const { openWebSocket, tunnel } = await import('../../streams/websocket.ts')
      await serveSpdyForward(tunnel(openWebSocket(connection, { clock })), dial, clock)
    },
  }
}

/** A channel's number is one byte, and each port has two. */
const mostPorts = 100
