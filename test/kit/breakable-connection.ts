// A line to a port of this machine that a test can tear: the other end then hears a reset, not a goodbye.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export interface BreakableLine extends AsyncDisposable {
  readonly port: number
  /** Resets every connection to the port behind. */
  break(): void
  /** Resets every connection and lets no new one through, until `mend`. */
  cut(): void
  /** From now on the connections that are there bring nothing, and nobody is told; new ones work. */
  silence(): void
  mend(): void
}

export async function breakableLine(port: number): Promise<BreakableLine> {
  const behind = new Set<Socket>()
  let isCut = false
  const server = createServer((socket) => {
    if (isCut) return socket.on('error', () => {}).resetAndDestroy()
    const onward = connect(port, '127.0.0.1')
    behind.add(onward)
    for (const each of [socket, onward]) each.on('error', () => {})
    socket.pipe(onward).pipe(socket)
    onward.on('close', () => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const tear = () => behind.forEach((socket) => socket.resetAndDestroy())
  return {
    port: (server.address() as AddressInfo).port,
    break: tear,
    cut() {
      isCut = true
      tear()
    },
    silence() {
      for (const socket of behind) socket.unpipe().pause()
    },
    mend() {
      isCut = false
    },
    async [Symbol.asyncDispose]() {
      tear()
      server.close()
    },
  }
}
