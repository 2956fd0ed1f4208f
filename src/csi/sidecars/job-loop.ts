// How does a job of a driver sync its objects? One loop over tagged keys with back-off, whose failures the history has.
import { createObjectLoop, keyText } from '../../client/object-loop.ts'
import type { ObjectKey, ObjectLoop } from '../../client/object-loop.ts'
import type { Looked } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { VolumeError } from '../../volume/effect.ts'
import { CsiError } from '../codes.ts'
import { onSpaceFreed } from './freed-space.ts'
import type { Caches } from './fresh-view.ts'
import type { JobHistory, JobHistoryDeps } from './job-history.ts'
import { jobBackoff } from './job.ts'
import { createNeededObjects } from './needed-objects.ts'
import type { Needed } from './needed-objects.ts'

export interface JobLoopDeps extends JobHistoryDeps {
  readonly log: Log
  readonly informers: Caches
  /** False while upstream's sidecar holds the lease of this job: then nothing is synced. */
  active(): boolean
}

export interface JobLoopOptions<Key extends ObjectKey> {
  readonly name: string
  readonly workers: number
  readonly history: JobHistory
  /** The log's message for a failed sync. */
  readonly failure: string
  sync(key: Key, signal: AbortSignal): Promise<Looked | void>
  /** The objects without which a sync fails, beside its own: it is tried again when one of them comes or changes. */
  needs(key: Key): readonly Needed[]
}

export type JobLoop<Key extends ObjectKey> = Pick<ObjectLoop<Key>, 'wake' | 'wakeAt'> & AsyncDisposable

const inactiveMs = 10_000
/** These jobs may read the secrets that a class names, and watch none. */
const secretMs = 5_000

export function createLoopWithHistory<Key extends ObjectKey>(
  deps: JobLoopDeps,
  options: JobLoopOptions<Key>,
): JobLoop<Key> {
  const { clock, log, driver } = deps
  const { history } = options
  const needed = createNeededObjects<Key>(deps.informers, (key) => loop.wake(key))
  /** By text: what failed for the lack of space. */
  const lacking = new Map<string, Key>()
  const freed = onSpaceFreed(deps.informers, driver.name, () => lacking.forEach((key) => loop.wake(key)))
  const loop = createObjectLoop<Key>({
    name: `${options.name} ${driver.name}`,
    clock,
    workers: options.workers,
    backoff: jobBackoff,
    async look(key, signal) {
      if (!deps.active()) return { again: clock.now() + inactiveMs }
      history.takeFailure(key)
      // From now on, not from the failure on: an object that comes while we fail for the lack of it counts.
      needed.set(key, options.needs(key))
      lacking.delete(keyText(key))
      const looked = await options.sync(key, signal)
      needed.clear(key)
      // A sync that names a time waits for something, and one that recorded a failure has not recovered either.
      if (looked?.again === undefined && !history.takeFailure(key)) history.recovered(key)
      return looked
    },
    onError(key, error, backoffEnds) {
      if (lacksSpace(error)) lacking.set(keyText(key), key)
      const retryAt = isSecretUnread(error) ? Math.min(backoffEnds, clock.now() + secretMs) : backoffEnds
      if (retryAt < backoffEnds) loop.wakeAt(key, retryAt)
      history.failed(key, error, retryAt)
      history.takeFailure(key)
      log.warn(options.failure, { driver: driver.name, object: keyText(key), error, retryAt })
    },
  })
  return {
    wake: loop.wake,
    wakeAt: loop.wakeAt,
    async [Symbol.asyncDispose]() {
      needed[Symbol.dispose]()
      freed[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

const isSecretUnread = (error: unknown) => error instanceof VolumeError && error.code === 'SecretUnread'
const lacksSpace = (error: unknown) => error instanceof CsiError && error.status === 'RESOURCE_EXHAUSTED'
