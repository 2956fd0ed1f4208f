// What do the controllers say while they wait, and when they change something? Told to the history by rule.
import type { ControllerWaitReason } from '../../volume/wait-reasons.ts'

export interface Waiting {
  readonly reason: ControllerWaitReason
  /** The rule of the specification that made it wait. */
  readonly rule: string
  readonly message?: string
  /** The object whose change would help, as Kind/key. */
  readonly on?: string
  /** When it will be looked at again, if time alone can help (milliseconds since 1970). */
  readonly until?: number
}

/** Something changed in the API because of a rule; history and `hawser why` are made of these. */
export interface Transition {
  readonly controller: string
  readonly object: string
  readonly rule: string
  readonly what: string
}

export interface WaitingList {
  set(key: string, waiting: readonly Waiting[]): void
  readonly all: ReadonlyMap<string, readonly Waiting[]>
}

/** `onChange` hears every list that is set, also one that did not change. */
export function createWaitingList(onChange?: (key: string, waiting: readonly Waiting[]) => void): WaitingList {
  const all = new Map<string, readonly Waiting[]>()
  return {
    all,
    set(key, waiting) {
      if (waiting.length === 0) all.delete(key)
      else all.set(key, waiting)
      onChange?.(key, waiting)
    },
  }
}
