// How does an operation's progress become a history record? Pure; the caller adds which objects it concerns.
import { VolumeError, asVolumeError } from './effect.ts'
import type { ErrorCode } from './error-codes.ts'
import type { OperationProgress } from './operation.ts'

export interface OperationStory {
  readonly operation: string
  readonly key: string
  readonly phase: 'Running' | 'Succeeded' | 'Failed'
  readonly step?: string
  /** The step at the time of asking, for a record that is written later. */
  readonly stepNow?: () => string | undefined
  readonly startedAt: number
  readonly finishedAt?: number
  readonly error?: TellingError
}

export interface TellingError {
  readonly code: string
  readonly message: string
  readonly effect: string
}

/** Most operations end before anybody could read their steps: early steps are not recorded, `stepNow` tells the current one. */
export const isFleeting = ({ phase, at, startedAt }: OperationProgress) =>
  phase === 'step' && at - startedAt < fleetingMs
const fleetingMs = 1_000

export function storyOf(progress: OperationProgress): OperationStory {
  const { operation, key, startedAt, step, error, at } = progress
  const base = { operation, key: key.join(' '), startedAt }
  switch (progress.phase) {
    case 'started':
      return { ...base, phase: 'Running', stepNow: progress.stepNow }
    case 'step':
      return { ...base, phase: 'Running', ...(step === undefined ? {} : { step }) }
    case 'succeeded':
      return { ...base, phase: 'Succeeded', finishedAt: at }
    case 'failed':
      return {
        ...base,
        phase: 'Failed',
        finishedAt: at,
        ...(error === undefined ? {} : { error: tellingError(error) }),
      }
    default:
      return progress.phase satisfies never
  }
}

/** The most specific code among an error and its causes; the message stays that of the outermost. */
export function tellingError(thrown: unknown): TellingError {
  const outer = asVolumeError(thrown)
  const codes: string[] = []
  for (let current: unknown = thrown, depth = 0; current instanceof Error && depth < 20; current = current.cause) {
    depth++
    const code = codeOf(current)
    if (code !== undefined) codes.push(code)
  }
  const code = codes.find((each) => !wrappingCodes.has(each)) ?? codes[0] ?? outer.code
  return { code, message: outer.message, effect: outer.effect }
}

/** These only say which call failed; the error inside says why. `CHILD` is a program that failed with its own message. */
const wrappingCodes: ReadonlySet<string> = new Set<ErrorCode>([
  'CHILD',
  'FormatFailed',
  'GetDiskFormatFailed',
  'ProjectedSources',
  'UnknownMountError',
])

/** Our own codes, those of the host (`ENOSPC`, `TIMEOUT`, …) and the reasons of the API (`NotFound`, `Conflict`, …). */
function codeOf(error: Error): string | undefined {
  if (error instanceof VolumeError) return error.code === 'Unexpected' ? undefined : error.code
  if (error.name === 'DeadlineExceeded') return 'DEADLINE_EXCEEDED'
  if (error.name === 'StatusError' && 'reason' in error && typeof error.reason === 'string') return `Api${error.reason}`
  if ('code' in error && typeof error.code === 'string') return error.code
  return undefined
}
