// Do snapshots and clones hold the data of their moment, and nothing later?
import { CsiError } from '../../csi/codes.ts'
import type { Volume } from '../../csi/generated/csi_pb.ts'
import type { Check, Needs } from '../check.ts'
import { answered, must } from '../finding.ts'
import type { Lab } from '../lab.ts'
import type { CreateVolume, Published } from '../scene.ts'
import { createSnapshot, createVolume, publish, someVolume, unpublish, volumeRequest } from '../scene.ts'
import { mustHoldPattern, writePattern } from './data.ts'

const life = { suite: 'life' } as const
const snapshots: Needs = { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'], mounts: true }
const readyMs = 60_000

/** A volume that holds the pattern, mounted nowhere. */
async function written(lab: Lab, word: string): Promise<Volume> {
  const volume = await someVolume(lab, word)
  const published = await publish(lab, volume, { word })
  await writePattern(lab, published.target, 'first')
  await unpublish(lab, published)
  return volume
}

/** A snapshot that can be restored; some storage needs time for it. */
async function readySnapshot(lab: Lab, word: string, volumeId: string): Promise<string> {
  const until = lab.clock.steady() + readyMs
  let snapshot = await createSnapshot(lab, word, volumeId)
  while (!snapshot.readyToUse) {
    must(lab.clock.steady() < until, `the snapshot is not ready after ${readyMs / 1_000} s`)
    await lab.clock.sleep(500, lab.signal)
    snapshot = await createSnapshot(lab, word, volumeId)
  }
  return snapshot.snapshotId
}

function fromSnapshot(lab: Lab, word: string, snapshotId: string): CreateVolume {
  const type = { case: 'snapshot' as const, value: { snapshotId } }
  return { ...volumeRequest(lab, word), volumeContentSource: { type } }
}

async function restored(lab: Lab, request: CreateVolume): Promise<Published> {
  const volume = await answered('CreateVolume from a snapshot', createVolume(lab, request))
  return publish(lab, volume, { word: 'restored' })
}

const snapshotChecks: readonly Check[] = [
  {
    ...life,
    id: 'life/snapshot/restored',
    title: 'a volume from a snapshot holds the data of that moment, and the source its own',
    call: 'CreateSnapshot',
    says: 'a snapshot is the volume at one point in time',
    needs: snapshots,
    async run(lab) {
      const source = await written(lab, 'source')
      const snapshotId = await readySnapshot(lab, 'snapshot', source.volumeId)
      const later = await publish(lab, source, { word: 'later' })
      await writePattern(lab, later.target, 'second')
      const { target } = await restored(lab, fromSnapshot(lab, 'restored', snapshotId))
      await mustHoldPattern(lab, target, 'first', 'in the volume from a snapshot')
      await mustHoldPattern(lab, later.target, 'second', 'in the source of a snapshot')
    },
  },
  {
    ...life,
    id: 'life/snapshot/larger',
    title: 'a snapshot can be restored to a larger volume',
    call: 'CreateVolume',
    says: 'capacity_range may ask for more than the snapshot has',
    needs: snapshots,
    async run(lab) {
      const source = await written(lab, 'source')
      const snapshotId = await readySnapshot(lab, 'snapshot', source.volumeId)
      const requiredBytes = lab.recipe.sizeBytes * 2n
      const request = { ...fromSnapshot(lab, 'restored', snapshotId), capacityRange: { requiredBytes } }
      const { attachment, target } = await restored(lab, request)
      await mustHoldPattern(lab, target, 'first', 'in the larger volume from a snapshot')
      const { capacityBytes } = attachment.volume
      must(
        capacityBytes === 0n || capacityBytes >= requiredBytes,
        `${requiredBytes} bytes required, ${capacityBytes} made`,
      )
    },
  },
  {
    ...life,
    id: 'life/snapshot/without-source',
    title: 'a snapshot outlives its source, or the source cannot be deleted',
    call: 'DeleteVolume',
    says: 'a volume with snapshots is deleted and they stay, or the answer is FAILED_PRECONDITION',
    needs: snapshots,
    async run(lab) {
      const { volumeId } = await written(lab, 'source')
      const snapshotId = await readySnapshot(lab, 'snapshot', volumeId)
      try {
        await lab.controller.deleteVolume({ volumeId, secrets: { ...lab.recipe.secrets } })
      } catch (error) {
        if (error instanceof CsiError && error.status === 'FAILED_PRECONDITION') return
        throw error
      }
      const { target } = await restored(lab, fromSnapshot(lab, 'restored', snapshotId))
      await mustHoldPattern(lab, target, 'first', 'in a snapshot whose source was deleted')
    },
  },
]

const cloneChecks: readonly Check[] = [
  {
    ...life,
    id: 'life/clone/own-data',
    title: 'a clone holds the data of its source, and both change on their own',
    call: 'CreateVolume',
    says: 'a volume made from a volume holds its data; CLONE_VOLUME',
    needs: { controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'], mounts: true },
    async run(lab) {
      const source = await written(lab, 'source')
      const type = { case: 'volume' as const, value: { volumeId: source.volumeId } }
      const request = { ...volumeRequest(lab, 'clone'), volumeContentSource: { type } }
      const clone = await answered('CreateVolume from a volume', createVolume(lab, request))
      const copy = await publish(lab, clone, { word: 'clone' })
      await mustHoldPattern(lab, copy.target, 'first', 'in a clone')
      await writePattern(lab, copy.target, 'second')
      const original = await publish(lab, source, { word: 'original' })
      await mustHoldPattern(lab, original.target, 'first', 'in the source of a clone that was written')
    },
  },
]

export const copyChecks: readonly Check[] = [...snapshotChecks, ...cloneChecks]
