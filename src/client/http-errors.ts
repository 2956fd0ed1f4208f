// What did the server mean by "no"? An answer of 300 or more, or the Status inside a watch, becomes a StatusError.
import { StatusError } from '../api/status-error.ts'
import type { Status } from '../api/generated/types.ts'

export function errorFromAnswer(code: number, text: string): StatusError {
  return errorFromStatus(parsed(text), code)
}

export function errorFromStatus(value: unknown, code = 500): StatusError {
  const status = value as Partial<Status> | undefined
  if (status?.kind === 'Status') return StatusError.fromStatus(status as Status, status.code ?? code)
  // Not a Kubernetes server, or a proxy in between: say at least the number and the beginning of what it said.
  const text = typeof value === 'string' ? value.slice(0, 200) : ''
  return StatusError.fromStatus({ metadata: {}, message: `the server answered ${code}${text && `: ${text}`}` }, code)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
