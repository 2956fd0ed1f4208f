// What does a failed call to host or API mean for a volume? The one translation, used by every plugin here.

import { StatusError } from '../../api/status-error.ts'
import { HostError } from '../../host/host-error.ts'
import type { Effect, ErrorTag } from '../../volume/effect.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'

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
  if (error instanceof HostError) {
    return new VolumeError(error.code, error.message, { effect: error.certain ? 'none' : 'unknown', cause: error })
  }
  // The API said no or did not answer: nothing on this node was touched yet (PLUG-22).
  if (error instanceof StatusError)
    return new VolumeError(error.reason, error.message, { effect: 'untried', cause: error })
  return error
}

/**
 * What is prepared before anybody is asked: its failure says nothing about what an earlier attempt may have left. A call that
 * may have taken effect all the same leaves doubt.
 */
export async function preparing<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    throw new VolumeError(error.code, error.message, { effect: error.certain ? 'untried' : 'unknown', cause: error })
  }
}

/** A failure that left nothing behind, as far as the failed call knows; but `left` says that something is there. */
export async function unlessLeft<T>(call: () => Promise<T>, left: () => Promise<boolean>): Promise<T> {
  try {
    return await translated(call)
  } catch (error) {
    const { effect, code, message, tags } = asVolumeError(error)
    if (effect !== 'none' || !(await left().catch(() => true))) throw error
    throw new VolumeError(code, message, { effect: 'unknown', tags, cause: error })
  }
}

export function refuse(
  code: string,
  message: string,
  effect: Effect = 'none',
  tags: readonly ErrorTag[] = [],
  cause?: unknown,
): VolumeError {
  return new VolumeError(code, message, { effect, tags, ...(cause === undefined ? {} : { cause }) })
}

/** The same failure in other words: what it left behind stays known. */
export function reworded(error: unknown, words: (message: string) => string): VolumeError {
  const { code, effect, tags, message } = asVolumeError(toVolumeError(error))
  return new VolumeError(code, words(message), { effect, tags, cause: error })
}

export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
