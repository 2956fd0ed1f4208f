// `hawser logs`: what a pod's containers wrote.
import { buildCommand } from '@stricli/core'
import { objectPath } from '../../client/rest.ts'
import { namesOf } from '../completions.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { podFrom } from '../resources.ts'

interface Flags extends ConnectFlags {
  readonly container?: string
  readonly follow: boolean
  readonly tail?: number
}

export const logs = buildCommand<Flags, [string], Context>({
  docs: {
    brief: "Print a pod's output",
    fullDescription: [
      'Examples:',
      '  hawser logs first',
      '  hawser logs pod/first -c writer --follow',
      '  hawser logs first --tail 20',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      container: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'NAME',
        brief: 'Container (default: the only one)',
      },
      follow: { kind: 'boolean', default: false, brief: 'Follow the output until the container ends' },
      tail: { kind: 'parsed', parse: linesFrom, optional: true, placeholder: 'N', brief: 'Only the last N lines' },
    },
    aliases: { c: 'container', f: 'follow', n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: (text: string) => podFrom(text, 'logs'),
          placeholder: 'POD',
          proposeCompletions: namesOf('Pod'),
          brief: 'Name of the pod',
        },
      ],
    },
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort())
    await printLogs(this, connection, { ...flags, name }, stop.signal)
  },
})

export interface LogRequest {
  readonly name: string
  readonly container?: string
  readonly follow: boolean
  readonly tail?: number
}

/** Writes the bytes as they come; ends with the container (when following), the signal, or the end of the log. */
export async function printLogs(
  context: Context,
  { transport, namespace }: Pick<Connection, 'transport' | 'namespace'>,
  request: LogRequest,
  signal: AbortSignal,
): Promise<void> {
  const query = new URLSearchParams({
    ...(request.container === undefined ? {} : { container: request.container }),
    ...(request.follow ? { follow: 'true' } : {}),
    ...(request.tail === undefined ? {} : { tailLines: String(request.tail) }),
  })
  const path = `${objectPath('Pod', { name: request.name, namespace }, 'log')}?${query}`
  try {
    for await (const piece of transport.bytes({ method: 'GET', path, accept: '*/*' }, signal)) context.write(piece)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function linesFrom(text: string): number {
  if (!/^\d+$/.test(text)) throw new SyntaxError(`"${text}" is not a number of lines`)
  return Number(text)
}
