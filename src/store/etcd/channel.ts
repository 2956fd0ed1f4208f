// How do bytes reach one member of etcd? gRPC over TCP or TLS, one connection, kept alive; every call has a deadline.
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import type { DescMethod } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, status } from '@grpc/grpc-js'
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js'
import { EtcdError, failureOf, sentence } from './errors.ts'

export interface TlsFiles {
  /** Authorities in PEM; without them those of the system. */
  readonly authority?: Buffer
  readonly certificate?: Buffer
  readonly key?: Buffer
}

interface CallOptions {
  readonly token: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Both directions of a stream; `read` gives each message, and ends or throws with the stream. */
export interface ByteStream {
  write(bytes: Uint8Array): void
  read(): AsyncIterable<Uint8Array>
  cancel(): void
}

export interface Channel extends Disposable {
  readonly url: string
  call(method: DescMethod, request: Uint8Array, options: CallOptions): Promise<Uint8Array>
  stream(method: DescMethod, token: string | undefined, signal: AbortSignal): ByteStream
}

/** Snapshots of many objects in one answer; we ask for pages, so this is far more than we get. */
const maxMessageBytes = 64 * 1024 * 1024
/** etcd refuses pings that come more often than every five seconds. */
const keepAliveMs = 10_000
const keepAliveTimeoutMs = 5_000

export function openChannel(url: string, tls: () => TlsFiles): Channel {
  const { hostname, port, protocol } = new URL(url)
  const client = new Client(`${hostname}:${port === '' ? '2379' : port}`, channelCredentials(protocol, hostname, tls), {
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_send_message_length': maxMessageBytes,
    'grpc.keepalive_time_ms': keepAliveMs,
    'grpc.keepalive_timeout_ms': keepAliveTimeoutMs,
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.min_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1_000,
    'grpc.enable_retries': 0,
    // Two clients of one process must not share a connection: each has its own certificates and its own fate.
    'grpc.use_local_subchannel_pool': 1,
    ...(isAddress(hostname) ? { 'grpc.ssl_target_name_override': nameOfAddress } : {}),
  })
  return {
    url,
    call: (method, request, options) => callUnary(client, url, method, request, options),
    stream: (method, token, signal) => openStream(client, url, method, token, signal),
    [Symbol.dispose]: () => client.close(),
  }
}

/** TLS names hosts, never addresses; etcd has one certificate, whatever name it is called by. */
const nameOfAddress = 'etcd'

function isAddress(hostname: string): boolean {
  return isIP(bare(hostname)) !== 0
}

/** An address of version 6 stands in brackets. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function channelCredentials(protocol: string, hostname: string, tls: () => TlsFiles) {
  if (protocol === 'http:') return credentials.createInsecure()
  const { authority, certificate, key } = tls()
  return credentials.createSsl(authority ?? null, key ?? null, certificate ?? null, {
    // The certificate must be for what the user has named, also where that is an address.
    checkServerIdentity: (_name, found) => checkServerIdentity(bare(hostname), found),
  })
}

function callUnary(
  client: Client,
  url: string,
  method: DescMethod,
  request: Uint8Array,
  { token, timeoutMs, signal }: CallOptions,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => call.cancel()
    const call = client.makeUnaryRequest<Uint8Array, Uint8Array>(
      pathOf(method),
      toBuffer,
      (bytes) => bytes,
      request,
      metadata(token),
      { deadline: Date.now() + timeoutMs },
      (error, answer) => {
        signal.removeEventListener('abort', onAbort)
        if (!error && answer) return resolve(answer)
        reject(signal.aborted ? signal.reason : failed(error, url))
      },
    )
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

function openStream(
  client: Client,
  url: string,
  method: DescMethod,
  token: string | undefined,
  signal: AbortSignal,
): ByteStream {
  const call = client.makeBidiStreamRequest<Uint8Array, Uint8Array>(
    pathOf(method),
    toBuffer,
    (bytes) => bytes,
    metadata(token),
    {},
  )
  const cancel = () => call.cancel()
  if (signal.aborted) cancel()
  else signal.addEventListener('abort', cancel, { once: true })
  call.once('close', () => signal.removeEventListener('abort', cancel))
  // An error that comes while nobody reads is told by the next read.
  call.on('error', () => {})
  return { write: (bytes) => void call.write(bytes), read: () => messages(call, url, signal), cancel }
}

async function* messages(
  call: ClientDuplexStream<Uint8Array, Uint8Array>,
  url: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const message of call) yield message as Uint8Array // deserialised to bytes above
  } catch (error) {
    throw signal.aborted ? signal.reason : failed(error as ServiceError, url)
  }
}

/** `hasleader`: a member that has lost its leader ends the call instead of leaving us waiting. */
function metadata(token: string | undefined): Metadata {
  const headers = new Metadata({ waitForReady: false })
  headers.set('hasleader', 'true')
  if (token !== undefined) headers.set('token', token)
  return headers
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function failed(error: ServiceError | null, url: string): EtcdError {
  const answer = { code: error?.code ?? status.UNKNOWN, details: error?.details ?? error?.message ?? 'no answer' }
  const failure = failureOf(answer)
  return new EtcdError(failure, sentence(failure, url, answer.details), { cause: error })
}
