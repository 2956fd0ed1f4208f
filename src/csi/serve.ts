// How does a driver written here answer on a socket? Its handlers become a gRPC server; a thrown CsiError becomes
// its status, anything else INTERNAL. The caller removes a stale socket file beforehand.
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js'
import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js'
import { statusCodes, statusFrom } from './codes.ts'

export interface ServedSocket extends AsyncDisposable {
  /** Stops at once, as a killed process would. */
  kill(): void
}

export type UnaryAnswerer = (method: DescMethod, request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>

export async function serveOnSocket(
  socketPath: string,
  services: readonly DescService[],
  answer: UnaryAnswerer,
): Promise<ServedSocket> {
  const server = new Server({ 'grpc.max_receive_message_length': 64 * 1024 * 1024 })
  for (const service of services) addService(server, service, answer)
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const connections = new Set<Socket>()
  const listener = createServer((socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    injector.injectConnection(socket)
  })
  listener.listen(socketPath)
  await once(listener, 'listening')
  // gRPC would say that it cancels the calls; a process that dies says nothing.
  const kill = () => {
    listener.close()
    for (const socket of connections) socket.destroy()
    server.forceShutdown()
  }
  return {
    kill,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.tryShutdown(() => resolve())
        kill()
      }),
  }
}

function addService(server: Server, service: DescService, answer: UnaryAnswerer): void {
  const definition: Record<string, object> = {}
  const implementation: UntypedServiceImplementation = {}
  for (const method of service.methods) {
    if (method.methodKind !== 'unary') continue
    definition[method.localName] = {
      path: `/${service.typeName}/${method.name}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: toBuffer,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: toBuffer,
      responseDeserialize: (bytes: Buffer) => bytes,
    }
    implementation[method.localName] = (call: ServerUnaryCall<Buffer, Uint8Array>, done: sendUnaryData<Uint8Array>) => {
      const cancelled = new AbortController()
      call.on('cancelled', () => cancelled.abort(new Error('the caller went away')))
      void reply(answer(method, call.request, cancelled.signal), method.name, done)
    }
  }
  server.addService(definition as unknown as Parameters<Server['addService']>[0], implementation)
}

async function reply(answer: Promise<Uint8Array>, rpc: string, done: sendUnaryData<Uint8Array>): Promise<void> {
  try {
    done(null, await answer)
  } catch (error) {
    const { status, details } = statusFrom(error, rpc)
    done({ code: statusCodes[status], details, metadata: new Metadata() })
  }
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
