// When may a driver that had no space left have some again? When something of it was deleted, or it says that it has more.
import { compareQuantities } from '../../api/quantity.ts'
import type { CSIStorageCapacity } from '../../api/generated/types.ts'
import type { Caches } from './fresh-view.ts'

export function onSpaceFreed(informers: Caches, driver: string, listener: () => void): Disposable {
  const stack = new DisposableStack()
  stack.use(
    informers
      .of('PersistentVolume')
      .subscribe(({ kind, previous }) => kind === 'removed' && previous.spec.csi?.driver === driver && listener()),
  )
  stack.use(
    informers
      .of('VolumeSnapshotContent')
      .subscribe(({ kind, previous }) => kind === 'removed' && previous.spec.driver === driver && listener()),
  )
  stack.use(
    informers
      .of('CSIStorageCapacity')
      .subscribe(({ kind, object, previous }) => kind === 'changed' && hasGrown(object, previous) && listener()),
  )
  return stack
}

const hasGrown = ({ capacity: now = '0' }: CSIStorageCapacity, { capacity: before = '0' }: CSIStorageCapacity) =>
  compareQuantities(now, before) > 0
