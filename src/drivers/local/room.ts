// How much may still be promised? The disk below is asked each time: others fill it too.
import type { Records, Room } from '../../csi/kit/backend.ts'
import { roomFor } from '../../csi/kit/space.ts'
import type { Host } from '../../host/host.ts'
import type { SpaceGuard } from './guard.ts'
import { isThick } from './parameters.ts'
import type { DiskLayout } from './records.ts'

interface RoomDeps {
  readonly host: Pick<Host, 'filesystems'>
  readonly layout: DiskLayout
  readonly records: Records
  readonly guard: Pick<SpaceGuard, 'view'>
  readonly overcommit: number
}

export async function roomOnDisk(deps: RoomDeps, kind: 'thin' | 'thick', signal: AbortSignal): Promise<Room> {
  const { host, layout, records, guard, overcommit } = deps
  const { capacityBytes, availableBytes } = await host.filesystems.usage(layout.volumes, signal)
  const { usedBytes: inVolumes } = await host.filesystems.treeUsage(layout.volumes, signal)
  // Snapshots never grow: what they hold is taken, and nothing more was promised. Blocks that they share with their
  // volume (reflink) are counted twice; no interface tells them apart cheaply.
  const { usedBytes: inSnapshots } = await host.filesystems.treeUsage(layout.snapshots, signal)
  const volumes = await records.volumes(signal)
  const sum = (thick: boolean) =>
    volumes.filter((each) => isThick(each) === thick).reduce((total, each) => total + each.capacityBytes, 0n)
  const space = { capacityBytes, availableBytes, heldBytes: inVolumes + inSnapshots }
  const promised = { thinBytes: sum(false), thickBytes: sum(true) + inSnapshots }
  // However much may be promised: on a full disk nothing new is made.
  const { level } = await guard.view(signal)
  const bytes = level === 'out' ? 0n : roomFor(kind, space, promised, overcommit)
  const how = kind === 'thin' ? `with overcommit ${overcommit}` : 'for thick volumes'
  return { bytes, limit: `on the disk of ${layout.volumes} ${how}` }
}
