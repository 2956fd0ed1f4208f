// How does a job of a driver sync its objects? One loop over tagged keys with back-off, whose failures the history has.
import { createObjectLoop, keyText } from '../../client/object-loop.ts'
import type { ObjectKey, ObjectLoop } from '../../client/object-loop.ts'
import type { Looked } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { JobHistory, JobHistoryDeps } from './job-history.ts'
import { jobBackoff } from './job.ts'

export interface JobLoopDeps extends JobHistoryDeps {
  readonly log: Log
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
}

const inactiveMs = 10_000

export function createLoopWithHistory<Key extends ObjectKey>(
  deps: JobLoopDeps,
  options: JobLoopOptions<Key>,
): ObjectLoop<Key> {
  const { clock, log, driver } = deps
  const { history } = options
  return createObjectLoop<Key>({
    name: `${options.name} ${driver.name}`,
    clock,
    workers: options.workers,
    backoff: jobBackoff,
    async look(key, signal) {
      if (!deps.active()) return { again: clock.now() + inactiveMs }
      history.takeFailure(key)
      const looked = await options.sync(key, signal)
      // A sync that names a time waits for something, and one that recorded a failure has not recovered either.
      if (looked?.again === undefined && !history.takeFailure(key)) history.recovered(key)
      return looked
    },
    onError(key, error, retryAt) {
      history.failed(key, error, retryAt)
      history.takeFailure(key)
      log.warn(options.failure, { driver: driver.name, object: keyText(key), error, retryAt })
    },
  })
}
