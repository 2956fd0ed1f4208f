// What does a node tell the history? Its operations, what its volumes wait for, and pods whose volumes cannot be resolved.
import type { NodeName, UniqueVolumeName } from '../api/names.ts'
import type { ObjectReference, Pod } from '../api/types.ts'
import type { History, HistorySubject } from '../client/history.ts'
import type { Clock } from '../clock/clock.ts'
import { isFleeting, storyOf, tellingError } from '../volume/operation-history.ts'
import type { OperationObserver } from '../volume/operation.ts'
import type { VolumeSpec } from '../volume/spec.ts'
import type { HeldContainer } from './pod-plan.ts'
import type { PodTrouble } from './pod-work.ts'
import type { ActualWorld } from './volumes/actual.ts'
import type { DesiredWorld } from './volumes/desired.ts'
import type { Waiting } from './volumes/plan.ts'
import type { Unresolved } from './volumes/populate.ts'

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

export function createNodeHistory({ history, node, desired, actual, clock }: NodeHistoryDeps): NodeHistory {
  const actor = `node ${node}`
  const concerned = (volume: UniqueVolumeName, part: string | undefined): readonly ObjectReference[] => {
    const wish = desired.items.get(volume)
    const spec = [...(wish?.pods.values() ?? [])][0]?.spec ?? actual.items.get(volume)?.spec
    const mounts = [...(wish?.pods.values() ?? [])].filter(({ uid }) => part === undefined || uid === part)
    return [...volumeReference(spec), ...mounts.slice(0, mostPods).map(({ pod }) => podReference(pod))]
  }
  const subject = (operation: string, volume: UniqueVolumeName, part?: string): HistorySubject => ({
    actor,
    operation,
    key: part === undefined ? volume : `${volume} ${part}`,
    volume,
    node,
    ...(part === undefined ? {} : { pod: part }),
    objects: concerned(volume, part),
  })
  const ofPod = (operation: string, pod: Pod): HistorySubject => {
    const { uid = '' } = pod.metadata
    return { actor, operation, key: uid, node, pod: uid, objects: [podReference(pod)] }
  }
  const ofContainer = (pod: Pod, container: string): HistorySubject => {
    const about = ofPod('container_start', pod)
    return { ...about, key: `${about.key} ${container}` }
  }
  /** Pod → container → since when it is held and when it is tried next, as told. */
  const heldBefore = new Map<string, ReadonlyMap<string, { readonly since: number; readonly until: number }>>()
  return {
    onOperation(progress) {
      if (isFleeting(progress)) return
      const [whole, part] = progress.key
      const story = storyOf(progress)
      const about = subject(story.operation, whole as UniqueVolumeName, part) // keys are made from volumes only
      if (story.operation === quietOperation && story.phase !== 'Failed') {
        if (story.phase === 'Succeeded') history.recovered(about)
        return
      }
      history.tell({ ...story, ...about })
    },
    onWaiting(volume, waiting) {
      const listed = waiting.map(({ reason, pod, until, error }) => ({
        reason,
        node,
        ...(pod === undefined ? {} : { pod }),
        ...(until === undefined ? {} : { until }),
        ...(error === undefined ? {} : { message: error }),
      }))
      history.waits(subject('wait', volume), listed)
    },
    onResolved(pod, errors) {
      const uid = pod.metadata.uid === undefined ? {} : { pod: pod.metadata.uid }
      history.waits(
        ofPod('resolve', pod),
        errors.map(({ reason, message }) => ({ reason, message, node, ...uid })),
      )
    },
    onTrouble(pod, trouble) {
      const about = ofPod('pod_sync', pod)
      if (!trouble) return history.recovered(about)
      const { during: step, since: startedAt, error } = trouble
      history.tell({ ...about, phase: 'Failed', step, startedAt, finishedAt: clock.now(), error: tellingError(error) })
    },
    onHeld(pod, held) {
      const { uid = '' } = pod.metadata
      const before = heldBefore.get(uid)
      if (!before && held.length === 0) return
      const since = (container: string) => before?.get(container)?.since ?? clock.now()
      const after = new Map(held.map(({ container, until }) => [container, { until, since: since(container) }]))
      if (after.size > 0) heldBefore.set(uid, after)
      else heldBefore.delete(uid)
      for (const name of before?.keys() ?? []) if (!after.has(name)) history.recovered(ofContainer(pod, name))
      for (const { container, message, until: nextTry } of held) {
        if (before?.get(container)?.until === nextTry) continue
        const times = { startedAt: since(container), finishedAt: clock.now(), nextTry }
        history.tell({ ...ofContainer(pod, container), phase: 'Failed', step: container, ...times, error: { message } })
      }
    },
  }
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
