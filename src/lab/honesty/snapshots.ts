// Does the driver make and remove snapshots as it says?
import { timestampMs } from '@bufbuild/protobuf/wkt'
import type { Check } from '../check.ts'
import { answered, must, refused } from '../finding.ts'
import { askSnapshot, createSnapshot, someVolume } from '../scene.ts'

const honesty = {
  suite: 'honesty',
  needs: { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] },
} as const

export const snapshotChecks: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/create-snapshot/answer',
    title: 'a new snapshot has an id, its source and a time',
    call: 'CreateSnapshot',
    says: 'snapshot_id, source_volume_id and creation_time are REQUIRED; size_bytes MUST NOT be negative',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const snapshot = await createSnapshot(lab, 'snapshot', volumeId)
      must(snapshot.snapshotId !== '', 'CreateSnapshot answered OK without a snapshot id')
      const bytes = Buffer.byteLength(snapshot.snapshotId)
      must(bytes <= 128, `the snapshot id is ${bytes} bytes long; 128 are allowed`)
      must(
        snapshot.sourceVolumeId === volumeId,
        `a snapshot of ${volumeId} says that it is of ${snapshot.sourceVolumeId || 'no volume'}`,
      )
      must(snapshot.sizeBytes >= 0n, `the snapshot has ${snapshot.sizeBytes} bytes`)
      const time = snapshot.creationTime === undefined ? 0 : timestampMs(snapshot.creationTime)
      must(time > 0, 'the snapshot has no creation time')
    },
  },
  {
    ...honesty,
    id: 'honesty/create-snapshot/twice',
    title: 'CreateSnapshot twice gives one snapshot',
    call: 'CreateSnapshot',
    says: 'this operation MUST be idempotent',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const first = await createSnapshot(lab, 'snapshot', volumeId)
      const again = await answered('CreateSnapshot again', askSnapshot(lab, lab.named('snapshot'), volumeId))
      must(
        first.snapshotId === again.snapshotId,
        `the same request gave two snapshots: ${first.snapshotId} and ${again.snapshotId}`,
      )
    },
  },
  {
    ...honesty,
    id: 'honesty/create-snapshot/other-source',
    title: 'a name that is taken by a snapshot of another volume is refused',
    call: 'CreateSnapshot',
    says: 'a snapshot of that name of another volume is answered with ALREADY_EXISTS',
    async run(lab) {
      const [one, two] = [await someVolume(lab, 'one'), await someVolume(lab, 'two')]
      await createSnapshot(lab, 'snapshot', one.volumeId)
      const other = askSnapshot(lab, lab.named('snapshot'), two.volumeId)
      await refused('CreateSnapshot of another volume under a taken name', other, 'ALREADY_EXISTS')
    },
  },
  {
    ...honesty,
    id: 'honesty/create-snapshot/long-name',
    title: 'a snapshot may have a name of 128 bytes',
    call: 'CreateSnapshot',
    says: 'name is a string of at most 128 bytes',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const name = lab.named('long').padEnd(128, 'x')
      await answered('CreateSnapshot with a name of 128 bytes', askSnapshot(lab, name, volumeId))
    },
  },
  {
    ...honesty,
    id: 'honesty/delete-snapshot/unknown-snapshot',
    title: 'deleting a snapshot that does not exist succeeds',
    call: 'DeleteSnapshot',
    says: 'this operation MUST be idempotent: a snapshot that does not exist is answered with 0 OK',
    async run(lab) {
      const asked = lab.controller.deleteSnapshot({ snapshotId: lab.named('no-such-id') })
      await answered('DeleteSnapshot of a snapshot that does not exist', asked)
    },
  },
  {
    ...honesty,
    id: 'honesty/delete-snapshot/twice',
    title: 'DeleteSnapshot twice succeeds twice',
    call: 'DeleteSnapshot',
    says: 'this operation MUST be idempotent',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const { snapshotId } = await createSnapshot(lab, 'snapshot', volumeId)
      await answered('DeleteSnapshot', lab.controller.deleteSnapshot({ snapshotId }))
      await answered('DeleteSnapshot again', lab.controller.deleteSnapshot({ snapshotId }))
    },
  },
  {
    ...honesty,
    needs: { controller: [...honesty.needs.controller, 'LIST_SNAPSHOTS'] },
    id: 'honesty/delete-snapshot/gone',
    title: 'a deleted snapshot is not listed any longer',
    call: 'DeleteSnapshot',
    says: 'after 0 OK the snapshot does not exist',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const { snapshotId } = await createSnapshot(lab, 'snapshot', volumeId)
      await answered('DeleteSnapshot', lab.controller.deleteSnapshot({ snapshotId }))
      const { entries } = await answered('ListSnapshots', lab.controller.listSnapshots({}))
      const isListed = entries.some(({ snapshot }) => snapshot?.snapshotId === snapshotId)
      must(!isListed, `${snapshotId} was deleted and is still listed`)
    },
  },
]
