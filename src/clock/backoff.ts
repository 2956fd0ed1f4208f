// How long after the n-th failure may we try again? Rules BO-1 … BO-3: 500 ms, doubling, at most 122 s, no jitter.
import { isWithin } from './clock.ts'

export interface BackoffShape {
  readonly firstMs: number
  readonly capMs: number
}

/** The back-off of volume operations (C-1). */
export const operationBackoff: BackoffShape = { firstMs: 500, capMs: 122_000 }

/** The back-off of controller keys (CTL-7): 5 ms doubling to 1000 s. */
export const keyBackoff: BackoffShape = { firstMs: 5, capMs: 1_000_000 }

/** What is remembered of failures in one slot. A fresh record allows a try at once (BO-1). */
export interface BackoffRecord {
  readonly failures: number
  readonly failedAt: number
  readonly waitMs: number
  readonly error: string
}

export function backoff(failures: number, shape: BackoffShape = operationBackoff): number {
  if (failures <= 0) return 0
  return Math.min(shape.capMs, shape.firstMs * 2 ** Math.min(failures - 1, 40))
}

export function afterFailure(
  record: BackoffRecord | undefined,
  now: number,
  error: string,
  shape: BackoffShape = operationBackoff,
): BackoffRecord {
  const failures = (record?.failures ?? 0) + 1
  return { failures, failedAt: now, waitMs: backoff(failures, shape), error }
}

/** The first moment at which a new try is allowed. The boundary itself still refuses (BO-3). */
export function retryAt(record: BackoffRecord): number {
  return record.failedAt + record.waitMs + 1
}

/** A failure that lies in the future happened before the clock was set back: how long ago is unknown, so a try is allowed. */
export function mayRetry(record: BackoffRecord | undefined, now: number): boolean {
  return record === undefined || !isWithin(now, record.failedAt, retryAt(record))
}
