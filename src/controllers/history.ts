// What do the controllers tell the history? Changes that a rule made, what objects wait for, attaching and detaching.
import type { UniqueVolumeName } from '../api/names.ts'
import type { ObjectReference } from '../api/types.ts'
import type { History, HistorySubject } from '../client/history.ts'
import type { Clock } from '../clock/clock.ts'
import { isFleeting, storyOf } from '../volume/operation-history.ts'
import type { OperationObserver } from '../volume/operation.ts'
import type { ActualWorld } from './attachment/actual.ts'
import type { DesiredWorld } from './attachment/desired.ts'
import type { AttachmentWaiting } from './attachment/plan.ts'
import type { Transition, Waiting } from './binding/waiting.ts'

export interface ControllerHistory {
  onTransition(transition: Transition): void
  onWaiting(controller: string, object: string, waiting: readonly Waiting[]): void
}

/** The other half of a pair's story: the claim's line tells it. */
const toldByPartner: ReadonlySet<string> = new Set(['point to claim', 'point to volume', 'phase Pending'])

const operationNames: Readonly<Record<string, string>> = {
  binding: 'bind',
  expansion: 'expand',
  protection: 'protect',
  ephemeral: 'claim',
  placement: 'place',
}

export function createControllerHistory(history: History, clock: Clock): ControllerHistory {
  return {
    onTransition({ controller, object, what }) {
      const reference = referenceOf(object)
      if (toldByPartner.has(what) || (what === 'phase Bound' && reference.kind === 'PersistentVolume')) return
      const now = clock.now()
      const operation = operationNames[controller] ?? controller
      const about = { actor: controller, operation, key: object, objects: [reference] }
      history.tell({ ...about, phase: 'Succeeded', step: what, startedAt: now, finishedAt: now })
    },
    onWaiting(controller, object, waiting) {
      history.waits(
        { actor: controller, operation: 'wait', key: object, objects: [referenceOf(object)] },
        waiting.map(({ reason, message, until }) => ({
          reason,
          ...(message === undefined ? {} : { message }),
          ...(until === undefined ? {} : { until }),
        })),
      )
    },
  }
}

export interface AttachmentHistory extends OperationObserver {
  onWaiting(volume: UniqueVolumeName, waiting: readonly AttachmentWaiting[]): void
}

export interface AttachmentHistoryDeps {
  readonly history: History
  readonly desired: Pick<DesiredWorld, 'items'>
  readonly actual: Pick<ActualWorld, 'items'>
}

const actor = 'attachment'
const audit = 'verify_volumes_are_attached_per_node'

export function createAttachmentHistory({ history, desired, actual }: AttachmentHistoryDeps): AttachmentHistory {
  const subject = (operation: string, volume: UniqueVolumeName, part?: string): HistorySubject => {
    const wish = desired.items.get(volume)
    const identity = actual.items.get(volume)?.identity
    const spec = wish?.spec ?? (identity?.kind === 'known' ? identity.spec : undefined)
    const pods = [...(wish?.nodes.values() ?? [])].flatMap((each) => [...each.pods.values()]).slice(0, 20)
    return {
      actor,
      operation,
      key: part === undefined ? volume : `${volume} ${part}`,
      volume,
      ...(part === undefined ? {} : { node: part }),
      objects: [
        ...(spec?.from === 'persistentVolume' ? [{ kind: 'PersistentVolume', name: spec.name }] : []),
        ...pods.map(({ namespace, name, uid }) => ({ kind: 'Pod', namespace, name, uid })),
      ],
    }
  }
  return {
    onOperation(progress) {
      if (progress.operation === audit || isFleeting(progress)) return
      const [whole, part] = progress.key
      history.tell({
        ...storyOf(progress),
        ...subject(progress.operation, whole as UniqueVolumeName, part), // keys are made from volumes only
      })
    },
    onWaiting(volume, waiting) {
      const listed = waiting.map(({ reason, node, holder, until, detail }) => ({
        reason,
        node,
        // The holder has no field of its own in the record; the reasons that have one carry nothing else.
        ...(holder === undefined ? (detail === undefined ? {} : { message: detail }) : { message: holder }),
        ...(until === undefined ? {} : { until }),
      }))
      history.waits(subject('wait', volume), listed)
    },
  }
}

function referenceOf(object: string): ObjectReference {
  const afterKind = object.indexOf('/')
  const kind = object.slice(0, afterKind)
  const afterNamespace = object.indexOf('/', afterKind + 1)
  if (afterNamespace === -1) return { kind, name: object.slice(afterKind + 1) }
  return { kind, namespace: object.slice(afterKind + 1, afterNamespace), name: object.slice(afterNamespace + 1) }
}
