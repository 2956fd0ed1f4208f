// How do bytes reach a driver? gRPC over its unix socket: plaintext, authority `localhost` (CSI-13), one connection
// per registration (WART-7) and one for lists, cancelled when the caller's signal aborts.
import type { DescMethod } from '@bufbuild/protobuf'
import { Client, connectivityState, credentials } from '@grpc/grpc-js'
import type { ServiceError } from '@grpc/grpc-js'
import { DeadlineExceeded } from '../clock/clock.ts'
import { CsiError, statusName } from './codes.ts'
import type { CallOptions, Transport } from './service.ts'
import { createListeners } from '../loop/listeners.ts'

export interface Channel extends Disposable {
  readonly transport: Transport
  /** Called each time an established connection is lost: capabilities may have changed (SIDE-2). */
  onLost(listener: () => void): Disposable
  /** Called each time a connection is established: whoever waits for the driver need not wait any longer. */
  onReady(listener: () => void): Disposable
}

/** Only lists may be long: many calls run at once, and each may hold this much of what a driver sends. */
const maxMessageBytes = 4 * 1024 * 1024
const maxListBytes = 64 * 1024 * 1024

/** A socket cannot say that somebody listens again. gRPC adds a fifth at most, so we know within a second. */
const longestReconnectMs = 500

/** gRPC has one limit per client, so lists have a client (and connection) of their own, made with the first list. */
const isList = ({ name }: DescMethod) => name.includes('List')

export function openChannel(socketPath: string): Channel {
  const client = createClient(socketPath, maxMessageBytes)
  let listClient: Client | undefined
  const lost = createListeners<[]>()
  const ready = createListeners<[]>()
  let watching = false
  let closed = false
  // Waiting for a state change keeps a timer of its own, so it starts with the first call and not before.
  const watch = () => {
    if (watching || closed) return
    watching = true
    const channel = client.getChannel()
    const next = () => {
      // `true`: a channel whose connection was lost tries to connect by itself, not only when the next call is made.
      const state = channel.getConnectivityState(true)
      if (state === connectivityState.READY) ready.tell()
      channel.watchConnectivityState(state, Infinity, (error) => {
        if (closed || error) return
        if (state === connectivityState.READY) lost.tell()
        next()
      })
    }
    next()
  }
  return {
    transport: (method, request, options) => {
      watch()
      const asked = isList(method) ? (listClient ??= createClient(socketPath, maxListBytes)) : client
      return callUnary(asked, method, request, options)
    },
    onLost: (listener) => lost.listen(listener),
    onReady: (listener) => ready.listen(listener),
    [Symbol.dispose]() {
      closed = true
      client.close()
      listClient?.close()
    },
  }
}

function createClient(socketPath: string, maxBytes: number): Client {
  return new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    'grpc.default_authority': 'localhost',
    'grpc.max_receive_message_length': maxBytes,
    'grpc.max_send_message_length': maxListBytes,
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.min_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': longestReconnectMs,
    'grpc.client_idle_timeout_ms': 2 ** 31 - 1,
    'grpc.enable_retries': 0,
  })
}

function callUnary(client: Client, method: DescMethod, request: Uint8Array, options: CallOptions): Promise<Uint8Array> {
  const { signal, timeoutMs } = options
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(aborted(signal, method))
    const onAbort = () => call.cancel()
    const path = `/${method.parent.typeName}/${method.name}`
    const call = client.makeUnaryRequest<Uint8Array, Uint8Array>(
      path,
      (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes) => bytes,
      request,
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
      (error, answer) => {
        signal.removeEventListener('abort', onAbort)
        if (!error && answer) return resolve(answer)
        const isConnected = client.getChannel().getConnectivityState(false) === connectivityState.READY
        reject(signal.aborted ? aborted(signal, method) : failed(error, method, isConnected))
      },
    )
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

function aborted(signal: AbortSignal, method: DescMethod): CsiError {
  const late = signal.reason instanceof DeadlineExceeded
  const details = late ? 'context deadline exceeded' : 'context canceled'
  return new CsiError(late ? 'DEADLINE_EXCEEDED' : 'CANCELLED', details, { rpc: method.name, cause: signal.reason })
}

function failed(error: ServiceError | null, method: DescMethod, isConnected: boolean): CsiError {
  const rpc = method.name
  if (!error) return new CsiError('UNKNOWN', 'no answer', { rpc, effect: 'unknown' })
  const status = statusName(error.code)
  if (status !== 'UNAVAILABLE' || isConnected) return new CsiError(status, error.details, { rpc })
  return new CsiError(status, unreachableText(error.details), { rpc, code: 'DriverUnreachable' })
}

/** gRPC tells why it has no connection in its text only; the names of errno in it are the kernel's. */
function unreachableText(details: string): string {
  const [errno = ''] = /\bE[A-Z]{3,}\b/.exec(details) ?? []
  return reasons[errno] ?? details
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no socket, the driver is not running',
  ECONNREFUSED: 'a socket file is left, but no process listens on it',
  EACCES: 'permission to open the socket is denied',
  EPERM: 'permission to open the socket is denied',
  ENOTSOCK: 'the file is not a socket',
}
