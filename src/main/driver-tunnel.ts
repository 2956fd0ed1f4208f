// How does the server call a driver that listens on another machine? It listens on a socket of its own, and whatever comes there
// goes through the node's server to the driver's socket. The node needs no rights for that, and the driver no port.
import { mkdirSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import type { NodeClient } from '../apiserver/request/pass-through.ts'
import type { ByteStream } from '../streams/byte-stream.ts'
import { driverProtocol } from '../streams/node-server.ts'
import { streamOfSocket } from '../streams/socket.ts'
import type { Log } from '../telemetry/log.ts'

export interface TunnelOptions {
  /** Where to listen. */
  readonly socket: string
  readonly node: string
  readonly driver: string
}

export async function openDriverTunnel(
  { socket: path, node, driver }: TunnelOptions,
  deps: { readonly nodeClient: NodeClient; readonly log: Log },
): Promise<AsyncDisposable> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(path, { force: true })
  const stopping = new AbortController()
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    pass(deps.nodeClient, { node, driver }, socket, stopping.signal).catch((error: unknown) => {
      deps.log.debug('a driver on another machine cannot be reached', { node, driver, error })
      socket.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the driver is no longer called'))
      for (const socket of open) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** The driver's own socket, on its own machine. */
export function dialDriver(path: string, signal: AbortSignal): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: path.replace(/^unix:(\/\/)?/, ''), signal, allowHalfOpen: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(streamOfSocket(socket))
    })
  })
}

async function pass(
  nodeClient: NodeClient,
  { node, driver }: Pick<TunnelOptions, 'node' | 'driver'>,
  socket: Socket,
  signal: AbortSignal,
): Promise<void> {
  const headers = { connection: 'Upgrade', upgrade: driverProtocol }
  const path = `/csi/${encodeURIComponent(driver)}`
  const { status, upgrade } = await nodeClient(node, { method: 'GET', path, headers, signal })
  if (upgrade === undefined) throw new Error(`node ${node} answered ${status}`)
  await upgrade(streamOfSocket(socket))
}
