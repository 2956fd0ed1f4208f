// How do we speak with a cluster of etcd? Calls go to one member until it fails, then to the next; a call is repeated
// until its time is over, so every call must mean the same when it arrives twice. With a user, each carries a token.
import type { DescMethod, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Clock } from '../../clock/clock.ts'
import { DeadlineExceeded } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { ByteStream, Channel } from './channel.ts'
import { EtcdError, isEtcdFailure, mayTryElsewhere } from './errors.ts'
import type { ResponseHeader, WatchCreateRequestSchema, WatchResponse } from './generated/etcd_pb.ts'
import {
  Auth,
  Lease,
  LeaseKeepAliveRequestSchema,
  LeaseKeepAliveResponseSchema,
  Watch,
  WatchRequestSchema,
  WatchResponseSchema,
} from './generated/etcd_pb.ts'

export interface EtcdClientDeps {
  /** `http://host:2379` or `https://…`, at least one. */
  readonly servers: readonly string[]
  readonly user?: { readonly name: string; readonly password: string }
  readonly open: (url: string) => Channel
  readonly clock: Clock
}

export interface Answered<T> {
  readonly answer: T
  /** The request was sent more than once: an earlier one may have taken effect already. */
  readonly repeated: boolean
}

export interface EtcdClient extends Disposable {
  /** The servers, as sentences name them. */
  readonly where: string
  call<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M['input']>,
    signal: AbortSignal,
  ): Promise<Answered<MessageShape<M['output']>>>
  /** Ends or throws when the stream does; the caller opens the next one. */
  watch(request: MessageInitShape<typeof WatchCreateRequestSchema>, signal: AbortSignal): AsyncIterable<WatchResponse>
  /** Renews the lease once; answers the seconds it has from now on, 0 when it is gone. */
  keepAlive(lease: bigint, signal: AbortSignal): Promise<number>
}

/** One member gets this long to answer, */
const attemptMs = 5_000
/** and all of them together this long. */
const callMs = 12_000
const pauseMs = 100

interface State {
  readonly deps: EtcdClientDeps
  readonly where: string
  readonly channels: Map<string, Channel>
  /** Which server is asked. */
  at: number
  token: Promise<string> | undefined
  cluster: bigint | undefined
  /** Aborted when the client is closed: what calls share does not end with one of them. */
  readonly life: AbortController
}

export function createEtcdClient(deps: EtcdClientDeps): EtcdClient {
  const state: State = {
    deps,
    where: deps.servers.join(', '),
    channels: new Map(),
    at: 0,
    token: undefined,
    cluster: undefined,
    life: new AbortController(),
  }
  return {
    where: state.where,
    call: (method, request, signal) => callSomewhere(state, method, request, signal),
    watch: (request, signal) => watchOnce(state, request, signal),
    keepAlive: (lease, signal) => keepAliveOnce(state, lease, signal),
    [Symbol.dispose]() {
      state.life.abort(new EtcdError('unreachable', 'the connection to etcd is closed'))
      for (const channel of state.channels.values()) channel[Symbol.dispose]()
      state.channels.clear()
    },
  }
}

async function callSomewhere<M extends DescMethodUnary>(
  state: State,
  method: M,
  request: MessageInitShape<M['input']>,
  signal: AbortSignal,
): Promise<Answered<MessageShape<M['output']>>> {
  const bytes = toBinary(method.input, create(method.input, request))
  using deadline = state.deps.clock.deadline(callMs, signal)
  let renewed = false
  let last: unknown
  for (let attempt = 0; ; attempt++) {
    const channel = currentChannel(state)
    try {
      const token = await tokenFor(state)
      const answer = await channel.call(method, bytes, { token, timeoutMs: attemptMs, signal: deadline.signal })
      const message = fromBinary<M['output']>(method.output, answer)
      // Every answer of etcd carries a header.
      checkCluster(state, channel.url, (message as { header?: ResponseHeader }).header)
      return { answer: message, repeated: attempt > 0 }
    } catch (error) {
      if (isEtcdFailure(error, 'tokenEnded') && !renewed && state.deps.user !== undefined) {
        renewed = true
        state.token = undefined
        continue
      }
      // That the time is over tells less than what happened before.
      last = error instanceof EtcdError ? error : (last ?? error)
      await nextTry(state, channel, last, attempt, deadline.signal)
    }
  }
}

/** Throws when another try would not help or no time is left. */
async function nextTry(
  state: State,
  channel: Channel,
  error: unknown,
  attempt: number,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) throw signal.reason instanceof DeadlineExceeded ? timedOut(state, error) : signal.reason
  if (!(error instanceof EtcdError)) throw error
  const elsewhere = error.failure === 'certificate' && attempt + 1 < state.deps.servers.length
  if (!mayTryElsewhere(error.failure) && !elsewhere) throw error
  leave(state, channel)
  try {
    await state.deps.clock.sleep(Math.min(pauseMs * attempt, 1_000), signal)
  } catch {
    throw error
  }
}

function timedOut(state: State, error: unknown): EtcdError {
  if (error instanceof EtcdError) return error
  const text = `etcd at ${state.where} did not answer in ${callMs / 1_000} s: ${errorText(error)}`
  return new EtcdError('unreachable', text, { cause: error })
}

function currentChannel(state: State): Channel {
  const url = state.deps.servers[state.at] ?? ''
  const open = state.channels.get(url)
  if (open !== undefined) return open
  const channel = state.deps.open(url)
  state.channels.set(url, channel)
  return channel
}

/** The next server from now on. The connection is made anew when its turn comes: certificates may have been renewed. */
function leave(state: State, channel: Channel): void {
  if (state.channels.get(channel.url) !== channel) return
  state.channels.delete(channel.url)
  channel[Symbol.dispose]()
  if (state.deps.servers[state.at] === channel.url) state.at = (state.at + 1) % state.deps.servers.length
}

async function tokenFor(state: State): Promise<string | undefined> {
  if (state.deps.user === undefined) return undefined
  // Shared by all calls; a failure is told to those who wait, and the next call asks again.
  state.token ??= authenticate(state).catch((error: unknown) => {
    state.token = undefined
    throw error
  })
  return state.token
}

async function authenticate(state: State): Promise<string> {
  const method = Auth.method.authenticate
  const request = toBinary(method.input, create(method.input, state.deps.user ?? {}))
  const { signal } = state.life
  const answer = await currentChannel(state).call(method, request, { token: undefined, timeoutMs: attemptMs, signal })
  return fromBinary(method.output, answer).token
}

/** Two clusters among the servers would be two truths. */
function checkCluster(state: State, url: string, header: ResponseHeader | undefined): void {
  if (header === undefined || header.clusterId === 0n) return
  state.cluster ??= header.clusterId
  if (state.cluster === header.clusterId) return
  const [found, first] = [header.clusterId.toString(16), state.cluster.toString(16)]
  throw new EtcdError(
    'notOurEtcd',
    `${url} belongs to etcd cluster ${found}, but the objects are in cluster ${first}: correct --etcd-servers (${state.where})`,
  )
}

async function* watchOnce(
  state: State,
  request: MessageInitShape<typeof WatchCreateRequestSchema>,
  signal: AbortSignal,
): AsyncGenerator<WatchResponse, void, undefined> {
  const first = create(WatchRequestSchema, { requestUnion: { case: 'createRequest', value: request } })
  for await (const bytes of streamOf(state, Watch.method.watch, toBinary(WatchRequestSchema, first), signal)) {
    const answer = fromBinary(WatchResponseSchema, bytes)
    checkCluster(state, state.where, answer.header)
    yield answer
  }
}

async function keepAliveOnce(state: State, lease: bigint, signal: AbortSignal): Promise<number> {
  const request = toBinary(LeaseKeepAliveRequestSchema, create(LeaseKeepAliveRequestSchema, { id: lease }))
  using deadline = state.deps.clock.deadline(attemptMs, signal)
  for await (const bytes of streamOf(state, Lease.method.leaseKeepAlive, request, deadline.signal)) {
    return Number(fromBinary(LeaseKeepAliveResponseSchema, bytes).ttl)
  }
  throw new EtcdError('unreachable', `etcd at ${state.where} ended the renewal of our lease without an answer`)
}

/** Writes one request and reads until the reader leaves, the server ends the stream, or it breaks. */
async function* streamOf(
  state: State,
  method: DescMethod,
  request: Uint8Array,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const token = await tokenFor(state)
  const channel = currentChannel(state)
  const stream: ByteStream = channel.stream(method, token, signal)
  try {
    stream.write(request)
    yield* stream.read()
  } catch (error) {
    if (isEtcdFailure(error, 'tokenEnded')) state.token = undefined
    if (error instanceof EtcdError && mayTryElsewhere(error.failure)) leave(state, channel)
    throw error
  } finally {
    stream.cancel()
  }
}
