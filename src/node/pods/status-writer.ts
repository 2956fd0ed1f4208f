// Who writes pod statuses, and when? One writer per pod at a time; what changes meanwhile goes with the next write.
// Changes of a running pod wait a moment, so that several go with one write; an end is written at once.
import type { PodUid } from '../../api/names.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Pod, PodStatus } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { PodRecord } from './pod-record.ts'
import { ownConditions, podStatus } from './pod-status.ts'

export interface StatusWriter extends AsyncDisposable {
  wake(pod: PodUid): void
  /** The pod is gone for good; what was written of it counts no more. */
  forget(pod: PodUid): void
  /** DELETE with grace 0: the last act for a pod of the API server. */
  removeObject(uid: PodUid, pod: Pod, signal: AbortSignal): Promise<void>
  idle(): Promise<void>
}

export interface StatusWriterDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly records: ReadonlyMap<PodUid, PodRecord>
  /** The address pods are told; '' when there is none. */
  readonly hostAddress: string
}

/** Long enough that "volumes ready" and "started" are one write, short enough to be unnoticed. */
const batchMs = 50
/** That a pod is pending is written only if it lasts. */
const pendingMs = 250

export function createStatusWriter(deps: StatusWriterDeps): StatusWriter {
  const { client, clock, log, records, hostAddress: address } = deps
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
    const record = records.get(uid)
    if (!record?.pod || record.source !== 'api' || record.gone) return void written.delete(uid)
    const { pod } = record
    const status = podStatus({ ...record, pod, now: clock.now(), address })
    const text = comparable(status)
    if (text === written.get(uid) || (!written.has(uid) && text === comparable(pod.status ?? {}))) return
    const { namespace = '', name } = pod.metadata
    const body = { metadata: { uid }, status: patchOf(status, pod.status) }
    try {
      await client.patch('Pod', { namespace, name }, { type: 'strategic', body }, { subresource: 'status' }, signal)
      written.set(uid, text)
    } catch (error) {
      // Another pod of that name, or none: there is nobody to tell.
      if (!isNotFound(error) && !isConflict(error)) throw error
    }
  }
  return {
    wake(uid) {
      const record = records.get(uid)
      if (record?.ended || record?.failure) return loop.wake(uid)
      const started = [...(record?.containers.values() ?? [])].some(({ record }) => record !== undefined)
      loop.wakeAt(uid, clock.now() + (started ? batchMs : pendingMs))
    },
    forget(uid) {
      written.delete(uid)
      loop.forget(uid)
    },
    async removeObject(uid, pod, signal) {
      const { namespace = '', name } = pod.metadata
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

/** Times of conditions and their order do not make a status different. */
function comparable(status: PodStatus): string {
  const conditions = (status.conditions ?? [])
    .map(({ type, status: value, reason, message }) => [type, value, reason, message])
    .toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))
  return JSON.stringify({ ...status, startTime: undefined, conditions })
}

/**
 * Conditions merge by their type, and only our own are sent: what others wrote meanwhile stays. Other lists are replaced,
 * and fields that a patch would leave standing are taken away.
 */
function patchOf(status: PodStatus, before: PodStatus | undefined): Record<string, unknown> {
  const stale = Object.keys(before ?? {}).filter(
    (name) => (name === 'reason' || name === 'message') && !(name in status),
  )
  const { conditions = [], hostIPs, podIPs } = status
  return {
    ...status,
    conditions: conditions
      .filter(({ type }) => ownConditions.has(type))
      .map((each) => ({ reason: null, message: null, ...each })),
    ...(hostIPs ? { hostIPs: [{ $patch: 'replace' }, ...hostIPs] } : {}),
    ...(podIPs ? { podIPs: [{ $patch: 'replace' }, ...podIPs] } : {}),
    ...Object.fromEntries(stale.map((name) => [name, null])),
  }
}
