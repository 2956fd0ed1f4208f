// What does a failed call to host or API mean for a volume? The one translation, used by every plugin here.

import { StatusError } from '../../api/status-error.ts'
import { HostError } from '../../host/host-error.ts'
import { asVolumeError, hostFailure, VolumeError } from '../../volume/effect.ts'

/** Runs a plugin's call; whatever it throws comes out as a VolumeError that says what was left behind. */
export async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw toVolumeError(error)
  }
}

export function toVolumeError(error: unknown): unknown {
  if (error instanceof VolumeError) return error
  if (error instanceof HostError) return hostFailure(error, 'none')
  // The API said no or did not answer: nothing on this node was touched yet (PLUG-22).
  if (error instanceof StatusError)
    return new VolumeError(error.reason, error.message, { effect: 'untried', cause: error })
  return error
}

/**
 * For preparations before the real call. Their failure says nothing about what an earlier attempt left behind, so the effect is
 * untried; unknown if the host call may have taken effect.
 */
export async function preparing<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof HostError ? hostFailure(error, 'untried') : error
  }
}

/** If the call failed without an effect, but `left` finds something there all the same, the effect is unknown. */
export async function unlessLeft<T>(call: () => Promise<T>, left: () => Promise<boolean>): Promise<T> {
  try {
    return await translated(call)
  } catch (error) {
    const { effect, code, message, tags } = asVolumeError(error)
    if (effect !== 'none' || !(await left().catch(() => true))) throw error
    throw new VolumeError(code, message, { effect: 'unknown', tags, cause: error })
  }
}

/** The same failure in other words: what it left behind stays known. */
export function reworded(error: unknown, words: (message: string) => string): VolumeError {
  const { code, effect, tags, message } = asVolumeError(toVolumeError(error))
  return new VolumeError(code, words(message), { effect, tags, cause: error })
}
