// What do a driver's jobs tell the history? What they ask of the driver, and its answer in the driver's own words.
import type { KindName } from '../../api/kinds.ts'
import type { ObjectReference } from '../../api/types.ts'
import type { History, HistorySubject } from '../../client/history.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { KeyLoop, KeyLoopOptions } from '../../loop/key-loop.ts'
import { tellingError } from '../../volume/operation-history.ts'
import { CsiError } from '../codes.ts'

export interface JobStory {
  /** A call to the driver begins; the answer is how it ended. */
  calling<T>(objects: readonly ObjectReference[], key: string, step: string, call: () => Promise<T>): Promise<T>
  /** It failed, and will be tried again at `nextTry` if that is known. */
  failed(objects: readonly ObjectReference[], key: string, error: unknown, nextTry?: number): void
  recovered(objects: readonly ObjectReference[], key: string): void
  /** Keys whose latest look told a failure. */
  readonly failing: Set<string>
}

/** `operation` is what a person would call it: provision, delete, attach, … */
export function createJobStory(
  deps: { readonly history?: History | undefined; readonly clock: Clock; readonly driver: { readonly name: string } },
  operation: string,
): JobStory {
  const { history, clock, driver } = deps
  const subject = (objects: readonly ObjectReference[], key: string): HistorySubject => ({
    actor: `csi ${driver.name}`,
    operation,
    key,
    objects,
  })
  const failing = new Set<string>()
  return {
    failing,
    async calling(objects, key, step, call) {
      const startedAt = clock.now()
      const about = subject(objects, key)
      history?.tell({ ...about, phase: 'Running', startedAt })
      history?.tell({ ...about, phase: 'Running', step, startedAt })
      const answer = await call()
      history?.tell({ ...about, phase: 'Succeeded', step, startedAt, finishedAt: clock.now() })
      return answer
    },
    failed(objects, key, error, nextTry) {
      const now = clock.now()
      failing.add(key)
      history?.tell({
        ...subject(objects, key),
        phase: 'Failed',
        startedAt: now,
        finishedAt: now,
        error: inOwnWords(error),
        ...(nextTry === undefined ? {} : { nextTry }),
      })
    },
    recovered: (objects, key) => history?.recovered(subject(objects, key)),
  }
}

/** A key loop whose failures are told. */
export function createToldLoop(
  story: JobStory,
  objectsOf: (key: string) => readonly ObjectReference[],
  options: KeyLoopOptions<string>,
): KeyLoop<string> {
  return createKeyLoop<string>({
    ...options,
    async look(key, signal) {
      story.failing.delete(key)
      const looked = await options.look(key, signal)
      // A look that names a time waits for something, and one that told a failure has not recovered either.
      if (looked?.again === undefined && !story.failing.delete(key)) story.recovered(objectsOf(key), key)
      return looked
    },
    onError(key, error, retryAt) {
      story.failed(objectsOf(key), key, error, retryAt)
      story.failing.delete(key)
      options.onError?.(key, error, retryAt)
    },
  })
}

export function reference(kind: KindName, key: string): ObjectReference {
  const [first = '', second] = key.split('/')
  return second === undefined ? { kind, name: first } : { kind, namespace: first, name: second }
}

function inOwnWords(error: unknown) {
  const telling = tellingError(error)
  return error instanceof CsiError ? { ...telling, message: error.details } : telling
}
