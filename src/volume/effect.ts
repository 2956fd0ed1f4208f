// What did a failed call leave behind? The error itself says so, and wrapping it cannot make us forget (ERR-1 … ERR-4).

/** none: certainly nothing happened. unknown: it may have happened or still be under way. untried: nothing was attempted. */
export type Effect = 'none' | 'unknown' | 'untried'

/** Facts beside the effect, found anywhere in the chain of causes (ERR-4). */
export type ErrorTag = 'failedPrecondition' | 'infeasible' | 'notSupported' | 'filesystemMismatch' | 'notFound'

export interface VolumeErrorOptions {
  readonly effect: Effect
  readonly cause?: unknown
  readonly tags?: readonly ErrorTag[]
  /** The storage says that the volume sits on another node (ERR-6). */
  readonly attachedTo?: { readonly node: string; readonly devicePath: string }
}

export class VolumeError extends Error {
  override readonly name = 'VolumeError'
  readonly code: string
  readonly effect: Effect
  readonly tags: readonly ErrorTag[]
  readonly attachedTo: VolumeErrorOptions['attachedTo']
  constructor(code: string, message: string, options: VolumeErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.effect = options.effect
    this.tags = options.tags ?? []
    this.attachedTo = options.attachedTo
  }
}

export type Outcome<T = void> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed' | 'deferred' | 'uncertain'; readonly error: VolumeError }

/** The one place where exceptions become outcomes. What we do not recognise counts as unknown: a bug is no proof that nothing happened. */
export function outcomeOf<T>(call: () => Promise<T> | T): Promise<Outcome<T>> | Outcome<T> {
  try {
    const answer = call()
    return isThenable(answer) ? Promise.resolve(answer).then(doneWith, failedWith) : doneWith(answer)
  } catch (thrown) {
    return failedWith(thrown)
  }
}

/** Whatever will answer later: to take a plugin's own kind of promise for an answer would be to call undone work done. */
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
  const message = thrown instanceof Error ? thrown.message : String(thrown)
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
