// Who does what the plan of a pod says? Each action is carried out here, and its outcome becomes an event of the pod's record.
// Waits and starts run beside the pod loop: one that hangs on a dead volume is only its own pod's trouble.
import type { PodUid } from '../../api/names.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { eventReasons } from '../../volume/messages.ts'
import type { ContainerLifeDeps } from '../containers/container-life.ts'
import { startContainer, stopContainers } from '../containers/container-life.ts'
import { fullNameOf } from './container-plan.ts'
import { makeDirectories, removeDirectories } from './pod-directories.ts'
import type { PodAction } from './pod-plan.ts'
import type { PodRecord } from './pod-record.ts'
import type { SourceName } from './sources.ts'
import type { StatusWriter } from './status-writer.ts'
import { waitForVolumes } from './volume-wait.ts'

export interface PodPerformer {
  /** What takes time answers with a promise; the loop tries again what fails. */
  perform(record: PodRecord, action: PodAction, signal: AbortSignal): Promise<void> | undefined
  isAwaitingVolumes(pod: PodUid): boolean
  /** A start that waits for its turn is given up: the pod is to end. */
  abandonStarts(pod: PodUid): void
  /** Resolves when no start is under way. */
  idle(): Promise<void>
}

export interface PodPerformerDeps extends ContainerLifeDeps {
  readonly status: Pick<StatusWriter, 'removeObject'>
}

interface Performing {
  readonly deps: PodPerformerDeps
  /** Waits for volumes, by pod. */
  readonly waits: Map<PodUid, AbortController>
  readonly starts: Map<PodUid, { readonly abandoned: AbortController; readonly done: Promise<void> }>
}

export function createPodPerformer(deps: PodPerformerDeps): PodPerformer {
  const performing: Performing = { deps, waits: new Map(), starts: new Map() }
  const { waits, starts } = performing
  return {
    perform: (record, action, signal) => perform(performing, record, action, signal),
    isAwaitingVolumes: (uid) => waits.has(uid),
    abandonStarts: (uid) => starts.get(uid)?.abandoned.abort(new Error('the pod is to end')),
    async idle() {
      await Promise.all([...starts.values()].map(({ done }) => done))
    },
  }
}

function perform(
  performing: Performing,
  record: PodRecord,
  action: PodAction,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { deps, waits } = performing
  const { pods, tell } = deps
  const { uid } = record
  switch (action.kind) {
    case 'expire':
      return void expire(deps, uid)
    case 'makeDirectories':
      return prepareDirectories(deps, record, signal)
    case 'wantVolumes':
      return void pods.apply({ kind: 'volumesWanted', uid, pod: action.pod })
    case 'awaitVolumes':
      return void awaitVolumes(performing, uid)
    case 'stopAwaiting':
      waits.get(uid)?.abort(new Error('the pod is to end'))
      return void waits.delete(uid)
    case 'end':
      return void pods.apply({ kind: 'ended', uid, phase: action.phase })
    case 'start':
      return void start(performing, uid, action.containers)
    case 'tellPause': {
      pods.apply({ kind: 'pauseTold', uid, container: action.container, until: action.until })
      const message = `Back-off restarting failed container ${action.container} in pod ${fullNameOf(record.pod!)}`
      return void tell(uid, 'Warning', 'BackOff', message)
    }
    case 'stop':
      return void stopContainers(deps, uid, action.containers, action.graceMs)
    case 'releaseVolumes':
      return void releaseVolumes(deps, uid)
    case 'removeRemains':
      return removeRemains(deps, uid, signal)
    case 'removeObject':
      return removeObject(deps, uid, action.pod, signal)
    case 'forget':
      return void forget(deps, record)
    default:
      return action satisfies never
  }
}

function expire({ pods, tell }: PodPerformerDeps, uid: PodUid): void {
  const message = 'Pod was active on the node longer than the specified deadline'
  tell(uid, 'Normal', 'DeadlineExceeded', message)
  pods.apply({ kind: 'expired', uid, reason: 'DeadlineExceeded', message })
}

async function prepareDirectories(deps: PodPerformerDeps, { uid, pod }: PodRecord, signal: AbortSignal): Promise<void> {
  const { pods, tell } = deps
  try {
    await makeDirectories(deps, uid, signal)
  } catch (error) {
    // A full disk must not keep others from making room: this pod's volumes are safe once they are wanted.
    if (pod) pods.apply({ kind: 'volumesWanted', uid, pod })
    const text = errorText(error)
    if (!signal.aborted) tell(uid, 'Warning', 'Failed', `error making pod data directories: ${text}`)
    throw error
  }
  pods.apply({ kind: 'directoriesMade', uid })
}

async function awaitVolumes({ deps, waits }: Performing, uid: PodUid): Promise<void> {
  const stopped = new AbortController()
  waits.set(uid, stopped)
  const end = await waitForVolumes(deps, uid, AbortSignal.any([stopped.signal, deps.stopping]))
  if (waits.get(uid) === stopped) waits.delete(uid)
  if (end.kind === 'ready') deps.pods.apply({ kind: 'volumesReady', uid })
  if (end.kind !== 'exhausted') return
  // The pod can never start on this node (VM-5).
  const { text } = end
  deps.tell(uid, 'Warning', eventReasons.attachLimit, text)
  deps.pods.apply({ kind: 'failed', uid, reason: eventReasons.attachLimit, message: `Pod was rejected: ${text}` })
}

/** One after the other. */
function start({ deps, starts }: Performing, uid: PodUid, wanted: Extract<PodAction, { kind: 'start' }>['containers']) {
  const abandoned = new AbortController()
  const signal = AbortSignal.any([deps.stopping, abandoned.signal])
  deps.pods.apply({ kind: 'startsBegan', uid })
  const run = async () => {
    for (const { container, attempt } of wanted) {
      if (!signal.aborted) await startContainer(deps, uid, container, attempt, signal)
    }
    starts.delete(uid)
    deps.pods.apply({ kind: 'startsEnded', uid })
  }
  starts.set(uid, { abandoned, done: run() })
}

async function releaseVolumes({ pods, manager, stopping }: PodPerformerDeps, uid: PodUid): Promise<void> {
  pods.apply({ kind: 'volumesReleased', uid })
  try {
    await manager.unmounted(uid, stopping)
  } catch {
    return // only the agent's stop ends this wait early
  }
  pods.apply({ kind: 'volumesGone', uid })
}

async function removeRemains(deps: PodPerformerDeps, uid: PodUid, signal: AbortSignal): Promise<void> {
  await removeDirectories(deps, uid, signal)
  await deps.runtime.removePod(uid, signal)
  deps.pods.apply({ kind: 'directoriesRemoved', uid })
}

async function removeObject(
  { pods, status }: PodPerformerDeps,
  uid: PodUid,
  pod: NonNullable<PodRecord['pod']>,
  signal: AbortSignal,
): Promise<void> {
  await status.removeObject(uid, pod, signal)
  pods.apply({ kind: 'removalAsked', uid, pod })
}

/** Its source may have named it again meanwhile: a pod that was only found on disk came from nowhere. */
function forget({ pods, clock }: PodPerformerDeps, { uid, returned }: PodRecord): void {
  pods.apply({ kind: 'forgotten', uid })
  if (returned) pods.apply({ kind: 'named', uid, ...(returned satisfies { source: SourceName }), at: clock.now() })
}
