// Which VolumeSnapshotClass does a snapshot get that names none? The default class of the driver of its volume (SIDE-45).
import { annotations } from './annotations.ts'
import { annotation } from './meta.ts'
import type { VolumeSnapshotClass } from './generated/types.ts'

/** The defaults of other drivers do not count: each driver may have its own. */
export function defaultSnapshotClass(
  classes: Iterable<VolumeSnapshotClass>,
  driver: string,
): VolumeSnapshotClass | undefined {
  for (const each of classes)
    if (each.driver === driver && annotation(each, annotations.isDefaultSnapshotClass) === 'true') return each
  return undefined
}
