// Does a volume keep its data? Mounted again, read-only, grown, among many others, and gone when it is deleted.
import { VolumeUsage_Unit } from '../../csi/generated/csi_pb.ts'
import type { Volume } from '../../csi/generated/csi_pb.ts'
import { HostError } from '../../host/host-error.ts'
import type { Check, Needs } from '../check.ts'
import { answered, Finding, must } from '../finding.ts'
import type { Lab } from '../lab.ts'
import type { Published } from '../scene.ts'
import { createVolume, growRequest, mountCapability, publish, someVolume, unpublish, volumeRequest } from '../scene.ts'
import { mustBeEmpty, mustHoldPattern, writePattern } from './data.ts'

const life = { suite: 'life' } as const
const mounting: Needs = { controller: ['CREATE_DELETE_VOLUME'], mounts: true }
const growing: Needs = { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'], mounts: true }

const keeping: readonly Check[] = [
  {
    ...life,
    id: 'life/data/new-is-empty',
    title: 'a new volume holds no data',
    call: 'CreateVolume',
    says: 'without a volume_content_source the new volume is empty',
    needs: mounting,
    async run(lab) {
      const { target } = await publish(lab, await someVolume(lab))
      await mustBeEmpty(lab, target, 'a new volume')
    },
  },
  {
    ...life,
    id: 'life/data/mounted-again',
    title: 'data is there when a volume is unpublished, unstaged and mounted again',
    call: 'NodeStageVolume',
    says: 'staging makes the volume available; what it holds stays',
    needs: mounting,
    async run(lab) {
      const volume = await volumeWithData(lab)
      const second = await publish(lab, volume, { word: 'again' })
      await mustHoldPattern(lab, second.target, 'first', 'after it was mounted again')
    },
  },
  {
    ...life,
    id: 'life/data/read-only',
    title: 'a volume that is published read-only can be read and not written',
    call: 'NodePublishVolume',
    says: 'readonly: the volume MUST be published in read-only mode',
    needs: mounting,
    async run(lab) {
      const volume = await volumeWithData(lab)
      const second = await publish(lab, volume, { word: 'reader', readonly: true })
      await mustHoldPattern(lab, second.target, 'first', 'when it is mounted read-only')
      await mustRefuseWrites(lab, second.target)
    },
  },
  {
    ...life,
    id: 'life/data/many',
    title: 'several volumes at once keep their own data each',
    call: 'NodePublishVolume',
    says: 'target_path shows the volume of volume_id',
    needs: mounting,
    async run(lab) {
      const words = ['one', 'two', 'three', 'four']
      const volumes: (readonly [string, Volume])[] = []
      for (const word of words) volumes.push([word, await someVolume(lab, word)])
      const mount = async ([word, volume]: readonly [string, Volume]) => {
        const published = await publish(lab, volume, { word })
        await writePattern(lab, published.target, word)
        return published
      }
      const all = await Promise.all(volumes.map(mount))
      for (const [index, word] of words.entries())
        await mustHoldPattern(lab, all[index]!.target, word, 'while four volumes are mounted')
    },
  },
  {
    ...life,
    id: 'life/data/deleted',
    title: 'a new volume with the name of a deleted one does not hold its data',
    call: 'DeleteVolume',
    says: 'after 0 OK the volume does not exist; a new one is empty',
    needs: mounting,
    async run(lab) {
      const volume = await volumeWithData(lab)
      const request = { volumeId: volume.volumeId, secrets: { ...lab.recipe.secrets } }
      await answered('DeleteVolume', lab.controller.deleteVolume(request))
      const next = await answered('CreateVolume', createVolume(lab, volumeRequest(lab, 'volume')))
      const { target } = await publish(lab, next, { word: 'next' })
      await mustBeEmpty(lab, target, 'a new volume with the name of a deleted one')
    },
  },
]

/** It was mounted, holds the pattern `first`, and is nowhere now. */
async function volumeWithData(lab: Lab): Promise<Volume> {
  const volume = await someVolume(lab)
  const first = await publish(lab, volume)
  await writePattern(lab, first.target, 'first')
  await unpublish(lab, first)
  return volume
}

async function mustRefuseWrites(lab: Lab, directory: string): Promise<void> {
  try {
    await lab.host.files.writeFile(`${directory}/written`, 'x', { mode: 0o644 }, lab.signal)
  } catch (error) {
    if (error instanceof HostError && error.code === 'EROFS') return
    throw error
  }
  throw new Finding('a volume that is published read-only can be written')
}

const growth: readonly Check[] = [
  {
    ...life,
    id: 'life/grow/unmounted',
    title: 'a volume grows while it is not mounted, and keeps its data',
    call: 'ControllerExpandVolume',
    says: 'the volume has the new size, and what it holds stays',
    needs: growing,
    async run(lab) {
      const volume = await someVolume(lab)
      const first = await publish(lab, volume)
      const before = await totalBytes(lab, first)
      await writePattern(lab, first.target, 'first')
      await unpublish(lab, first)
      const grown = await expand(lab, volume)
      const second = await publish(lab, volume, { word: 'again' })
      if (grown.nodeExpansionRequired) await expandOnNode(lab, second)
      await mustHoldPattern(lab, second.target, 'first', 'after it has grown')
      mustBeLarger(lab, before, await totalBytes(lab, second))
    },
  },
  {
    ...life,
    id: 'life/grow/mounted',
    title: 'a volume grows while it is mounted, and keeps its data',
    call: 'NodeExpandVolume',
    says: 'the volume has the new size, and what it holds stays',
    needs: { ...growing, onlineGrowth: true },
    async run(lab) {
      const volume = await someVolume(lab)
      const published = await publish(lab, volume)
      const before = await totalBytes(lab, published)
      await writePattern(lab, published.target, 'first')
      const grown = await expand(lab, volume)
      if (grown.nodeExpansionRequired) await expandOnNode(lab, published)
      await mustHoldPattern(lab, published.target, 'first', 'after it has grown')
      mustBeLarger(lab, before, await totalBytes(lab, published))
    },
  },
]

function expand(lab: Lab, { volumeId }: Volume) {
  return answered('ControllerExpandVolume', lab.controller.controllerExpandVolume(growRequest(lab, volumeId)))
}

async function expandOnNode(lab: Lab, { attachment, staging, target }: Published): Promise<void> {
  must(
    lab.facts.node.includes('EXPAND_VOLUME'),
    'node_expansion_required is answered, and the node does not claim EXPAND_VOLUME',
  )
  const capacityRange = { requiredBytes: lab.recipe.sizeBytes * 2n }
  const request = { volumeId: attachment.volume.volumeId, volumePath: target, stagingTargetPath: staging }
  await answered(
    'NodeExpandVolume',
    lab.node.nodeExpandVolume({ ...request, capacityRange, volumeCapability: mountCapability(lab) }),
  )
}

/** How large the mounted filesystem is, where the driver tells. */
async function totalBytes(lab: Lab, { attachment, staging, target }: Published): Promise<bigint | undefined> {
  if (!lab.facts.node.includes('GET_VOLUME_STATS')) return undefined
  const request = { volumeId: attachment.volume.volumeId, volumePath: target, stagingTargetPath: staging }
  const { usage } = await answered('NodeGetVolumeStats', lab.node.nodeGetVolumeStats(request))
  return usage.find(({ unit }) => unit === VolumeUsage_Unit.BYTES)?.total
}

/** Volumes that share a larger filesystem (directories of one disk) do not change its size. */
function mustBeLarger(lab: Lab, before: bigint | undefined, after: bigint | undefined): void {
  if (before === undefined || after === undefined || before > lab.recipe.sizeBytes * 2n) return
  must(
    after > before,
    `the filesystem had ${before} bytes and has ${after} after the volume has grown to twice its size`,
  )
}

export const dataChecks: readonly Check[] = [...keeping, ...growth]
