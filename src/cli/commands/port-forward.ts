// `hawser port-forward`: connections to a port here go to a port of a pod.
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { once } from 'node:events'
import { buildCommand } from '@stricli/core'
import { objectPath } from '../../client/rest.ts'
import { createSystemClock } from '../../clock/system-clock.ts'
import { UsageError } from '../../installation/config.ts'
import type { ByteStream } from '../../streams/byte-stream.ts'
import { joinStreams, readAll } from '../../streams/byte-stream.ts'
import { isPort, portForwardProtocols } from '../../streams/port-forward.ts'
import { streamOfSocket } from '../../streams/socket.ts'
import type { SpdySession } from '../../streams/spdy-session.ts'
import { openSpdySession } from '../../streams/spdy-session.ts'
import { tunnel } from '../../streams/websocket.ts'
import { namesOf } from '../completions.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Failed } from '../errors.ts'
import { openPodSocket } from '../remote.ts'
import { podFrom } from '../resources.ts'

interface Ports {
  readonly here: number
  readonly there: number
}

const longestComplaint = 10_000

export const portForward = buildCommand<ConnectFlags, string[], Context>({
  docs: {
    brief: 'Forward local ports to a pod',
    fullDescription: [
      'Listens on 127.0.0.1 and forwards each connection to the port of the pod, until it is stopped. Needs the role admin.',
      '',
      'Examples:',
      '  hawser port-forward first 8080',
      '  hawser port-forward pod/first 9000:80 9443:443',
      '  hawser port-forward first :80          # any free port here',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags },
    aliases: { n: 'namespace' },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        placeholder: 'POD [HERE:]THERE',
        proposeCompletions: namesOf('Pod'),
        brief: 'Pod and ports',
      },
      minimum: 2,
    },
  },
  async func(flags, pod = '', ...words) {
    const ports = words.map(portsFrom)
    using connection = connect(this, flags)
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort()).once('SIGTERM', () => stop.abort())
    const name = podFrom(pod, 'ports')
    const query = new URLSearchParams(ports.map(({ there }) => ['ports', String(there)]))
    const path = `${objectPath('Pod', { name, namespace: connection.namespace }, 'portforward')}?${query}`
    using open = new DisposableStack()
    const socket = await openPodSocket(connection, path, [portForwardProtocols.tunnelled], stop.signal)
    // Connections that are still open end with us.
    open.defer(() => socket.destroy())
    const session = openSpdySession(tunnel(socket), {
      role: 'client',
      clock: createSystemClock(),
      maxStreams: 0,
      onStream: (stream) => stream.reset(),
    })
    for (const each of ports) {
      const server = await offer(this, session, each)
      open.defer(() => void server.close())
    }
    await Promise.race([session.ended, stop.signal.aborted || once(stop.signal, 'abort')])
    if (!stop.signal.aborted)
      throw new Failed(`the connection to pod ${name} was lost: its ports are no longer forwarded`)
  },
})

async function offer(context: Context, session: SpdySession, { here, there }: Ports): Promise<Server> {
  let next = 0
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    void forward(context, session, there, `${there}-${next++}`, streamOfSocket(socket))
  })
  server.listen(here, '127.0.0.1')
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new Failed(`port ${here} on this machine cannot be used (${error.code}); use :${there} for any free port`)
  })
  const { port } = server.address() as AddressInfo // listening on TCP
  context.print(`127.0.0.1:${port} -> ${there}`)
  return server
}

async function forward(
  context: Context,
  session: SpdySession,
  there: number,
  requestid: string,
  local: ByteStream,
): Promise<void> {
  try {
    const named = { port: String(there), requestid }
    const error = await session.open({ streamtype: 'error', ...named })
    await error.end()
    const data = await session.open({ streamtype: 'data', ...named })
    const complaint = readAll(error.input, longestComplaint).catch(() => Buffer.alloc(0))
    await joinStreams(local, { ...data, destroy: data.reset })
    const text = (await complaint).toString()
    if (text !== '') context.note(text)
  } catch {
    local.destroy() // the session is over, and says so itself
  }
}

/** `8080`, `9000:80`, or `:80` for a free one here. */
function portsFrom(text: string): Ports {
  const [, here, there = ''] = /^(?:(\d*):)?(\d+)$/.exec(text) ?? []
  const ports = { here: here === '' ? 0 : Number(here ?? there), there: Number(there) }
  if (!isPort(ports.there) || ports.here > 65_535)
    throw new UsageError(`"${text}" is not of the form [HERE:]THERE`, 'hawser port-forward POD 9000:80')
  return ports
}
