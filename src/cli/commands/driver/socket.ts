// How does a command reach a CSI driver? Through its socket, with the system clock; mistakes are told as sentences.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Channel } from '../../../csi/channel.ts'
import { openChannel } from '../../../csi/channel.ts'
import { CsiError } from '../../../csi/codes.ts'
import { Missing } from '../../errors.ts'
import { UsageError } from '../../../main/config.ts'

/** `/run/csi.sock` or `unix:///run/csi.sock`. */
export function openSocket(text: string): Channel {
  const path = resolve(text.replace(/^unix:(\/\/)?/, ''))
  const kind = kindOf(path)
  if (kind === 'missing') throw new Missing(`there is no socket at ${path}`, 'is the driver running?')
  if (kind === 'other') throw new UsageError(`${path} is not a socket`)
  return openChannel(path)
}

/** CODE: message, as drivers and their logs say it. */
export function errorText(error: unknown): string {
  if (error instanceof CsiError) return `${error.status}: ${error.details}`
  return error instanceof Error ? error.message : String(error)
}

function kindOf(path: string): 'socket' | 'missing' | 'other' {
  try {
    return statSync(path).isSocket() ? 'socket' : 'other'
  } catch {
    return 'missing'
  }
}
