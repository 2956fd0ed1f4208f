// Why does an object wait, and what did a controller change? The history is written from these.
import type { ObjectKey } from '../../client/object-loop.ts'
import type { ControllerWaitReason } from '../../volume/wait-reasons.ts'

export interface Waiting {
  readonly reason: ControllerWaitReason
  readonly message?: string
  /** When the object is synced again, if time alone can help (milliseconds since 1970). */
  readonly until?: number
}

/** A controller changed something in the API. */
export interface Transition {
  readonly controller: string
  readonly object: ObjectKey
  /** Of the object that was changed: another one may have its name later. */
  readonly uid?: string | undefined
  readonly what: string
}
