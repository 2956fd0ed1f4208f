// What does a CSI service look like in TypeScript? A client is an object with one function per RPC; a driver is an
// object with one handler per RPC. Both types come from the service descriptor, and the two can be joined directly.
import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { CsiError, statusFrom } from './codes.ts'
import type { Controller, GroupController, Identity, Node } from './generated/csi_pb.ts'
import * as csi from './generated/csi_pb.ts'

export interface CallOptions {
  readonly signal: AbortSignal
  /** Told to the driver as its deadline; the caller's signal enforces it. */
  readonly timeoutMs?: number
}

type Methods<S extends DescService> = S['method']
type UnaryNames<S extends DescService> = {
  [K in keyof Methods<S>]: Methods<S>[K]['methodKind'] extends 'unary' ? K : never
}[keyof Methods<S>] &
  string
type Input<M extends DescMethod> = M['input']
type Output<M extends DescMethod> = M['output']

export type UnaryClient<S extends DescService> = {
  readonly [K in UnaryNames<S>]: (
    request: MessageInitShape<Input<Methods<S>[K]>>,
    options: CallOptions,
  ) => Promise<MessageShape<Output<Methods<S>[K]>>>
}

export type UnaryHandlers<S extends DescService> = {
  readonly [K in UnaryNames<S>]?: (
    request: MessageShape<Input<Methods<S>[K]>>,
    signal: AbortSignal,
  ) => Promise<MessageInitShape<Output<Methods<S>[K]>>>
}

/** Everything one driver socket can be asked. */
export interface DriverWire {
  readonly identity: UnaryClient<typeof Identity>
  readonly controller: UnaryClient<typeof Controller>
  readonly node: UnaryClient<typeof Node>
  readonly groups: UnaryClient<typeof GroupController>
}

/** A driver as its author writes it: a missing handler answers UNIMPLEMENTED. */
export interface DriverHandlers {
  readonly identity: UnaryHandlers<typeof Identity>
  readonly controller?: UnaryHandlers<typeof Controller>
  readonly node?: UnaryHandlers<typeof Node>
  readonly groups?: UnaryHandlers<typeof GroupController>
}

/** Stands between caller and driver: real sockets, function calls, and injected faults all look like this. */
export type Transport = (method: DescMethod, request: Uint8Array, options: CallOptions) => Promise<Uint8Array>

export function createWire(transport: Transport): DriverWire {
  return {
    identity: unaryClient(csi.Identity, transport),
    controller: unaryClient(csi.Controller, transport),
    node: unaryClient(csi.Node, transport),
    groups: unaryClient(csi.GroupController, transport),
  }
}

export function unaryClient<S extends DescService>(service: S, transport: Transport): UnaryClient<S> {
  const calls: Record<string, unknown> = {}
  for (const method of service.methods) {
    if (method.methodKind !== 'unary') continue
    calls[method.localName] = async (request: MessageInitShape<DescMessage>, options: CallOptions) => {
      const bytes = toBinary(method.input, create(method.input, request))
      return fromBinary(method.output, await transport(method, bytes, options))
    }
  }
  // The descriptor that typed S also produced every entry above; TypeScript cannot see through the loop.
  return calls as UnaryClient<S>
}

/** A transport without sockets: requests travel as bytes all the same, so driver and caller never share objects. */
export function directTransport(handlers: DriverHandlers): Transport {
  return async (method, bytes, options) => {
    if (options.signal.aborted) throw new CsiError('CANCELLED', 'the call was cancelled', { rpc: method.name })
    try {
      return await handleUnary(handlers, method, bytes, options.signal)
    } catch (error) {
      throw statusFrom(error, method.name)
    }
  }
}

/** Decodes, finds the handler, encodes. Used by the direct transport and by the gRPC server alike. */
export async function handleUnary(
  handlers: DriverHandlers,
  method: DescMethod,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const handler = handlerFor(handlers, method)
  if (!handler) throw new CsiError('UNIMPLEMENTED', `${method.name} is not implemented`, { rpc: method.name })
  const answer = await handler(fromBinary(method.input, bytes), signal)
  return toBinary(method.output, create(method.output, answer))
}

type AnyHandler = (request: MessageShape<DescMessage>, signal: AbortSignal) => Promise<MessageInitShape<DescMessage>>

function handlerFor(handlers: DriverHandlers, method: DescMethod): AnyHandler | undefined {
  const byService: Record<string, object | undefined> = {
    [csi.Identity.typeName]: handlers.identity,
    [csi.Controller.typeName]: handlers.controller,
    [csi.Node.typeName]: handlers.node,
    [csi.GroupController.typeName]: handlers.groups,
  }
  const service = byService[method.parent.typeName] as Record<string, AnyHandler | undefined> | undefined
  return service?.[method.localName]
}

/** The services of CSI, for servers that list what they serve. */
export const csiServices: readonly DescService[] = [csi.Identity, csi.Controller, csi.Node, csi.GroupController]
