// What does a gRPC status say about the world? One table turns each code into an effect: did nothing happen, or
// may the call still be running? (rules CSI-15, CSI-16, SIDE-16, SIDE-38)
import { errorText } from '../telemetry/error-text.ts'
import { VolumeError } from '../volume/effect.ts'
import type { CsiCode } from '../volume/error-codes.ts'
import type { Effect, ErrorTag } from '../volume/effect.ts'
import { plainText } from './answers.ts'

/** Every status that is an error; OK is none. */
export const statusCodes = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const satisfies Readonly<Record<CsiCode, number>>

export type StatusName = CsiCode

const names: ReadonlyMap<number, StatusName> = new Map(
  Object.entries(statusCodes).map(([name, code]) => [code, name as StatusName]),
)

interface CsiErrorOptions {
  readonly rpc?: string
  readonly cause?: unknown
  readonly effect?: Effect
  /** `AnswerInvalid`: the driver answered OK, and its answer cannot be used. `DriverUnreachable`: the call did not get through. */
  readonly code?: 'AnswerInvalid' | 'DriverUnreachable'
}

/** A call that was answered with a status, or was never answered at all. `code` is the status name. */
export class CsiError extends VolumeError {
  readonly status: StatusName
  readonly rpc: string
  /** The driver's own words, without our prefix: cut, and without control characters. */
  readonly details: string
  constructor(status: StatusName, words: string, options: CsiErrorOptions = {}) {
    const details = plainText(words)
    super(options.code ?? status, `rpc error: code = ${spoken(status)} desc = ${details}`, {
      effect: options.effect ?? effectOf(status),
      ...(options.cause === undefined ? {} : { cause: options.cause }),
      tags: tagsOf(status),
    })
    this.status = status
    this.rpc = options.rpc ?? ''
    this.details = details
  }
}

export function statusName(code: number): StatusName {
  return names.get(code) ?? 'UNKNOWN'
}

/** CSI-15: these codes leave open whether the call had, or will have, an effect. All others are final. */
const uncertain: ReadonlySet<StatusName> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
])

export function effectOf(status: StatusName): Effect {
  return uncertain.has(status) ? 'unknown' : 'none'
}

function tagsOf(status: StatusName): readonly ErrorTag[] {
  switch (status) {
    case 'FAILED_PRECONDITION':
      return ['failedPrecondition']
    case 'NOT_FOUND':
      return ['infeasible', 'notFound']
    case 'INVALID_ARGUMENT':
    case 'OUT_OF_RANGE':
      return ['infeasible']
    default:
      return []
  }
}

/** What a failed CreateVolume means for its claim (SIDE-16, XPR-7). */
export type ProvisionVerdict = 'reschedule' | 'background' | 'infeasible' | 'final'

export function provisionVerdict(
  error: unknown,
  facts: { readonly topology: boolean; readonly selectedNode: boolean },
): ProvisionVerdict {
  // A refusal of our own says itself whether the driver may still have something.
  if (!(error instanceof CsiError))
    return error instanceof VolumeError && error.effect === 'none' ? 'final' : 'background'
  switch (error.status) {
    case 'RESOURCE_EXHAUSTED':
      return facts.topology && facts.selectedNode ? 'reschedule' : 'final'
    case 'CANCELLED':
    case 'DEADLINE_EXCEEDED':
    case 'UNAVAILABLE':
    case 'ABORTED':
      return 'background'
    case 'INVALID_ARGUMENT':
      return 'infeasible'
    default:
      return 'final'
  }
}

/** What a failed expansion means, at the controller and on the node alike (CSI-16, SIDE-38, XRS-6). */
export type ExpandVerdict = 'uncertain' | 'inUse' | 'infeasible' | 'final'

export function expandVerdict(error: unknown): ExpandVerdict {
  if (!(error instanceof CsiError)) return 'uncertain'
  switch (error.status) {
    case 'FAILED_PRECONDITION':
      return 'inUse'
    case 'INVALID_ARGUMENT':
    case 'OUT_OF_RANGE':
    case 'NOT_FOUND':
      return 'infeasible'
    default:
      return uncertain.has(error.status) ? 'uncertain' : 'final'
  }
}

/** Whatever a handler threw, as a status: our own errors keep theirs, everything else is INTERNAL. */
export function statusFrom(error: unknown, rpc: string): CsiError {
  if (error instanceof CsiError) return error
  const text = errorText(error)
  return new CsiError('INTERNAL', text, { rpc, cause: error })
}

/** gRPC writes codes in CamelCase in its messages; users search for these words. */
function spoken(status: StatusName): string {
  if (status === 'CANCELLED') return 'Canceled'
  return status
    .toLowerCase()
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** `UNAVAILABLE: no such socket`: a driver's status and its own message; the message of any other error. */
export function statusText(error: unknown): string {
  return error instanceof CsiError ? `${error.status}: ${error.details}` : errorText(error)
}
