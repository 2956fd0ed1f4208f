// What must a node refuse? Calls with something missing or unknown: staging, publishing, usage, growth.
import type { Check, Needs } from '../check.ts'
import { madeDirectory, mountCapability, someVolume, unknownId } from '../scene.ts'
import type { Refusal } from './refusal.ts'
import { plain, refusalCheck } from './refusal.ts'

const invalid = ['INVALID_ARGUMENT'] as const
const unknown = ['NOT_FOUND'] as const
const path = '/nowhere/hawser-lab'
const volumes: Needs = { controller: ['CREATE_DELETE_VOLUME'] }
const staging: Needs = { node: ['STAGE_UNSTAGE_VOLUME'] }
const stagedVolumes: Needs = { ...volumes, ...staging }

const ofNodes: readonly Refusal[] = [
  {
    ...{
      id: 'stage/no-volume-id',
      call: 'NodeStageVolume',
      wrong: 'without a volume id',
      statuses: invalid,
      needs: staging,
    },
    ask: plain((lab) => lab.node.nodeStageVolume({ stagingTargetPath: path, volumeCapability: mountCapability(lab) })),
  },
  {
    ...{
      id: 'stage/no-path',
      call: 'NodeStageVolume',
      wrong: 'without a staging path',
      statuses: invalid,
      needs: stagedVolumes,
    },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodeStageVolume({ volumeId, volumeCapability: mountCapability(lab) }) }
    },
  },
  {
    ...{ id: 'stage/no-capability', call: 'NodeStageVolume', wrong: 'without a volume capability' },
    ...{ statuses: invalid, needs: stagedVolumes },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodeStageVolume({ volumeId, stagingTargetPath: path }) }
    },
  },
  {
    ...{ id: 'stage/unknown-volume', call: 'NodeStageVolume', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: { ...staging, mounts: true } },
    async ask(lab) {
      const stagingTargetPath = await madeDirectory(lab, 'staging')
      const request = { volumeId: unknownId(lab), stagingTargetPath, volumeCapability: mountCapability(lab) }
      return { call: lab.node.nodeStageVolume(request) }
    },
  },
  {
    ...{ id: 'unstage/no-volume-id', call: 'NodeUnstageVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: staging },
    ask: plain((lab) => lab.node.nodeUnstageVolume({ stagingTargetPath: path })),
  },
  {
    ...{
      id: 'unstage/no-path',
      call: 'NodeUnstageVolume',
      wrong: 'without a staging path',
      statuses: invalid,
      needs: staging,
    },
    ask: plain((lab) => lab.node.nodeUnstageVolume({ volumeId: unknownId(lab) })),
  },
  {
    ...{
      id: 'publish/no-volume-id',
      call: 'NodePublishVolume',
      wrong: 'without a volume id',
      statuses: invalid,
      needs: {},
    },
    ask: plain((lab) =>
      lab.node.nodePublishVolume({
        ...{ stagingTargetPath: path, targetPath: path, volumeCapability: mountCapability(lab) },
      }),
    ),
  },
  {
    ...{
      id: 'publish/no-target',
      call: 'NodePublishVolume',
      wrong: 'without a target path',
      statuses: invalid,
      needs: volumes,
    },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      const request = { volumeId, stagingTargetPath: path, volumeCapability: mountCapability(lab) }
      return { call: lab.node.nodePublishVolume(request) }
    },
  },
  {
    ...{ id: 'publish/no-capability', call: 'NodePublishVolume', wrong: 'without a volume capability' },
    ...{ statuses: invalid, needs: volumes },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodePublishVolume({ volumeId, stagingTargetPath: path, targetPath: path }) }
    },
  },
  {
    ...{
      id: 'unpublish/no-volume-id',
      call: 'NodeUnpublishVolume',
      wrong: 'without a volume id',
      statuses: invalid,
      needs: {},
    },
    ask: plain((lab) => lab.node.nodeUnpublishVolume({ targetPath: path })),
  },
  {
    ...{
      id: 'unpublish/no-target',
      call: 'NodeUnpublishVolume',
      wrong: 'without a target path',
      statuses: invalid,
      needs: {},
    },
    ask: plain((lab) => lab.node.nodeUnpublishVolume({ volumeId: unknownId(lab) })),
  },
  {
    ...{ id: 'stats/no-volume-id', call: 'NodeGetVolumeStats', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: { node: ['GET_VOLUME_STATS'] } },
    ask: plain((lab) => lab.node.nodeGetVolumeStats({ volumePath: path })),
  },
  {
    ...{ id: 'stats/no-path', call: 'NodeGetVolumeStats', wrong: 'without a volume path' },
    ...{ statuses: invalid, needs: { ...volumes, node: ['GET_VOLUME_STATS'] } },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodeGetVolumeStats({ volumeId }) }
    },
  },
  {
    ...{ id: 'stats/unknown-volume', call: 'NodeGetVolumeStats', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: { node: ['GET_VOLUME_STATS'] } },
    ask: plain((lab) => lab.node.nodeGetVolumeStats({ volumeId: unknownId(lab), volumePath: path })),
  },
  {
    ...{ id: 'stats/unknown-path', call: 'NodeGetVolumeStats', wrong: 'at a path where the volume is not' },
    ...{ statuses: unknown, needs: { ...volumes, node: ['GET_VOLUME_STATS'] } },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodeGetVolumeStats({ volumeId, volumePath: path }) }
    },
  },
  {
    ...{ id: 'node-expand/no-volume-id', call: 'NodeExpandVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: { node: ['EXPAND_VOLUME'] } },
    ask: plain((lab) => lab.node.nodeExpandVolume({ volumePath: path })),
  },
  {
    ...{ id: 'node-expand/no-path', call: 'NodeExpandVolume', wrong: 'without a volume path' },
    ...{ statuses: invalid, needs: { ...volumes, node: ['EXPAND_VOLUME'] } },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.node.nodeExpandVolume({ volumeId }) }
    },
  },
  {
    ...{ id: 'node-expand/unknown-volume', call: 'NodeExpandVolume', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: { node: ['EXPAND_VOLUME'] } },
    ask: plain((lab) => lab.node.nodeExpandVolume({ volumeId: unknownId(lab), volumePath: path })),
  },
]

export const nodeRefusalChecks: readonly Check[] = ofNodes.map(refusalCheck)
