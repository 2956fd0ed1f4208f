// What did a failed call leave behind? The error itself says so, also when it is wrapped (ERR-1 … ERR-4).
import { errorText } from '../telemetry/error-text.ts'
import { hostErrorCode } from './error-codes.ts'
import type { ErrorCode } from './error-codes.ts'

/** none: certainly nothing happened. unknown: it may have happened or still be under way. untried: nothing was attempted. */
export type Effect = 'none' | 'unknown' | 'untried'

/** Facts beside the effect, found anywhere in the chain of causes (ERR-4). */
export type ErrorTag =
  | 'failedPrecondition'
  | 'infeasible'
  | 'notSupported'
  | 'filesystemMismatch'
  | 'notFound'
  | 'notStaged'

export interface VolumeErrorOptions {
  readonly effect: Effect
  readonly cause?: unknown
  readonly tags?: readonly ErrorTag[]
  /** The storage says that the volume sits on another node (ERR-6). */
  readonly attachedTo?: { readonly node: string; readonly devicePath: string }
}

export class VolumeError extends Error {
  override readonly name = 'VolumeError'
  readonly code: ErrorCode
  readonly effect: Effect
  readonly tags: readonly ErrorTag[]
  readonly attachedTo: VolumeErrorOptions['attachedTo']
  constructor(code: ErrorCode, message: string, options: VolumeErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.effect = options.effect
    this.tags = options.tags ?? []
    this.attachedTo = options.attachedTo
  }
}

/** A refusal of our own. The effect has no default: only the caller knows what was done before. */
export function refused(
  code: ErrorCode,
  message: string,
  effect: Effect,
  tags: readonly ErrorTag[] = [],
  cause?: unknown,
): VolumeError {
  return new VolumeError(code, message, { effect, tags, ...(cause === undefined ? {} : { cause }) })
}

/** What a HostError tells (host/host-error.ts; this folder does not import the host). */
interface HostFailure extends Error {
  readonly code: string
  /** False where the call may have taken effect, or is still running. */
  readonly certain: boolean
}

/** A failed host call; `ifCertain` is what it means where the call certainly had no effect. */
export function hostFailure(error: HostFailure, ifCertain: 'none' | 'untried'): VolumeError {
  const effect = error.certain ? ifCertain : 'unknown'
  return new VolumeError(hostErrorCode(error.code), error.message, { effect, cause: error })
}

export type Outcome<T = void> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed' | 'deferred' | 'uncertain'; readonly error: VolumeError }

/** The one place where exceptions become outcomes. An unexpected exception has the effect unknown: it proves nothing. */
export function outcomeOf<T>(call: () => Promise<T> | T): Promise<Outcome<T>> | Outcome<T> {
  try {
    const answer = call()
    return isThenable(answer) ? Promise.resolve(answer).then(doneWith, failedWith) : doneWith(answer)
  } catch (thrown) {
    return failedWith(thrown)
  }
}

/** Any thenable counts, not only Promise: else unfinished work of a plugin would count as done. */
function isThenable<T>(answer: PromiseLike<T> | T): answer is PromiseLike<T> {
  return typeof answer === 'object' && answer !== null && 'then' in answer && typeof answer.then === 'function'
}

const doneWith = <T>(value: T): Outcome<T> => ({ kind: 'done', value })

function failedWith(thrown: unknown): Outcome<never> {
  const error = asVolumeError(thrown)
  return { kind: kindOf(error.effect), error }
}

export function asVolumeError(thrown: unknown): VolumeError {
  if (thrown instanceof VolumeError) return thrown
  const message = errorText(thrown)
  return new VolumeError('Unexpected', message, { effect: 'unknown', cause: thrown })
}

/** Is the tag on this error or on any of its causes? */
export function hasTag(error: unknown, tag: ErrorTag): boolean {
  for (let current = error, depth = 0; current instanceof Error && depth < 20; current = current.cause, depth++) {
    if (current instanceof VolumeError && current.tags.includes(tag)) return true
  }
  return false
}

function kindOf(effect: Effect): 'failed' | 'deferred' | 'uncertain' {
  switch (effect) {
    case 'none':
      return 'failed'
    case 'untried':
      return 'deferred'
    case 'unknown':
      return 'uncertain'
    default:
      return effect satisfies never
  }
}
