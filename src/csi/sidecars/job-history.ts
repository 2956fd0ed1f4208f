// What do a driver's jobs tell the history? The calls to the driver, and the driver's answers in its own words.
import { refKey } from '../../api/meta.ts'
import type { History, HistorySubject } from '../../client/history.ts'
import { keyText, referenceTo } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Clock } from '../../clock/clock.ts'
import { tellingError } from '../../volume/operation-history.ts'
import { CsiError } from '../codes.ts'

export interface JobHistory {
  /** Makes a call to the driver and records how it went. */
  calling<T>(key: ObjectKey, step: string, call: () => Promise<T>): Promise<T>
  /** The sync failed; it is tried again at `nextTry` if that is known. */
  failed(key: ObjectKey, error: unknown, nextTry?: number): void
  /** Nothing was tried in this sync: what failed before still holds. */
  keepFailure(key: ObjectKey): void
  recovered(key: ObjectKey): void
  /** Was a failure of this key recorded since the last call? */
  takeFailure(key: ObjectKey): boolean
}

export interface JobHistoryDeps {
  readonly history?: History | undefined
  readonly clock: Clock
  readonly driver: { readonly name: string }
}

/** `operation` is what a person would call it: provision, delete, attach, … */
export function createJobHistory({ history, clock, driver }: JobHistoryDeps, operation: string): JobHistory {
  const subject = (key: ObjectKey): HistorySubject => ({
    actor: `csi ${driver.name}`,
    operation,
    key: key.uid ?? refKey(key),
    objects: [referenceTo(key)],
  })
  const failing = new Set<string>()
  return {
    takeFailure: (key) => failing.delete(keyText(key)),
    async calling(key, step, call) {
      const startedAt = clock.now()
      const about = subject(key)
      history?.tell({ ...about, phase: 'Running', startedAt })
      history?.tell({ ...about, phase: 'Running', step, startedAt })
      const answer = await call()
      history?.tell({ ...about, phase: 'Succeeded', step, startedAt, finishedAt: clock.now() })
      return answer
    },
    failed(key, error, nextTry) {
      const now = clock.now()
      failing.add(keyText(key))
      history?.tell({
        ...subject(key),
        phase: 'Failed',
        startedAt: now,
        finishedAt: now,
        error: inOwnWords(error),
        ...(nextTry === undefined ? {} : { nextTry }),
      })
    },
    keepFailure: (key) => void failing.add(keyText(key)),
    recovered: (key) => history?.recovered(subject(key)),
  }
}

function inOwnWords(error: unknown) {
  const telling = tellingError(error)
  return error instanceof CsiError ? { ...telling, message: error.details } : telling
}
