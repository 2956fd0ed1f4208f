// What is remembered of one pod while it is on this node, and what follows from that alone?
// Small answers about a pod's life that need no loop: is it to end, how long may it take, what is its latest container.
import { join } from 'node:path/posix'
import type { PodUid } from '../api/names.ts'
import type { Pod, PodVolumeHealth } from '../api/types.ts'
import { timestamp } from '../clock/clock.ts'
import type { Host } from '../host/host.ts'
import { cleanAllSubPaths } from '../host/subpaths.ts'
import { podDirectory } from '../volume/paths.ts'
import type { ContainerView } from './pod-plan.ts'
import type { StatusFacts } from './pod-status.ts'
import type { ContainerRecord, ProcessSettings } from './runtime/port.ts'
import type { SourceName } from './sources.ts'

export interface PodWork {
  readonly uid: PodUid
  readonly source: SourceName
  readonly seenAt: number
  pod: Pod | undefined
  /** The source no longer names it. */
  gone: boolean
  /** The source names it again, before it has ended. */
  returned: { readonly object: Pod; readonly source: SourceName } | undefined
  directories: boolean
  /** Aborted when the pod is to end: a start that waits for its turn is given up. */
  readonly starts: AbortController
  /** Its volumes are wanted, or it wants none any more. */
  taken: boolean
  volumesReady: boolean
  volumeWait: AbortController | undefined
  /** Containers are being started; volumes stay until that is over. */
  starting: Promise<void> | undefined
  readonly containers: Map<string, ContainerView>
  readonly earlier: Map<string, ContainerRecord>
  /** With what each container was started in this life of the agent: who asks it something needs the same. */
  readonly settings: Map<string, ProcessSettings>
  stopping: { graceMs: number } | undefined
  /** Containers (by id) whose preStop hook has been called. */
  readonly hooked: Set<string>
  /** Per container, the end of the latest pause before a restart that was told. */
  readonly pauses: Map<string, number>
  released: 'no' | 'unmounting' | 'clean'
  failure: { readonly reason: string; readonly message: string } | undefined
  ended: 'Succeeded' | 'Failed' | undefined
  volumeHealth: readonly PodVolumeHealth[]
}

/** A pod of which nothing is known yet. */
export function newWork(uid: PodUid, source: SourceName, seenAt: number): PodWork {
  return {
    uid,
    source,
    seenAt,
    pod: undefined,
    gone: false,
    directories: false,
    starts: new AbortController(),
    taken: false,
    volumesReady: false,
    volumeWait: undefined,
    starting: undefined,
    containers: new Map(),
    earlier: new Map(),
    settings: new Map(),
    stopping: undefined,
    hooked: new Set(),
    pauses: new Map(),
    released: 'no',
    failure: undefined,
    ended: undefined,
    volumeHealth: [],
    returned: undefined,
  }
}

/** What keeps the node from making room for a pod, or from cleaning up after it. */
export interface PodTrouble {
  readonly during: 'prepare' | 'release'
  /** When it was first met. */
  readonly since: number
  readonly error: unknown
}

export const noPod: Pod = { metadata: { name: '' }, spec: { containers: [] } }

export const isDeleted = ({ pod }: PodWork) => pod?.metadata.deletionTimestamp !== undefined
/** Its object is to go and stays for the sake of others: a finalizer. */
export const isHeldBack = ({ pod, gone, source }: PodWork) =>
  !gone && source === 'api' && (pod?.metadata.finalizers ?? []).length > 0
/** Whether it is ready is also for others to say, in its status. */
export const isGated = ({ spec }: Pod) => (spec?.readinessGates ?? []).length > 0
export const runs = ({ containers }: PodWork) => [...containers.values()].some(({ record }) => record && !record.exit)

/** Nothing starts any more: deleted, gone, ended according to the API, or over its time. */
export function isTerminating(work: PodWork, now: number): boolean {
  if (work.gone || !work.pod || isDeleted(work) || work.failure || hasEnded(work.pod)) return true
  return isOverdue(work, now)
}

/** Its time is over, and nobody has drawn the conclusion yet. */
export const isOverdue = (work: PodWork, now: number) => now >= (deadlineOf(work) ?? Infinity)

const hasEnded = ({ status }: Pod) => status?.phase === 'Succeeded' || status?.phase === 'Failed'

/** When its time is over; what is on its way out or has ended has all the time it needs. */
function deadlineOf(work: PodWork): number | undefined {
  const { pod, gone, failure, ended } = work
  const { activeDeadlineSeconds: limit } = pod?.spec ?? {}
  const { startTime: started } = pod?.status ?? {}
  if (limit === undefined || started === undefined) return undefined
  if (gone || failure || ended || isDeleted(work) || hasEnded(pod!)) return undefined
  return Date.parse(started) + limit * 1000
}

/** What the node itself needs comes from a manifest, or has one of the two highest classes of priority. */
export const isEvictable = ({ pod, source }: PodWork) =>
  source === 'api' && (pod?.spec?.priority ?? 0) < criticalPriority
const criticalPriority = 2_000_000_000

/** When the pod must be looked at again, if only because its time is over then. */
export function nextLook(work: PodWork, again: number | undefined): number | undefined {
  const deadline = deadlineOf(work)
  if (deadline === undefined) return again
  return again === undefined ? deadline : Math.min(again, deadline)
}

/** What was told, else what its spec says; a pod of which only containers are left has what they remember. */
export function graceOf({ pod, gone, containers, failure }: PodWork): number {
  // It takes what others need, and every second it may take more.
  if (failure?.reason === 'Evicted') return 1_000
  if (!pod) return Math.max(1_000, ...Array.from(containers.values(), ({ record }) => record?.graceMs ?? 0))
  const seconds = pod.metadata.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 30
  return Math.max(seconds, gone ? 1 : 0) * 1000
}

/** The latest start counts; what came before it is the container's last state. */
export function noteRecord(work: PodWork, record: ContainerRecord): void {
  const known = work.containers.get(record.name)?.record
  if (known && known.attempt > record.attempt) return
  if (known && known.attempt < record.attempt) work.earlier.set(record.name, known)
  if (known?.attempt === record.attempt && known.exit && !record.exit) return
  const health = known?.id === record.id && !record.exit ? work.containers.get(record.name)?.health : undefined
  work.containers.set(record.name, { record, ...(health ? { health } : {}) })
}

/** What a kubelet adds for its own use, and the downward API shows. */
export function withSource(pod: Pod, work: PodWork): Pod {
  const annotations = {
    ...pod.metadata.annotations,
    'kubernetes.io/config.seen': timestamp(work.seenAt),
    'kubernetes.io/config.source': 'api',
  }
  return { ...pod, metadata: { ...pod.metadata, annotations } }
}

export function statusFacts(hostAddress: string, work: PodWork, now: number): StatusFacts {
  const { containers, earlier, ended, failure, volumesReady, volumeHealth, seenAt } = work
  return {
    pod: work.pod ?? noPod,
    containers,
    earlier,
    ended,
    failure,
    volumesReady,
    volumeHealth,
    now,
    seenAt,
    address: hostAddress,
  }
}

/** LAYOUT-11: only empty directories go from where volumes were; nothing crosses a mount; a file there stops us. */
export async function removeDirectories(
  { host, root }: { readonly host: Host; readonly root: string },
  uid: PodUid,
  signal: AbortSignal,
): Promise<void> {
  const base = podDirectory(root, uid)
  if (!(await host.files.exists(base, signal))) return
  await cleanAllSubPaths(host, base, signal)
  for (const part of ['volumes', 'volumeDevices', 'volume-subpaths']) {
    const directory = join(base, part)
    if (await host.files.exists(directory, signal)) await host.files.removeEmptyTree(directory, signal)
  }
  await host.files.removeTree(base, signal)
}
