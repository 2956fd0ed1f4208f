// How does a log line look on a terminal? Time, level, message, then the fields as name=value.
import type { Fields, Level } from './log.ts'

export function readableLine(time: Date, level: Level, message: string, fields: Fields): string {
  const at = time.toISOString().slice(11, 19)
  const data = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${valueText(value)}`)
  return [`${at} ${level.padEnd(5)} ${message}`, ...data].join('  ')
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object' || value === null) return String(value)
  const { message, code, cause } = value as { message?: unknown; code?: unknown; cause?: unknown }
  // An error, as log.ts writes it: what happened, and why that happened.
  if (typeof message === 'string') {
    const why = cause === undefined ? '' : `: ${bare(valueText(cause))}`
    return quoted(`${message}${code === undefined ? '' : ` (${String(code)})`}${why}`)
  }
  return JSON.stringify(value)
}

/** One line stays one line: what a driver or a program said may hold control characters. */
const quoted = (text: string) => (/^[\w./:@=+,-]+$/.test(text) ? text : JSON.stringify(text))
const bare = (text: string) => (text.startsWith('"') ? (JSON.parse(text) as string) : text)
