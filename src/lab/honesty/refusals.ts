// What must a controller refuse? Calls with something missing or unknown: volumes, growth, attachments, snapshots.
import type { Check, Needs } from '../check.ts'
import {
  askSnapshot,
  attachRequest,
  createVolume,
  mountCapability,
  someVolume,
  tryAttach,
  unknownId,
  volumeRequest,
} from '../scene.ts'
import type { Refusal } from './refusal.ts'
import { plain, refusalCheck } from './refusal.ts'

const invalid = ['INVALID_ARGUMENT'] as const
const unknown = ['NOT_FOUND'] as const
const volumes: Needs = { controller: ['CREATE_DELETE_VOLUME'] }
const snapshots: Needs = { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] }
const attaching: Needs = { controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'] }
const growing: Needs = { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'] }

const ofVolumes: readonly Refusal[] = [
  {
    ...{
      id: 'create-volume/no-name',
      call: 'CreateVolume',
      wrong: 'without a name',
      statuses: invalid,
      needs: volumes,
    },
    ask: plain((lab) => createVolume(lab, { ...volumeRequest(lab, 'x'), name: '' })),
  },
  {
    ...{ id: 'create-volume/no-capabilities', call: 'CreateVolume', wrong: 'without volume capabilities' },
    ...{ statuses: invalid, needs: volumes },
    ask: plain((lab) => createVolume(lab, { ...volumeRequest(lab, 'x'), volumeCapabilities: [] })),
  },
  {
    ...{ id: 'create-volume/negative-size', call: 'CreateVolume', wrong: 'with a negative size' },
    ...{ statuses: ['INVALID_ARGUMENT', 'OUT_OF_RANGE'], needs: volumes },
    ask: plain((lab) => createVolume(lab, { ...volumeRequest(lab, 'x'), capacityRange: { requiredBytes: -1n } })),
  },
  {
    ...{ id: 'create-volume/limit-below-size', call: 'CreateVolume', wrong: 'with a limit below the required size' },
    ...{ statuses: ['INVALID_ARGUMENT', 'OUT_OF_RANGE'], needs: volumes },
    ask: plain((lab) => {
      const { sizeBytes } = lab.recipe
      const capacityRange = { requiredBytes: sizeBytes, limitBytes: sizeBytes - 1n }
      return createVolume(lab, { ...volumeRequest(lab, 'x'), capacityRange })
    }),
  },
  {
    ...{ id: 'create-volume/unknown-snapshot', call: 'CreateVolume', wrong: 'from a snapshot that does not exist' },
    ...{ statuses: unknown, needs: snapshots },
    ask: plain((lab) => {
      const type = { case: 'snapshot' as const, value: { snapshotId: unknownId(lab) } }
      return createVolume(lab, { ...volumeRequest(lab, 'x'), volumeContentSource: { type } })
    }),
  },
  {
    ...{ id: 'create-volume/unknown-source', call: 'CreateVolume', wrong: 'from a volume that does not exist' },
    ...{ statuses: unknown, needs: { controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'] } },
    ask: plain((lab) => {
      const type = { case: 'volume' as const, value: { volumeId: unknownId(lab) } }
      return createVolume(lab, { ...volumeRequest(lab, 'x'), volumeContentSource: { type } })
    }),
  },
  {
    ...{
      id: 'delete-volume/no-id',
      call: 'DeleteVolume',
      wrong: 'without a volume id',
      statuses: invalid,
      needs: volumes,
    },
    ask: plain((lab) => lab.controller.deleteVolume({})),
  },
  {
    ...{ id: 'validate/no-id', call: 'ValidateVolumeCapabilities', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: { plugin: ['CONTROLLER_SERVICE'] } },
    ask: plain((lab) => lab.controller.validateVolumeCapabilities({ volumeCapabilities: [mountCapability(lab)] })),
  },
  {
    ...{ id: 'validate/no-capabilities', call: 'ValidateVolumeCapabilities', wrong: 'without volume capabilities' },
    ...{ statuses: invalid, needs: volumes },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.controller.validateVolumeCapabilities({ volumeId }) }
    },
  },
  {
    ...{ id: 'validate/unknown-volume', call: 'ValidateVolumeCapabilities', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: { plugin: ['CONTROLLER_SERVICE'] } },
    ask: plain((lab) =>
      lab.controller.validateVolumeCapabilities({
        volumeId: unknownId(lab),
        volumeCapabilities: [mountCapability(lab)],
      }),
    ),
  },
  {
    ...{ id: 'get-volume/no-id', call: 'ControllerGetVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: { controller: ['GET_VOLUME'] } },
    ask: plain((lab) => lab.controller.controllerGetVolume({})),
  },
  {
    ...{ id: 'get-volume/unknown-volume', call: 'ControllerGetVolume', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: { controller: ['GET_VOLUME'] } },
    ask: plain((lab) => lab.controller.controllerGetVolume({ volumeId: unknownId(lab) })),
  },
  {
    ...{ id: 'list-volumes/bad-token', call: 'ListVolumes', wrong: 'with a token that the driver never gave' },
    ...{ statuses: ['ABORTED'], needs: { controller: ['LIST_VOLUMES'] } },
    ask: plain((lab) => lab.controller.listVolumes({ startingToken: 'no-such-token' })),
  },
]

const ofGrowth: readonly Refusal[] = [
  {
    ...{ id: 'expand/no-id', call: 'ControllerExpandVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: growing },
    ask: plain((lab) =>
      lab.controller.controllerExpandVolume({ capacityRange: { requiredBytes: lab.recipe.sizeBytes } }),
    ),
  },
  {
    ...{ id: 'expand/no-size', call: 'ControllerExpandVolume', wrong: 'without a capacity range' },
    ...{ statuses: invalid, needs: growing },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.controller.controllerExpandVolume({ volumeId }) }
    },
  },
  {
    ...{ id: 'expand/unknown-volume', call: 'ControllerExpandVolume', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: growing },
    ask: plain((lab) =>
      lab.controller.controllerExpandVolume({
        volumeId: unknownId(lab),
        capacityRange: { requiredBytes: lab.recipe.sizeBytes * 2n },
      }),
    ),
  },
]

const ofAttaching: readonly Refusal[] = [
  {
    ...{ id: 'attach/no-volume-id', call: 'ControllerPublishVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: attaching },
    ask: plain((lab) =>
      lab.controller.controllerPublishVolume({
        nodeId: lab.facts.nodeId ?? '',
        volumeCapability: mountCapability(lab),
      }),
    ),
  },
  {
    ...{ id: 'attach/no-node-id', call: 'ControllerPublishVolume', wrong: 'without a node id' },
    ...{ statuses: invalid, needs: attaching },
    async ask(lab) {
      const request = attachRequest(lab, await someVolume(lab))
      return { call: tryAttach(lab, { ...request, nodeId: '' }) }
    },
  },
  {
    ...{ id: 'attach/no-capability', call: 'ControllerPublishVolume', wrong: 'without a volume capability' },
    ...{ statuses: invalid, needs: attaching },
    async ask(lab) {
      const { volumeCapability: _left, ...request } = attachRequest(lab, await someVolume(lab))
      return { call: tryAttach(lab, request) }
    },
  },
  {
    ...{ id: 'attach/unknown-volume', call: 'ControllerPublishVolume', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: attaching },
    ask: plain((lab) =>
      lab.controller.controllerPublishVolume({
        ...{ volumeId: unknownId(lab), nodeId: lab.facts.nodeId ?? '', volumeCapability: mountCapability(lab) },
      }),
    ),
  },
  {
    ...{ id: 'attach/unknown-node', call: 'ControllerPublishVolume', wrong: 'to a node that does not exist' },
    ...{ statuses: unknown, needs: attaching },
    async ask(lab) {
      const request = attachRequest(lab, await someVolume(lab))
      return { call: tryAttach(lab, { ...request, nodeId: unknownId(lab) }) }
    },
  },
  {
    ...{ id: 'detach/no-id', call: 'ControllerUnpublishVolume', wrong: 'without a volume id' },
    ...{ statuses: invalid, needs: attaching },
    ask: plain((lab) => lab.controller.controllerUnpublishVolume({ nodeId: lab.facts.nodeId ?? '' })),
  },
]

const ofSnapshots: readonly Refusal[] = [
  {
    ...{ id: 'create-snapshot/no-name', call: 'CreateSnapshot', wrong: 'without a name' },
    ...{ statuses: invalid, needs: snapshots },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: askSnapshot(lab, '', volumeId) }
    },
  },
  {
    ...{ id: 'create-snapshot/no-source', call: 'CreateSnapshot', wrong: 'without a source volume id' },
    ...{ statuses: invalid, needs: snapshots },
    ask: plain((lab) => askSnapshot(lab, lab.named('snapshot'), '')),
  },
  {
    ...{ id: 'create-snapshot/unknown-source', call: 'CreateSnapshot', wrong: 'of a volume that does not exist' },
    ...{ statuses: unknown, needs: snapshots },
    ask: plain((lab) => askSnapshot(lab, lab.named('snapshot'), unknownId(lab))),
  },
  {
    ...{ id: 'delete-snapshot/no-id', call: 'DeleteSnapshot', wrong: 'without a snapshot id' },
    ...{ statuses: invalid, needs: snapshots },
    ask: plain((lab) => lab.controller.deleteSnapshot({})),
  },
  {
    ...{ id: 'list-snapshots/bad-token', call: 'ListSnapshots', wrong: 'with a token that the driver never gave' },
    ...{ statuses: ['ABORTED'], needs: { controller: ['LIST_SNAPSHOTS'] } },
    ask: plain((lab) => lab.controller.listSnapshots({ startingToken: 'no-such-token' })),
  },
]

export const refusalChecks: readonly Check[] = [...ofVolumes, ...ofGrowth, ...ofAttaching, ...ofSnapshots].map(
  refusalCheck,
)
