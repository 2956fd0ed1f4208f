// How are snapshots cut, listed and removed? The snapshot calls of the Controller service; same rules as volumes:
// the record first, the storage after it, ids from names.
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type { Controller } from '../generated/csi_pb.ts'
import type { UnaryHandlers } from '../service.ts'
import type { SnapshotRecord } from './backend.ts'
import { fail, pageOf, requireText } from './checks.ts'
import { hashedId, requireVolume } from './controller.ts'
import type { KitDeps } from './driver.ts'
import { answered, orUndo } from './undo.ts'

type Handlers = Pick<
  UnaryHandlers<typeof Controller>,
  'createSnapshot' | 'deleteSnapshot' | 'listSnapshots' | 'getSnapshot'
>

export function snapshotHandlers(deps: KitDeps): Handlers {
  const { records, storage, exclusive, clock } = deps
  return {
    createSnapshot(request, signal) {
      requireText(request.name, 'name')
      requireText(request.sourceVolumeId, 'source volume id')
      const id = hashedId('snap', request.name)
      return exclusive(id, () =>
        exclusive(request.sourceVolumeId, () =>
          answered(async () => {
            const present = await records.snapshot(id, signal)
            if (present && present.sourceVolumeId !== request.sourceVolumeId) {
              throw fail('ALREADY_EXISTS', `snapshot ${request.name} exists for another volume`)
            }
            const source = await requireVolume(deps, request.sourceVolumeId, signal)
            const snapshot: SnapshotRecord = present ?? {
              id,
              name: request.name,
              sourceVolumeId: source.id,
              sizeBytes: source.capacityBytes,
              createdMs: clock.now(),
            }
            const cut = async () => {
              if (!present) await records.putSnapshot(snapshot, signal)
              await storage.snapshot(snapshot, source, signal)
            }
            if (present && (await storage.snapshotExists(present, signal))) await cut()
            else await orUndo(clock, cut, (undoing) => removeSnapshot(deps, snapshot, undoing))
            return { snapshot: message(snapshot) }
          }),
        ),
      )
    },
    deleteSnapshot(request, signal) {
      requireText(request.snapshotId, 'snapshot id')
      return exclusive(request.snapshotId, async () => {
        const snapshot = await records.snapshot(request.snapshotId, signal)
        if (snapshot) await removeSnapshot(deps, snapshot, signal)
        else await records.removeSnapshot(request.snapshotId, signal)
        return {}
      })
    },
    async getSnapshot(request, signal) {
      requireText(request.snapshotId, 'snapshot id')
      const snapshot = await records.snapshot(request.snapshotId, signal)
      if (!snapshot) throw fail('NOT_FOUND', `snapshot ${request.snapshotId} does not exist`)
      return { snapshot: message(snapshot) }
    },
    async listSnapshots(request, signal) {
      const all = await records.snapshots(signal)
      const chosen = all.filter(
        ({ id, sourceVolumeId }) =>
          (request.snapshotId === '' || request.snapshotId === id) &&
          (request.sourceVolumeId === '' || request.sourceVolumeId === sourceVolumeId),
      )
      const { page, nextToken } = pageOf(chosen, request.maxEntries, request.startingToken)
      return { entries: page.map((snapshot) => ({ snapshot: message(snapshot) })), nextToken }
    },
  }
}

async function removeSnapshot(
  { storage, records }: KitDeps,
  snapshot: SnapshotRecord,
  signal: AbortSignal,
): Promise<void> {
  await storage.removeSnapshot(snapshot, signal)
  await records.removeSnapshot(snapshot.id, signal)
}

function message(snapshot: SnapshotRecord) {
  return {
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.sourceVolumeId,
    sizeBytes: snapshot.sizeBytes,
    creationTime: timestampFromMs(snapshot.createdMs),
    readyToUse: true,
  }
}
