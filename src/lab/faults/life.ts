// Does one call that goes wrong leave anything behind? A volume's whole life, with one call struck and every call asked again
// until it succeeds; then the driver's lists and the mount table must be as before, and the data was there all the time.
import type { Check, Needs } from '../check.ts'
import { answered, must, NotPossible } from '../finding.ts'
import type { Lab } from '../lab.ts'
import { mustHoldPattern, writePattern } from '../life/data.ts'
import type { Attachment } from '../scene.ts'
import {
  askSnapshot,
  attachRequest,
  createVolume,
  growRequest,
  madeDirectory,
  publishRequest,
  stageRequest,
  tryAttach,
  volumeRequest,
} from '../scene.ts'
import type { StrikeKind } from '../strikes.ts'
import { strikeKinds } from '../strikes.ts'
import { settled } from './settle.ts'

const volumes = 'CREATE_DELETE_VOLUME' as const
const base: Needs = { controller: [volumes], mounts: true }
const attaching: Needs = { controller: [volumes, 'PUBLISH_UNPUBLISH_VOLUME'], mounts: true }
const staging: Needs = { ...base, node: ['STAGE_UNSTAGE_VOLUME'] }
const snapshots: Needs = { controller: [volumes, 'CREATE_DELETE_SNAPSHOT'], mounts: true }
const growing: Needs = { controller: [volumes, 'EXPAND_VOLUME'], mounts: true }

const struckCalls: readonly (readonly [call: string, word: string, needs: Needs])[] = [
  ['CreateVolume', 'create-volume', base],
  ['ControllerPublishVolume', 'attach', attaching],
  ['NodeStageVolume', 'stage', staging],
  ['NodePublishVolume', 'publish', base],
  ['CreateSnapshot', 'create-snapshot', snapshots],
  ['DeleteSnapshot', 'delete-snapshot', snapshots],
  ['NodeUnpublishVolume', 'unpublish', base],
  ['NodeUnstageVolume', 'unstage', staging],
  ['ControllerUnpublishVolume', 'detach', attaching],
  ['ControllerExpandVolume', 'expand', growing],
  ['DeleteVolume', 'delete-volume', base],
]

const strikeTexts: Readonly<Record<StrikeKind, string>> = {
  'answer-lost': 'whose answer gets lost',
  twice: 'that arrives twice',
  'at-once': 'that two callers make at once',
  'given-up': 'whose caller gives up meanwhile',
  'killed-during': 'during which the driver is killed',
  'killed-after': 'after which the driver is killed before it answers',
}

export const faultChecks: readonly Check[] = strikeKinds.flatMap((kind) =>
  struckCalls.map(([call, word, needs]): Check => ({
    id: `faults/${kind}/${word}`,
    suite: 'faults',
    title: `a ${call} ${strikeTexts[kind]} leaves nothing behind and loses nothing`,
    call,
    says: 'every call MUST be idempotent: an orchestrator that does not know what came of it asks again',
    needs: kind.startsWith('killed') ? { ...needs, kill: true } : needs,
    async run(lab) {
      const before = await listed(lab)
      lab.strike(call, kind)
      await wholeLife(lab)
      if (!lab.hasStruck(call)) throw new NotPossible(`${call} is not called in this driver's life`)
      const after = await listed(lab)
      const left = [...after].filter((id) => !before.has(id))
      must(left.length === 0, `left in the driver's lists: ${left.join(', ')}`)
      await mustLeaveNoMount(lab)
    },
  })),
)

async function wholeLife(lab: Lab): Promise<void> {
  const claims = (name: string) => lab.facts.controller.includes(name)
  const request = volumeRequest(lab, 'volume')
  const volume = await settled(lab, 'CreateVolume', () => createVolume(lab, request))
  const { volumeId } = volume
  const node = { volumeId, nodeId: lab.facts.nodeId ?? '', secrets: { ...lab.recipe.secrets } }
  const attaches = claims('PUBLISH_UNPUBLISH_VOLUME')
  const publishContext = attaches
    ? await settled(lab, 'ControllerPublishVolume', () => tryAttach(lab, attachRequest(lab, volume)))
    : {}
  await whileMounted(lab, { volume, publishContext })
  if (attaches) await settled(lab, 'ControllerUnpublishVolume', () => lab.controller.controllerUnpublishVolume(node))
  if (claims('EXPAND_VOLUME')) await expanded(lab, volumeId)
  await settled(lab, 'DeleteVolume', () => lab.controller.deleteVolume({ volumeId, secrets: node.secrets }))
}

async function whileMounted(lab: Lab, attachment: Attachment): Promise<void> {
  const { volumeId } = attachment.volume
  const stages = lab.facts.node.includes('STAGE_UNSTAGE_VOLUME')
  const staged = stages ? await madeDirectory(lab, 'staging') : ''
  const target = `${await lab.directory()}/target`
  const unpublish = { volumeId, targetPath: target }
  const unstage = { volumeId, stagingTargetPath: staged }
  if (stages) {
    lab.undo(`NodeUnstageVolume ${volumeId}`, (later) => later.node.nodeUnstageVolume(unstage))
    await settled(lab, 'NodeStageVolume', () => lab.node.nodeStageVolume(stageRequest(lab, attachment, staged)))
  }
  lab.undo(`NodeUnpublishVolume ${volumeId}`, (later) => later.node.nodeUnpublishVolume(unpublish))
  const publish = publishRequest(lab, attachment, staged, target)
  await settled(lab, 'NodePublishVolume', () => lab.node.nodePublishVolume(publish))
  await writePattern(lab, target, 'fault')
  if (lab.facts.controller.includes('CREATE_DELETE_SNAPSHOT')) await snapshotTaken(lab, volumeId)
  await mustHoldPattern(lab, target, 'fault', 'while calls failed')
  await settled(lab, 'NodeUnpublishVolume', () => lab.node.nodeUnpublishVolume(unpublish))
  if (stages) await settled(lab, 'NodeUnstageVolume', () => lab.node.nodeUnstageVolume(unstage))
}

async function snapshotTaken(lab: Lab, volumeId: string): Promise<void> {
  const ask = () => askSnapshot(lab, lab.named('snapshot'), volumeId)
  const { snapshotId } = await settled(lab, 'CreateSnapshot', ask)
  await settled(lab, 'DeleteSnapshot', () => lab.controller.deleteSnapshot({ snapshotId }))
}

async function expanded(lab: Lab, volumeId: string): Promise<void> {
  const request = growRequest(lab, volumeId)
  const { capacityBytes } = await settled(lab, 'ControllerExpandVolume', () =>
    lab.controller.controllerExpandVolume(request),
  )
  const isLarge = capacityBytes === 0n || capacityBytes >= request.capacityRange.requiredBytes
  must(isLarge, `the volume was to have ${request.capacityRange.requiredBytes} bytes and has ${capacityBytes}`)
}

/** Ids of everything that the driver tells; a driver without lists tells nothing. */
async function listed(lab: Lab): Promise<Set<string>> {
  const ids = new Set<string>()
  if (lab.facts.controller.includes('LIST_VOLUMES')) {
    const { entries } = await answered('ListVolumes', lab.controller.listVolumes({}))
    for (const { volume } of entries) if (volume) ids.add(volume.volumeId)
  }
  if (lab.facts.controller.includes('LIST_SNAPSHOTS')) {
    const { entries } = await answered('ListSnapshots', lab.controller.listSnapshots({}))
    for (const { snapshot } of entries) if (snapshot) ids.add(snapshot.snapshotId)
  }
  return ids
}

async function mustLeaveNoMount(lab: Lab): Promise<void> {
  const directory = await lab.directory()
  const mounts = (await lab.host.mounts.list(lab.signal)).map(({ mountPoint }) => mountPoint)
  const left = mounts.filter((path) => path.startsWith(`${directory}/`))
  must(left.length === 0, `still mounted: ${left.join(', ')}`)
  const isThere = await lab.host.files.exists(`${directory}/target`, lab.signal)
  must(!isThere, 'the target path is still there')
}
