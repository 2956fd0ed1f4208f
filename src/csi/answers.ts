// What of a driver's answer is taken? Ids, maps and sizes within limits, and text that a terminal can show. A driver may
// have gone wrong or mean harm: what it says goes into objects, events, logs and file names of everybody.
import type { Segments, Strings } from './values.ts'

/** CSI allows 128 bytes (ids of nodes 256), real drivers use more: full names of cloud resources are ids. */
const maxIdBytes = 1_024
/** CSI allows 4 KiB for a map. */
const maxMapEntries = 1_000
const maxMapBytes = 128 * 1_024
const maxSegments = 1_000
/** Error texts and other words of a driver. Events cut theirs at 1,024 anyway. */
const maxTextLength = 2_048

/** Why this id cannot be used; undefined when it can. Slashes and dots are fine: no id ever becomes part of a path. */
export function idProblem(what: string, id: string): string | undefined {
  if (id === '') return `driver answered no ${what}`
  const bytes = Buffer.byteLength(id)
  if (bytes > maxIdBytes) return `driver answered a ${what} of ${bytes} bytes, more than ${maxIdBytes}`
  return hasControl(id) ? `driver answered a ${what} with a control character: ${shown(id)}` : undefined
}

/** Values may have lines (certificates do), but no other control characters. */
export function mapProblem(what: string, map: Strings): string | undefined {
  const entries = Object.entries(map)
  if (entries.length > maxMapEntries)
    return `driver answered a ${what} of ${entries.length} entries, more than ${maxMapEntries}`
  let bytes = 0
  for (const [key, value] of entries) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    if (bytes > maxMapBytes) return `driver answered a ${what} of more than ${maxMapBytes} bytes`
    if (hasControl(key) || hasControl(value.replaceAll(/[\n\r\t]/g, '')))
      return `driver answered a ${what} with a control character at ${shown(key)}`
  }
  return undefined
}

export function topologyProblem(topology: readonly Segments[]): string | undefined {
  if (topology.length > maxSegments)
    return `driver answered a topology of ${topology.length} segments, more than ${maxSegments}`
  for (const { segments } of topology) {
    const problem = mapProblem('topology segment', segments)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Text as it may be shown anywhere: other control characters than line ends become `\u…`, and what is too long is cut. */
export function plainText(text: string): string {
  const cut = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}… (${text.length} characters)` : text
  return cut.replaceAll(/[^\P{Cc}\n\t]/gu, escaped)
}

const hasControl = (text: string) => /\p{Cc}/u.test(text)

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

const shown = (text: string) => JSON.stringify(plainText(text.slice(0, 128)))
