// What does a node tell the history? Its operations, what its volumes wait for, and pods whose volumes cannot be resolved.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { ObjectReference, Pod } from '../../api/generated/types.ts'
import type { History, HistorySubject } from '../../client/history.ts'
import type { Clock } from '../../clock/clock.ts'
import { isFleeting, storyOf, tellingError } from '../../volume/operation-history.ts'
import type { OperationObserver, OperationProgress } from '../../volume/operation.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { HeldContainer } from '../pods/container-plan.ts'
import type { PodTrouble } from '../pods/pods.ts'
import type { ActualWorld } from '../volumes/actual.ts'
import type { DesiredWorld } from '../volumes/desired.ts'
import type { Waiting } from '../volumes/plan.ts'
import type { Unresolved } from '../volumes/want.ts'

export interface NodeHistory extends OperationObserver {
  onWaiting(volume: UniqueVolumeName, waiting: readonly Waiting[]): void
  /** What keeps volumes of the pod from being found; nothing means that all were. */
  onResolved(pod: Pod, errors: readonly Unresolved[]): void
  /** The node cannot make room for the pod, or clean up after it; nothing means that it could. */
  onTrouble(pod: Pod, trouble: PodTrouble | undefined): void
  /** Containers of the pod that are tried again only later; one that is not named any more has begun, or will not. */
  onHeld(pod: Pod, held: readonly HeldContainer[]): void
}

export interface NodeHistoryDeps {
  readonly history: History
  readonly node: NodeName
  readonly desired: Pick<DesiredWorld, 'items'>
  readonly actual: Pick<ActualWorld, 'items'>
  readonly clock: Pick<Clock, 'now'>
}

/** Asked again and again while a volume is not attached yet: only its failures are worth a record. */
const quietOperation = 'verify_controller_attached_volume'

export function createNodeHistory(deps: NodeHistoryDeps): NodeHistory {
  const { history, node, clock } = deps
  return {
    onOperation: (progress) => tellOperation(deps, progress),
    onWaiting(volume, waiting) {
      const listed = waiting.map(({ reason, pod, until, error }) => ({
        reason,
        node,
        ...(pod === undefined ? {} : { pod }),
        ...(until === undefined ? {} : { until }),
        ...(error === undefined ? {} : { message: error }),
      }))
      history.waits(aboutVolume(deps, 'wait', volume), listed)
    },
    onResolved(pod, errors) {
      const uid = pod.metadata.uid === undefined ? {} : { pod: pod.metadata.uid }
      history.waits(
        aboutPod(deps, 'resolve', pod),
        errors.map(({ reason, message }) => ({ reason, message, node, ...uid })),
      )
    },
    onTrouble(pod, trouble) {
      const about = aboutPod(deps, 'pod_sync', pod)
      if (!trouble) return history.recovered(about)
      const { during: step, since: startedAt, error } = trouble
      history.tell({ ...about, phase: 'Failed', step, startedAt, finishedAt: clock.now(), error: tellingError(error) })
    },
    onHeld: createHeldStory(deps),
  }
}

function tellOperation(deps: NodeHistoryDeps, progress: OperationProgress): void {
  if (isFleeting(progress)) return
  const [whole, part] = progress.key
  const story = storyOf(progress)
  const about = aboutVolume(deps, story.operation, whole as UniqueVolumeName, part) // keys are made from volumes only
  if (story.operation !== quietOperation || story.phase === 'Failed') deps.history.tell({ ...story, ...about })
  else if (story.phase === 'Succeeded') deps.history.recovered(about)
}

/** Since when which containers of a pod are held, and when each is tried next, as it was last told. */
function createHeldStory(deps: NodeHistoryDeps): NodeHistory['onHeld'] {
  const { history, clock } = deps
  const told = new Map<string, ReadonlyMap<string, { readonly since: number; readonly until: number }>>()
  return (pod, held) => {
    const { uid = '' } = pod.metadata
    const before = told.get(uid)
    if (!before && held.length === 0) return
    const since = (container: string) => before?.get(container)?.since ?? clock.now()
    const after = new Map(held.map(({ container, until }) => [container, { until, since: since(container) }]))
    if (after.size > 0) told.set(uid, after)
    else told.delete(uid)
    for (const name of before?.keys() ?? []) if (!after.has(name)) history.recovered(aboutContainer(deps, pod, name))
    for (const { container, message, code, until: nextTry } of held) {
      if (before?.get(container)?.until === nextTry) continue
      const times = { startedAt: since(container), finishedAt: clock.now(), nextTry }
      const about = aboutContainer(deps, pod, container)
      history.tell({
        ...about,
        phase: 'Failed',
        step: container,
        ...times,
        error: { message, ...(code === undefined ? {} : { code }) },
      })
    }
  }
}

const actorOf = ({ node }: NodeHistoryDeps) => `node ${node}`

function aboutVolume(
  deps: NodeHistoryDeps,
  operation: string,
  volume: UniqueVolumeName,
  part?: string,
): HistorySubject {
  return {
    actor: actorOf(deps),
    operation,
    key: part === undefined ? volume : `${volume} ${part}`,
    volume,
    node: deps.node,
    ...(part === undefined ? {} : { pod: part }),
    objects: concerned(deps, volume, part),
  }
}

function concerned(
  { desired, actual }: NodeHistoryDeps,
  volume: UniqueVolumeName,
  part: string | undefined,
): readonly ObjectReference[] {
  const wanted = [...(desired.items.get(volume)?.pods.values() ?? [])]
  const spec = wanted[0]?.spec ?? actual.items.get(volume)?.spec
  const mounts = wanted.filter(({ uid }) => part === undefined || uid === part)
  return [...volumeReference(spec), ...mounts.slice(0, mostPods).map(({ pod }) => podReference(pod))]
}

function aboutPod(deps: NodeHistoryDeps, operation: string, pod: Pod): HistorySubject {
  const { uid = '' } = pod.metadata
  return { actor: actorOf(deps), operation, key: uid, node: deps.node, pod: uid, objects: [podReference(pod)] }
}

function aboutContainer(deps: NodeHistoryDeps, pod: Pod, container: string): HistorySubject {
  const about = aboutPod(deps, 'container_start', pod)
  return { ...about, key: `${about.key} ${container}` }
}

const mostPods = 20

function volumeReference(spec: VolumeSpec | undefined): readonly ObjectReference[] {
  return spec?.from === 'persistentVolume' ? [{ kind: 'PersistentVolume', name: spec.name }] : []
}

function podReference({ metadata }: Pod): ObjectReference {
  const { name, namespace, uid } = metadata
  return {
    kind: 'Pod',
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(uid === undefined ? {} : { uid }),
  }
}
