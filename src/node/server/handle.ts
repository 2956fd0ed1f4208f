// What does a node answer when it is asked directly? The kubelet's paths: health, metrics, pods, usage, logs, and streams
// into its pods. No sockets here: the same function serves the API server in this process and the HTTPS listener.
import type { Pod } from '../../api/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { ByteStream } from '../../streams/byte-stream.ts'
import type { Door, DoorAnswer, DoorRequest } from '../../streams/door.ts'
import { parsePath } from '../../streams/door.ts'
import { negotiateUpgrade, textAnswer } from '../../streams/upgrade.ts'
import type { PodView } from '../pods.ts'
import type { ConverseRequest, ProcessSettings, Runtime, SpeakRequest } from '../runtime/port.ts'
import type { ContainerLogs } from './logs.ts'
import { logsAnswer } from './logs.ts'
import type { SummaryDeps } from './summary.ts'
import { summaryOf } from './summary.ts'

export interface NodeServerDeps extends SummaryDeps {
  readonly clock: Clock
  readonly runtime: Pick<Runtime, 'converse' | 'speak'>
  readonly logs: ContainerLogs
  readonly metrics: { text(): Promise<string> }
  /** As whom and with which variables the container's processes run. */
  settings(view: PodView, container: string, signal: AbortSignal): Promise<ProcessSettings>
  /** A connection to a port of this machine's own address: containers share its network. */
  dial(port: number, signal: AbortSignal): Promise<ByteStream>
}

/** Each has processes and sockets of its own. */
const mostStreams = 256

export function createNodeServer(deps: NodeServerDeps): Door {
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

function answerer(deps: NodeServerDeps): Door {
  return async (request) => {
    const { words, query } = parsePath(request.path)
    const [first = '', ...rest] = words
    const path = `/${words.join('/')}`
    if (first === 'exec' || first === 'attach') return await command(deps, first, rest, query, request)
    if (first === 'portForward') return await portForward(deps, rest, query, request)
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

function json(value: unknown): DoorAnswer {
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
  request: DoorRequest,
): Promise<DoorAnswer> {
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
  request: DoorRequest,
): Promise<DoorAnswer> {
  const view = target(deps, words, 3)
  const container = words.at(-1) ?? ''
  if (!view) return textAnswer(404, 'pod does not exist')
  const record = view.containers.get(container)?.record
  if (!record) return textAnswer(404, `container not found (${JSON.stringify(container)})`)
  if (record.exit) return textAnswer(500, `container not running (${container})`)
  const flag = (name: string) => query.get(name) === '1' || query.get(name) === 'true'
  const wish = { stdin: flag('input'), stdout: flag('output'), stderr: flag('error'), tty: flag('tty') }
  if (!wish.stdin && !wish.stdout && !wish.stderr)
    return textAnswer(400, 'you must specify at least 1 of stdin, stdout, stderr')
  const argv = query.getAll('command')
  if (verb === 'exec' && argv.length === 0) return textAnswer(400, 'no command was specified')
  // Loaded when first used: most nodes are looked into rarely.
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
      const session = await open(connection, wish, deps.clock).catch(() => undefined)
      if (!session) return
      await serveCommand(session, async (streams, signal) => {
        if (verb === 'attach') return await attach(deps, view, container, wish, streams, signal)
        const settings = await deps.settings(view, container, signal)
        const asked: ConverseRequest = { ...settings, pod: view.uid, name: container, argv, tty: wish.tty }
        return await deps.runtime.converse(asked, { ...streams, stdin: wholeInput(streams.stdin) }, signal)
      })
    },
  }
}

type Streams = Parameters<Runtime['converse']>[1]

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

/** What the container says from now on, until it ends; and what is said to it, if it was made to be spoken to. */
async function attach(
  deps: NodeServerDeps,
  { pod, uid }: PodView,
  container: string,
  wish: { readonly stdin: boolean; readonly tty: boolean },
  streams: Streams,
  signal: AbortSignal,
): Promise<number> {
  const { namespace = 'default', name } = pod.metadata
  const ended = () =>
    deps
      .pods()
      .find((each) => each.uid === uid)
      ?.containers.get(container)?.record?.exit !== undefined
  const what = { namespace, pod: name, uid, container, previous: false, tailLines: 0 }
  // Listening begins before anything is said, so that no answer is missed.
  const output = await deps.logs({ ...what, follow: { ended } }, signal)
  const found = containersOf(pod).find((each) => each.name === container)
  if (wish.stdin && found?.stdin !== true) {
    // Taken all the same: a connection that nobody reads does not tell that the client has gone.
    void drop(streams.stdin)
    await streams.stderr(Buffer.from(`container ${container} reads no input: what you type goes nowhere\n`))
  } else if (streams.stdin) {
    const speaking = { pod: uid, name: container, once: found?.stdinOnce === true }
    void speak(deps, speaking, streams.stdin, signal)
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

/** Whoever stops reading has what it needs: its end is what ends the session, not ours. */
async function speak(
  { clock, runtime }: Pick<NodeServerDeps, 'clock' | 'runtime'>,
  speaking: SpeakRequest,
  stdin: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  await runtime.speak(speaking, stdin, signal).catch(() => {})
  if (!speaking.once || !signal.aborted) return
  // The client went without a word; what is said only once has ended with it.
  using deadline = clock.deadline(lastWordMs, new AbortController().signal)
  await runtime.speak(speaking, nothing(), deadline.signal).catch(() => {})
}

const lastWordMs = 5_000

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
  request: DoorRequest,
): Promise<DoorAnswer> {
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
