// Is a pod to end, does it still run, how long may its end take? Small pure questions about one pod's record.
import { hasEnded } from '../../api/pod-claims.ts'
import type { PodRecord } from './pod-record.ts'

export const isDeleted = ({ pod }: PodRecord) => pod?.metadata.deletionTimestamp !== undefined

/** Its object is to go, and others keep it with a finalizer. */
export const hasFinalizers = ({ pod, gone, source }: PodRecord) =>
  !gone && source === 'api' && (pod?.metadata.finalizers ?? []).length > 0

const runs = ({ containers }: PodRecord) => [...containers.values()].some(({ record }) => record && !record.exit)

/** Do containers of this pod run or begin? Its volumes are in use then, whoever names it or not. */
export const isActive = (record: PodRecord | undefined) => record !== undefined && (record.starting || runs(record))

/** Nothing starts any more: deleted, gone, failed, ended according to the API, or over its time. */
export function isTerminating(record: PodRecord, now: number): boolean {
  if (record.gone || !record.pod || isDeleted(record) || record.failure || hasEnded(record.pod)) return true
  return isOverdue(record, now)
}

/** Its deadline has passed, and its record does not say so yet. */
export const isOverdue = (record: PodRecord, now: number) => now >= (deadlineOf(record) ?? Infinity)

/** When its time is over; what is on its way out or has ended has all the time it needs. */
export function deadlineOf(record: PodRecord): number | undefined {
  const { pod, gone, failure, ended } = record
  const { activeDeadlineSeconds: limit } = pod?.spec ?? {}
  const { startTime: started } = pod?.status ?? {}
  if (limit === undefined || started === undefined) return undefined
  if (gone || failure || ended || isDeleted(record) || hasEnded(pod!)) return undefined
  return Date.parse(started) + limit * 1000
}

/**
 * The volumes of a pod that runs or may run. Those of a pod whose containers still run are protected, even if the pod was on
 * its way out when the agent first heard of it (KP-2).
 */
export function wantsVolumes(record: PodRecord, now: number): boolean {
  if (!record.pod || record.gone || record.ended) return false
  return !isTerminating(record, now) || (record.volumes === 'none' && runs(record))
}

/** Its volumes were asked for, or it wants none. Before that nothing may be undone: they would look like nobody's. */
export function isTaken(record: PodRecord, now: number): boolean {
  return record.source === undefined || record.volumes !== 'none' || !wantsVolumes(record, now)
}

/** What the node itself needs comes from a manifest, or has one of the two highest classes of priority. */
export const isEvictable = ({ pod, source }: PodRecord) =>
  source === 'api' && (pod?.spec?.priority ?? 0) < criticalPriority
const criticalPriority = 2_000_000_000

/** What its deletion says, else its spec; a pod of which only containers are left has the grace they remember. */
export function graceOf({ pod, gone, containers, failure }: PodRecord): number {
  // It takes what others need, and every second it may take more.
  if (failure?.reason === 'Evicted') return 1_000
  if (!pod) return Math.max(1_000, ...Array.from(containers.values(), ({ record }) => record?.graceMs ?? 0))
  const seconds = pod.metadata.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 30
  return Math.max(seconds, gone ? 1 : 0) * 1000
}
