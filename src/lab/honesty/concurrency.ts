// What happens when several callers ask at once? Each gets the answer of the only one, or ABORTED and may come back.
import { CsiError } from '../../csi/codes.ts'
import type { Check, Needs } from '../check.ts'
import { answered, Finding, must } from '../finding.ts'
import type { Lab } from '../lab.ts'
import { askSnapshot, createVolume, publish, publishRequest, someVolume, volumeRequest } from '../scene.ts'

const volumes: Needs = { controller: ['CREATE_DELETE_VOLUME'] }
const honesty = { suite: 'honesty' } as const
const callers = 8

/** The same call from several callers: values of those that succeeded. ABORTED is allowed, any other status is not. */
async function atOnce<T>(what: string, ask: (caller: number) => Promise<T>): Promise<readonly T[]> {
  const outcomes = await Promise.allSettled(Array.from({ length: callers }, (_, index) => ask(index)))
  const values: T[] = []
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') values.push(outcome.value)
    else if (!(outcome.reason instanceof CsiError)) throw outcome.reason
    else if (outcome.reason.status !== 'ABORTED')
      await answered(`${what} from ${callers} callers at once`, Promise.reject(outcome.reason))
  }
  return values
}

function oneOf(what: string, ids: readonly string[]): void {
  const different = [...new Set(ids)]
  if (different.length > 1) throw new Finding(`${what} from ${callers} callers at once gave ${different.join(', ')}`)
}

const says = 'calls for one volume at the same time: each is answered as if alone, or with ABORTED'

export const concurrencyChecks: readonly Check[] = [
  {
    ...honesty,
    ...{ id: 'honesty/at-once/create-volume', call: 'CreateVolume', says, needs: volumes },
    title: 'one name from several callers at once gives one volume',
    async run(lab) {
      const request = volumeRequest(lab, 'volume')
      const made = await atOnce('CreateVolume', () => createVolume(lab, request))
      const last = await answered('CreateVolume after that', createVolume(lab, request))
      oneOf(
        'CreateVolume of one name',
        [...made, last].map(({ volumeId }) => volumeId),
      )
    },
  },
  {
    ...honesty,
    ...{ id: 'honesty/at-once/volumes', call: 'CreateVolume', needs: volumes },
    says: 'different volumes may be asked for at the same time',
    title: 'several names at once give as many volumes',
    async run(lab) {
      const made = await atOnce('CreateVolume', (caller) => createVolume(lab, volumeRequest(lab, `volume-${caller}`)))
      const different = new Set(made.map(({ volumeId }) => volumeId)).size
      must(different === made.length, `${made.length} names at once gave ${different} volumes`)
    },
  },
  {
    ...honesty,
    ...{ id: 'honesty/at-once/delete-volume', call: 'DeleteVolume', says, needs: volumes },
    title: 'one volume may be deleted by several callers at once',
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const request = { volumeId, secrets: { ...lab.recipe.secrets } }
      await atOnce('DeleteVolume', () => lab.controller.deleteVolume(request))
      await answered('DeleteVolume after that', lab.controller.deleteVolume(request))
    },
  },
  {
    ...honesty,
    ...{ id: 'honesty/at-once/create-snapshot', call: 'CreateSnapshot', says },
    title: 'one snapshot name from several callers at once gives one snapshot',
    needs: { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] },
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const ask = () => askSnapshot(lab, lab.named('snapshot'), volumeId)
      const made = await atOnce('CreateSnapshot', ask)
      const last = await answered('CreateSnapshot after that', ask())
      oneOf(
        'CreateSnapshot of one name',
        [...made, last].map(({ snapshotId }) => snapshotId),
      )
    },
  },
  {
    ...honesty,
    ...{ id: 'honesty/at-once/publish', call: 'NodePublishVolume', says },
    title: 'one target path from several callers at once is mounted once',
    needs: { controller: ['CREATE_DELETE_VOLUME'], mounts: true },
    async run(lab) {
      const volume = await someVolume(lab)
      const { attachment, staging, target } = await publish(lab, volume)
      const { volumeId } = volume
      await answered('NodeUnpublishVolume', lab.node.nodeUnpublishVolume({ volumeId, targetPath: target }))
      const request = publishRequest(lab, attachment, staging, target)
      await atOnce('NodePublishVolume', () => lab.node.nodePublishVolume(request))
      await answered('NodePublishVolume after that', lab.node.nodePublishVolume(request))
      const mounts = await countMounts(lab, target)
      must(mounts === 1, `NodePublishVolume from ${callers} callers at once left ${mounts} mounts at the target path`)
    },
  },
]

async function countMounts(lab: Lab, path: string): Promise<number> {
  return (await lab.host.mounts.list(lab.signal)).filter(({ mountPoint }) => mountPoint === path).length
}
