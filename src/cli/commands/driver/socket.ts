// How does a command reach a CSI driver? Through its socket, with the system clock; mistakes are told as sentences.
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import type { Channel } from '../../../csi/channel.ts'
import { openChannel } from '../../../csi/channel.ts'
import type { CsiError } from '../../../csi/codes.ts'
import { Missing } from '../../errors.ts'
import { UsageError } from '../../../installation/config.ts'

/** `/run/csi.sock` or `unix:///run/csi.sock`. */
export function openSocket(text: string): Channel {
  const path = resolve(text.replace(/^unix:(\/\/)?/, ''))
  const kind = kindOf(path)
  if (kind === 'missing') throw new Missing(`there is no socket at ${path}`, 'is the driver running?')
  if (kind === 'other') throw new UsageError(`${path} is not a socket`)
  return openChannel(path)
}

/** No answer of the driver: nobody was reached, or the time was over. What a driver says itself is an answer. */
export const isUnanswered = ({ code, status }: CsiError): boolean =>
  code === 'DriverUnreachable' || status === 'DEADLINE_EXCEEDED'

/** A path where we are about to listen: what lies there may only be a socket that nobody listens on any longer. */
export async function refuseIfInUse(path: string): Promise<void> {
  const kind = kindOf(path)
  if (kind === 'missing') return
  if (kind === 'other') throw new UsageError(`${path} is there, and it is not a socket`)
  const connection = connect(path)
  const isServed = await once(connection, 'connect').then(
    () => true,
    () => false,
  )
  connection.destroy()
  if (isServed) throw new UsageError(`somebody listens on ${path} already`, 'choose another path')
}

function kindOf(path: string): 'socket' | 'missing' | 'other' {
  try {
    return statSync(path).isSocket() ? 'socket' : 'other'
  } catch {
    return 'missing'
  }
}
