// Does the driver do what it does not claim? A call behind a capability that is not claimed must not be answered with OK:
// orchestrators decide by capabilities, and nobody would undo what such a call did.
import type { ControllerCapabilityName, NodeCapabilityName } from '../../csi/values.ts'
import type { Check, Needs } from '../check.ts'
import { Finding } from '../finding.ts'
import type { Lab } from '../lab.ts'
import {
  askSnapshot,
  attachRequest,
  createVolume,
  madeDirectory,
  someVolume,
  stageRequest,
  tryAttach,
  volumeRequest,
} from '../scene.ts'

interface Unclaimed {
  readonly call: string
  readonly capability: ControllerCapabilityName | NodeCapabilityName
  readonly needs: Needs
  ask(lab: Lab): Promise<{ readonly call: Promise<unknown> }>
}

const volumes = 'CREATE_DELETE_VOLUME' as const
const service = { plugin: ['CONTROLLER_SERVICE'] } as const

const ofController: readonly Unclaimed[] = [
  {
    ...{ call: 'CreateVolume', capability: volumes, needs: { ...service, withoutController: [volumes] } },
    ask: async (lab) => ({ call: createVolume(lab, volumeRequest(lab, 'volume')) }),
  },
  {
    ...{ call: 'ListVolumes', capability: 'LIST_VOLUMES' },
    needs: { ...service, withoutController: ['LIST_VOLUMES'] },
    ask: async (lab) => ({ call: lab.controller.listVolumes({}) }),
  },
  {
    ...{ call: 'GetCapacity', capability: 'GET_CAPACITY' },
    needs: { ...service, withoutController: ['GET_CAPACITY'] },
    ask: async (lab) => ({ call: lab.controller.getCapacity({}) }),
  },
  {
    ...{ call: 'ListSnapshots', capability: 'LIST_SNAPSHOTS' },
    needs: { ...service, withoutController: ['LIST_SNAPSHOTS'] },
    ask: async (lab) => ({ call: lab.controller.listSnapshots({}) }),
  },
  {
    ...{ call: 'CreateSnapshot', capability: 'CREATE_DELETE_SNAPSHOT' },
    needs: { controller: [volumes], withoutController: ['CREATE_DELETE_SNAPSHOT'] },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: askSnapshot(lab, lab.named('snapshot'), volumeId) }
    },
  },
  {
    ...{ call: 'ControllerPublishVolume', capability: 'PUBLISH_UNPUBLISH_VOLUME' },
    needs: { controller: [volumes], withoutController: ['PUBLISH_UNPUBLISH_VOLUME'] },
    async ask(lab) {
      const volume = await someVolume(lab)
      return { call: tryAttach(lab, attachRequest(lab, volume)) }
    },
  },
  {
    ...{ call: 'ControllerExpandVolume', capability: 'EXPAND_VOLUME' },
    needs: { controller: [volumes], withoutController: ['EXPAND_VOLUME'] },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      const capacityRange = { requiredBytes: lab.recipe.sizeBytes * 2n }
      return { call: lab.controller.controllerExpandVolume({ volumeId, capacityRange }) }
    },
  },
  {
    ...{ call: 'ControllerGetVolume', capability: 'GET_VOLUME' },
    needs: { controller: [volumes], withoutController: ['GET_VOLUME'] },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      return { call: lab.controller.controllerGetVolume({ volumeId }) }
    },
  },
  {
    ...{ call: 'ControllerModifyVolume', capability: 'MODIFY_VOLUME' },
    needs: { controller: [volumes], withoutController: ['MODIFY_VOLUME'] },
    async ask(lab) {
      const { volumeId } = await someVolume(lab)
      const mutableParameters = { 'hawser-lab': 'x' }
      return { call: lab.controller.controllerModifyVolume({ volumeId, mutableParameters }) }
    },
  },
]

const ofNode: readonly Unclaimed[] = [
  {
    ...{ call: 'NodeStageVolume', capability: 'STAGE_UNSTAGE_VOLUME' },
    needs: { controller: [volumes], withoutNode: ['STAGE_UNSTAGE_VOLUME'], mounts: true },
    async ask(lab) {
      const volume = await someVolume(lab)
      const { volumeId } = volume
      const stagingTargetPath = await madeDirectory(lab, 'staging')
      lab.undo(`NodeUnstageVolume ${volumeId}`, (later) =>
        later.node.nodeUnstageVolume({ volumeId, stagingTargetPath }),
      )
      return { call: lab.node.nodeStageVolume(stageRequest(lab, { volume, publishContext: {} }, stagingTargetPath)) }
    },
  },
]

export const unclaimedChecks: readonly Check[] = [...ofController, ...ofNode].map(
  ({ call, capability, needs, ask }) => ({
    id: `honesty/unclaimed/${capability.toLowerCase().replaceAll('_', '-')}`,
    suite: 'honesty',
    title: `${call} is refused by a driver that does not claim ${capability}`,
    call,
    says: 'a call that is not implemented, or disabled, is answered with UNIMPLEMENTED',
    needs,
    async run(lab) {
      const asked = await ask(lab)
      const isRefused = await asked.call.then(
        () => false,
        () => true,
      )
      if (!isRefused) throw new Finding(`${call} answered OK, and ${capability} is not claimed`)
    },
  }),
)
