// What must the driver be asked for a VolumeSnapshotContent? Make, find or delete a snapshot, or nothing. Pure
// (SIDE-46 … SIDE-48).
import { finalizers } from '../../api/annotations.ts'
import type { VolumeSnapshotContent } from '../../api/generated/types.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'
import { beingCreated, beingDeleted } from './snapshot-names.ts'

export interface SnapshotFacts {
  readonly content: VolumeSnapshotContent
  readonly driver: string
  /** The driver has ListSnapshots. */
  readonly canList: boolean
}

export type SnapshotPlan =
  | { readonly kind: 'nothing' }
  /** CreateSnapshot; `isMarked` when an earlier call may have made it. */
  | { readonly kind: 'create'; readonly isMarked: boolean }
  /** Made elsewhere: the driver tells about it. */
  | { readonly kind: 'find'; readonly handle: string }
  /** Made elsewhere, and the driver cannot tell: taken to be ready. */
  | { readonly kind: 'assumeReady'; readonly handle: string }
  /** Delete it, then let the content go. */
  | { readonly kind: 'delete'; readonly handle: string | undefined }
  /** It may have been made: ask for it once more to learn its handle, delete it, then let the content go. */
  | { readonly kind: 'deleteUnknown' }
  /** The snapshot stays; only the content goes. */
  | { readonly kind: 'release' }

export function planSnapshot({ content, driver, canList }: SnapshotFacts): SnapshotPlan {
  if (content.spec.driver !== driver) return { kind: 'nothing' }
  if (isDeleting(content)) return planDeletion(content)
  if (content.status?.readyToUse === true) return { kind: 'nothing' }
  const { volumeHandle, snapshotHandle: handle = '' } = content.spec.source
  if (volumeHandle) return { kind: 'create', isMarked: annotation(content, beingCreated) === 'yes' }
  return canList ? { kind: 'find', handle } : { kind: 'assumeReady', handle }
}

function planDeletion(content: VolumeSnapshotContent): SnapshotPlan {
  if (!hasFinalizer(content, finalizers.snapshotContentBound)) return { kind: 'nothing' }
  const isDelete = content.spec.deletionPolicy === 'Delete'
  const mayBeUnderWay = annotation(content, beingCreated) === 'yes'
  if (!isDelete && !mayBeUnderWay) return { kind: 'release' }
  // The binder marks the content when its snapshot goes; until then it is not ours to delete.
  if (isDelete && annotation(content, beingDeleted) !== 'yes' && !annotation(content, beingCreated))
    return { kind: 'nothing' }
  const handle = content.status?.snapshotHandle ?? content.spec.source.snapshotHandle
  return !handle && mayBeUnderWay ? { kind: 'deleteUnknown' } : { kind: 'delete', handle }
}
