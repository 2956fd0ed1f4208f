// Who writes pod statuses, and when? One writer per pod at a time; what changes meanwhile goes with the next write.
// A running pod's news may wait a moment for company; an end is written at once.
import type { PodUid } from '../api/names.ts'
import { isConflict, isNotFound } from '../api/status-error.ts'
import type { PodStatus } from '../api/types.ts'
import type { Client } from '../client/client.ts'
import type { Clock } from '../clock/clock.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { PodWork } from './pod-work.ts'
import { podStatus } from './pod-status.ts'
import type { StatusFacts } from './pod-status.ts'

export interface StatusWriter extends AsyncDisposable {
  wake(pod: PodUid): void
  /** The pod is gone for good; what was written of it counts no more. */
  forget(pod: PodUid): void
  /** DELETE with grace 0: the last act for a pod of the API server. */
  removeObject(work: PodWork, signal: AbortSignal): Promise<void>
  idle(): Promise<void>
}

export interface StatusWriterDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly works: ReadonlyMap<PodUid, PodWork>
  factsOf(work: PodWork, now: number): StatusFacts
}

/** Long enough to join "volumes ready" and "started", short enough to be unnoticed. */
const companyMs = 50
/** That a pod is pending is news only if it lasts. */
const pendingMs = 250

export function createStatusWriter(deps: StatusWriterDeps): StatusWriter {
  const { client, clock, log, works } = deps
  const written = new Map<PodUid, string>()
  const loop = createKeyLoop<PodUid>({
    name: 'pod-status',
    clock,
    workers: 8,
    backoff: { firstMs: 100, capMs: 30_000 },
    look: (uid, signal) => write(uid, signal),
    onError: (uid, error) => log.warn('pod status not written', { pod: uid, error }),
  })
  const write = async (uid: PodUid, signal: AbortSignal) => {
    const work = works.get(uid)
    if (!work?.pod || work.source !== 'api' || work.gone) return void written.delete(uid)
    const status = podStatus(deps.factsOf(work, clock.now()))
    const text = comparable(status)
    if (text === written.get(uid) || (!written.has(uid) && text === comparable(work.pod.status ?? {}))) return
    const { namespace = '', name } = work.pod.metadata
    const body = { metadata: { uid }, status: withoutStale(status, work.pod.status) }
    try {
      await client.patch('Pod', { namespace, name }, { type: 'merge', body }, { subresource: 'status' }, signal)
      written.set(uid, text)
    } catch (error) {
      // Another pod of that name, or none: there is nobody to tell.
      if (!isNotFound(error) && !isConflict(error)) throw error
    }
  }
  return {
    wake(uid) {
      const work = works.get(uid)
      if (work?.ended || work?.failure) return loop.wake(uid)
      const started = [...(work?.containers.values() ?? [])].some(({ record }) => record !== undefined)
      loop.wakeAt(uid, clock.now() + (started ? companyMs : pendingMs))
    },
    forget(uid) {
      written.delete(uid)
      loop.forget(uid)
    },
    async removeObject({ pod, uid }, signal) {
      const { namespace = '', name } = pod!.metadata
      // Whoever watches the pod learns how it ended (`hawser run`, kubectl run): the last status comes before the end.
      await write(uid, signal)
      try {
        await client.remove('Pod', { namespace, name }, { uid, gracePeriodSeconds: 0 }, signal)
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error
      }
    },
    idle: () => loop.idle(),
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

/** Times of conditions do not make a status different. */
function comparable(status: PodStatus): string {
  const conditions = (status.conditions ?? []).map(({ type, status: value, reason, message }) => [
    type,
    value,
    reason,
    message,
  ])
  return JSON.stringify({ ...status, startTime: undefined, conditions })
}

/** Fields that a merge patch would otherwise leave standing. */
function withoutStale(status: PodStatus, before: PodStatus | undefined): Record<string, unknown> {
  const stale = Object.keys(before ?? {}).filter(
    (name) => (name === 'reason' || name === 'message') && !(name in status),
  )
  return { ...status, ...Object.fromEntries(stale.map((name) => [name, null])) }
}
