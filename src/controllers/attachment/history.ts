// What does the attachment controller tell the history? Attaching, detaching, and what a volume waits for.
import type { UniqueVolumeName } from '../../api/names.ts'
import type { History, HistorySubject } from '../../client/history.ts'
import { isFleeting, storyOf } from '../../volume/operation-history.ts'
import type { OperationObserver } from '../../volume/operation.ts'
import type { ActualWorld } from './actual.ts'
import type { DesiredWorld } from './desired.ts'
import type { AttachmentWaiting } from './plan.ts'

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
