// Does the node stage and publish as it says? What is answered is compared with what is mounted.
import { VolumeUsage_Unit } from '../../csi/generated/csi_pb.ts'
import type { Check, Needs } from '../check.ts'
import { answered, must, refused } from '../finding.ts'
import type { Lab } from '../lab.ts'
import { attach, isMounted, publish, publishRequest, someVolume, stage, stageRequest } from '../scene.ts'

const honesty = { suite: 'honesty' } as const
const publishing: Needs = { controller: ['CREATE_DELETE_VOLUME'], mounts: true }
const staging: Needs = { ...publishing, node: ['STAGE_UNSTAGE_VOLUME'] }

const stages: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/stage/twice',
    title: 'NodeStageVolume twice succeeds twice',
    call: 'NodeStageVolume',
    says: 'this operation MUST be idempotent',
    needs: staging,
    async run(lab) {
      const attachment = await attach(lab, await someVolume(lab))
      const path = await stage(lab, attachment)
      await answered('NodeStageVolume again', lab.node.nodeStageVolume(stageRequest(lab, attachment, path)))
    },
  },
  {
    ...honesty,
    id: 'honesty/unstage/twice',
    title: 'NodeUnstageVolume twice succeeds twice, and leaves nothing mounted',
    call: 'NodeUnstageVolume',
    says: 'this operation MUST be idempotent, and undoes NodeStageVolume',
    needs: staging,
    async run(lab) {
      const attachment = await attach(lab, await someVolume(lab))
      const stagingTargetPath = await stage(lab, attachment)
      const request = { volumeId: attachment.volume.volumeId, stagingTargetPath }
      await answered('NodeUnstageVolume', lab.node.nodeUnstageVolume(request))
      must(!(await isMounted(lab, stagingTargetPath)), 'NodeUnstageVolume answered OK, and the staging path is mounted')
      await answered('NodeUnstageVolume again', lab.node.nodeUnstageVolume(request))
    },
  },
  {
    ...honesty,
    id: 'honesty/publish/unstaged',
    title: 'a volume that is not staged is not published',
    call: 'NodePublishVolume',
    says: 'a plugin with STAGE_UNSTAGE_VOLUME answers FAILED_PRECONDITION without a staging path',
    needs: staging,
    async run(lab) {
      const attachment = await attach(lab, await someVolume(lab))
      const targetPath = `${await lab.directory()}/target`
      const { volumeId } = attachment.volume
      lab.undo(`NodeUnpublishVolume ${volumeId}`, (later) => later.node.nodeUnpublishVolume({ volumeId, targetPath }))
      const asked = lab.node.nodePublishVolume(publishRequest(lab, attachment, '', targetPath))
      await refused('NodePublishVolume without a staging path', asked, 'FAILED_PRECONDITION', 'INVALID_ARGUMENT')
    },
  },
]

const publishes: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/publish/mounted',
    title: 'what is published is mounted at the target path',
    call: 'NodePublishVolume',
    says: 'after 0 OK the volume is available at target_path',
    needs: publishing,
    async run(lab) {
      const { target } = await publish(lab, await someVolume(lab))
      must(await isMounted(lab, target), 'NodePublishVolume answered OK, and nothing is mounted at the target path')
    },
  },
  {
    ...honesty,
    id: 'honesty/publish/twice',
    title: 'NodePublishVolume twice succeeds twice, with one mount',
    call: 'NodePublishVolume',
    says: 'this operation MUST be idempotent',
    needs: publishing,
    async run(lab) {
      const { attachment, staging: path, target } = await publish(lab, await someVolume(lab))
      const request = publishRequest(lab, attachment, path, target)
      const before = await mountsAt(lab, target)
      await answered('NodePublishVolume again', lab.node.nodePublishVolume(request))
      const after = await mountsAt(lab, target)
      must(before === after, `NodePublishVolume again mounted the volume again: ${after} mounts at the target path`)
    },
  },
  {
    ...honesty,
    id: 'honesty/unpublish/gone',
    title: 'NodeUnpublishVolume unmounts the target path and removes it',
    call: 'NodeUnpublishVolume',
    says: 'the plugin MUST delete the file or directory that it made at target_path',
    needs: publishing,
    async run(lab) {
      const { attachment, target } = await publish(lab, await someVolume(lab))
      await unmount(lab, attachment.volume.volumeId, target)
      must(!(await isMounted(lab, target)), 'NodeUnpublishVolume answered OK, and the target path is mounted')
      const isThere = await lab.host.files.exists(target, lab.signal)
      must(!isThere, 'NodeUnpublishVolume answered OK, and the target path is still there')
    },
  },
  {
    ...honesty,
    id: 'honesty/unpublish/twice',
    title: 'NodeUnpublishVolume twice succeeds twice',
    call: 'NodeUnpublishVolume',
    says: 'this operation MUST be idempotent',
    needs: publishing,
    async run(lab) {
      const { attachment, target } = await publish(lab, await someVolume(lab))
      const { volumeId } = attachment.volume
      await unmount(lab, volumeId, target)
      await answered('NodeUnpublishVolume again', lab.node.nodeUnpublishVolume({ volumeId, targetPath: target }))
    },
  },
]

const uses: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/stats/answer',
    title: 'the usage of a published volume has a total, and no more is used than that',
    call: 'NodeGetVolumeStats',
    says: 'usage has total, used and available, none of them negative',
    needs: { ...publishing, node: ['GET_VOLUME_STATS'] },
    async run(lab) {
      const { attachment, staging: path, target } = await publish(lab, await someVolume(lab))
      const request = { volumeId: attachment.volume.volumeId, volumePath: target, stagingTargetPath: path }
      const { usage } = await answered('NodeGetVolumeStats', lab.node.nodeGetVolumeStats(request))
      const bytes = usage.find(({ unit }) => unit === VolumeUsage_Unit.BYTES)
      must(bytes !== undefined, 'NodeGetVolumeStats answered no usage in bytes')
      const { total, used, available } = bytes
      must(total > 0n, `the volume has a total of ${total} bytes`)
      must(used >= 0n && available >= 0n && used <= total, `${used} bytes used, ${available} free, of ${total}`)
    },
  },
  {
    ...honesty,
    id: 'honesty/node-expand/answer',
    title: 'a published volume follows when the controller has grown it',
    call: 'NodeExpandVolume',
    says: 'after 0 OK the volume has the size that was asked for',
    needs: {
      controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'],
      node: ['EXPAND_VOLUME'],
      mounts: true,
      onlineGrowth: true,
    },
    async run(lab) {
      const { attachment, staging: path, target } = await publish(lab, await someVolume(lab))
      const { volumeId } = attachment.volume
      const capacityRange = { requiredBytes: lab.recipe.sizeBytes * 2n }
      const { volumeCapability } = stageRequest(lab, attachment, path)
      const grown = lab.controller.controllerExpandVolume({ volumeId, capacityRange, volumeCapability })
      const { nodeExpansionRequired } = await answered('ControllerExpandVolume', grown)
      if (!nodeExpansionRequired) return
      const request = { volumeId, volumePath: target, stagingTargetPath: path, capacityRange, volumeCapability }
      for (const what of ['NodeExpandVolume', 'NodeExpandVolume again']) {
        const { capacityBytes } = await answered(what, lab.node.nodeExpandVolume(request))
        const fits = capacityBytes === 0n || capacityBytes >= capacityRange.requiredBytes
        must(fits, `${what} to ${capacityRange.requiredBytes} bytes answered OK and ${capacityBytes}`)
      }
    },
  },
]

async function unmount(lab: Lab, volumeId: string, targetPath: string): Promise<void> {
  await answered('NodeUnpublishVolume', lab.node.nodeUnpublishVolume({ volumeId, targetPath }))
}

async function mountsAt(lab: Lab, path: string): Promise<number> {
  return (await lab.host.mounts.list(lab.signal)).filter(({ mountPoint }) => mountPoint === path).length
}

export const mountChecks: readonly Check[] = [...stages, ...publishes, ...uses]
