// What should be done for one pod now, and what does it wait for? Every decision about a pod, in one total function: directories,
// volumes, containers; and back again: containers stop, volumes go, directories go, then the object. It sees the record and a
// few facts only; the loop performs what it answers, in this order.
import type { Pod } from '../../api/generated/types.ts'
import type { PodUid } from '../../api/names.ts'
import type { ContainersPlan, HeldContainer } from './container-plan.ts'
import { planContainers } from './container-plan.ts'
import {
  deadlineOf,
  graceOf,
  hasFinalizers,
  isDeleted,
  isOverdue,
  isTerminating,
  wantsVolumes,
} from './pod-lifetime.ts'
import type { PodRecord } from './pod-record.ts'

export type PodAction =
  | { readonly kind: 'expire' | 'makeDirectories' | 'awaitVolumes' | 'stopAwaiting' | 'releaseVolumes' }
  | { readonly kind: 'wantVolumes'; readonly pod: Pod }
  | { readonly kind: 'end'; readonly phase: 'Succeeded' | 'Failed' }
  | { readonly kind: 'start'; readonly containers: ContainersPlan['start'] }
  | { readonly kind: 'stop'; readonly containers: readonly string[]; readonly graceMs: number }
  | { readonly kind: 'tellPause'; readonly container: string; readonly until: number }
  /** Directories, and what the runtime keeps of the pod. */
  | { readonly kind: 'removeRemains' }
  | { readonly kind: 'removeObject'; readonly pod: Pod }
  | { readonly kind: 'forget' }

interface PodWaiting {
  readonly reason: PodWaitReason
  /** The pod that is in the way. */
  readonly other?: PodUid
}

type PodWaitReason =
  /** Only the runtime knows of the pod: its source has not spoken yet. */
  | 'notNamed'
  | 'volumesNotReady'
  /** An earlier pod of the same name still runs. */
  | 'nameConflict'
  | 'containersStarting'
  | 'containersStopping'
  | 'volumesMounted'
  /** It has ended; its directories stay until its object is deleted. */
  | 'notDeleted'
  /** Its object was asked to go; its source still names it. */
  | 'objectExists'

export interface PodFacts {
  readonly now: number
  /** Does somebody wait already until the pod's volumes are mounted? */
  readonly awaitingVolumes: boolean
  /** An earlier pod of the same name whose containers still run. */
  readonly conflict: PodUid | undefined
}

export interface PodPlan {
  /** Only the last of them may take time: what comes after it would follow from an older record. */
  readonly actions: readonly PodAction[]
  readonly waiting: readonly PodWaiting[]
  /** Containers that are tried again only later. */
  readonly held: readonly HeldContainer[]
  /** When time alone changes the plan. */
  readonly again: number | undefined
}

/** What stands for a pod of which only disk or runtime know. */
const noPod: Pod = { metadata: { name: '' }, spec: { containers: [] } }

export function planPod(record: PodRecord, facts: PodFacts): PodPlan {
  if (record.source === undefined) return { ...nothing, waiting: [{ reason: 'notNamed' }] }
  if (isOverdue(record, facts.now)) return { ...nothing, actions: [{ kind: 'expire' }] }
  const terminating = isTerminating(record, facts.now)
  if (!terminating && !record.ended && record.directories === 'missing')
    return { ...nothing, actions: [{ kind: 'makeDirectories' }], again: deadlineOf(record) }
  const actions: PodAction[] = []
  const waiting: PodWaiting[] = []
  planVolumes(record, terminating, facts, actions, waiting)
  const containers = planContainers({
    pod: record.pod ?? noPod,
    containers: record.containers,
    volumesReady: record.volumesReady,
    terminating,
    now: facts.now,
  })
  if (containers.ended && !record.ended) actions.push({ kind: 'end', phase: containers.ended })
  planStarts(record, containers, facts, actions, waiting)
  planStops(record, containers, actions, waiting)
  if (containers.released) planRelease(record, actions, waiting)
  return { actions, waiting, held: containers.held, again: earliest(containers.again, deadlineOf(record)) }
}

const nothing: PodPlan = { actions: [], waiting: [], held: [], again: undefined }

function planVolumes(
  record: PodRecord,
  terminating: boolean,
  { now, awaitingVolumes }: PodFacts,
  actions: PodAction[],
  waiting: PodWaiting[],
): void {
  const { pod, volumesReady, volumesFor } = record
  if (pod && pod !== volumesFor && wantsVolumes(record, now)) actions.push({ kind: 'wantVolumes', pod })
  if (terminating || record.ended) {
    if (awaitingVolumes) actions.push({ kind: 'stopAwaiting' })
    return
  }
  if (volumesReady) return
  waiting.push({ reason: 'volumesNotReady' })
  if (!awaitingVolumes) actions.push({ kind: 'awaitVolumes' })
}

function planStarts(
  record: PodRecord,
  { start, held }: ContainersPlan,
  { now, conflict }: PodFacts,
  actions: PodAction[],
  waiting: PodWaiting[],
): void {
  if (start.length > 0 && conflict !== undefined) waiting.push({ reason: 'nameConflict', other: conflict })
  else if (start.length > 0 && !record.starting) actions.push({ kind: 'start', containers: start })
  for (const { container, kind, until } of held) {
    // A kubelet tells it at every look; here each pause is told once.
    if (kind === 'restart' && until > now && record.pausesTold.get(container) !== until)
      actions.push({ kind: 'tellPause', container, until })
  }
}

/** A stop that is under way is overtaken only by one with a shorter grace. */
function planStops(record: PodRecord, { stop }: ContainersPlan, actions: PodAction[], waiting: PodWaiting[]): void {
  if (stop.length === 0) return
  const graceMs = graceOf(record)
  if (record.stopping && record.stopping.graceMs <= graceMs) waiting.push({ reason: 'containersStopping' })
  else actions.push({ kind: 'stop', containers: stop, graceMs })
}

/** No container runs and none will. */
function planRelease(record: PodRecord, actions: PodAction[], waiting: PodWaiting[]): void {
  const { pod, volumes, gone } = record
  if (record.starting) waiting.push({ reason: 'containersStarting' })
  else if (volumes === 'releasing') waiting.push({ reason: 'volumesMounted' })
  else if (volumes !== 'gone') actions.push({ kind: 'releaseVolumes' })
  else if (!gone && !isDeleted(record)) waiting.push({ reason: 'notDeleted' })
  // Whoever keeps the object may also want what is on disk.
  else if (record.directories !== 'removed' && !hasFinalizers(record)) actions.push({ kind: 'removeRemains' })
  else if (gone || record.source !== 'api') actions.push({ kind: 'forget' })
  else if (pod && record.removalAskedFor !== pod) actions.push({ kind: 'removeObject', pod })
  else waiting.push({ reason: 'objectExists' })
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}
