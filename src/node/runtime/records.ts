// What do the files of a container say? record.json is ours, pid is written by its setup, exit by its supervisor. A full disk or a damaged one
// may leave any of them empty or torn, and then it says nothing.
import type { PodUid } from '../../api/names.ts'
import type { ProcessIdentity } from '../../host/processes.ts'
import type { ContainerExit } from './port.ts'

export interface SavedRecord {
  readonly startedAt: number
  /** Earlier versions counted a container without a command as running; there is no process of it. */
  readonly pause?: true
  /** Whose container it is: namespace/name of the pod. */
  readonly owner?: string
  readonly graceMs?: number
}

export const containerId = (pod: PodUid, name: string, attempt: number) => `hawser://${pod}/${name}/${attempt}`

/** Names one start, so that the supervisor of an earlier one cannot take it for its own. */
export const tokenOf = ({ startedAt }: SavedRecord) => `start-${startedAt}`

/** The starts that still count, by the names of their directories: the latest, after the one that is its last state. */
export function latestAttempts(names: readonly string[]): readonly number[] {
  const attempts = names.filter((name) => /^\d+$/.test(name)).map(Number)
  return attempts.sort((a, b) => a - b).slice(-2)
}

export function parseRecord(text: string | undefined): SavedRecord | undefined {
  try {
    const found = JSON.parse(text ?? '') as Partial<Record<keyof SavedRecord, unknown>> // checked in the next lines
    const { startedAt, pause, owner, graceMs } = found
    if (typeof startedAt !== 'number') return undefined
    return {
      startedAt,
      ...(pause === true ? { pause } : {}),
      ...(typeof owner === 'string' ? { owner } : {}),
      ...(typeof graceMs === 'number' ? { graceMs } : {}),
    }
  } catch {
    return undefined
  }
}

export function parseExit(text: string | undefined): ContainerExit | undefined {
  const [, code, at] = /^(\d+) (\d+)\s*$/.exec(text ?? '') ?? []
  return code === undefined ? undefined : describeExit(Number(code), Number(at))
}

export function lostExit(at: number): ContainerExit {
  return { code: 137, at, reason: 'Error', message: 'the process is gone and left no exit code' }
}

export function parseIdentity(text: string | undefined): ProcessIdentity | undefined {
  const [, pid, startTime] = /^(\d+) (\d+)\s*$/.exec(text ?? '') ?? []
  return pid === undefined || startTime === undefined ? undefined : { pid: Number(pid), startTime }
}

function describeExit(code: number, at: number): ContainerExit {
  const reason = code === 0 ? 'Completed' : code === 126 || code === 127 ? 'ContainerCannotRun' : 'Error'
  return { code, at, reason }
}
