// What do the cases do to a cluster? Small steps that many of them share.
import assert from 'node:assert/strict'
import type { PersistentVolumeClaim, Pod } from '../../../src/api/generated/types.ts'
import type { WholeCluster } from '../../kit/whole-cluster.ts'
import { claimOf, driver, podOfClaim } from '../../kit/whole-cluster.ts'

type Step = (cluster: WholeCluster) => Promise<unknown>
export const inDefault = (name: string) => ({ namespace: 'default', name })

/** One after the other, as one step. */
export const steps =
  (...all: readonly Step[]): Step =>
  async (cluster) => {
    let last: unknown
    for (const step of all) last = await step(cluster)
    return last
  }

export const pass =
  (ms: number): Step =>
  ({ clock }) =>
    clock.advance(ms)

export const addClaim =
  (name = 'data', more: Partial<PersistentVolumeClaim['spec']> = {}): Step =>
  ({ client }) =>
    client.create('PersistentVolumeClaim', claimOf(name, more))

export const addPod =
  (pod: Pod): Step =>
  ({ client }) =>
    client.create('Pod', pod)

export const bound = steps(addClaim(), pass(3_000))
export const running = steps(bound, addPod(podOfClaim('web', 'data')), pass(4_000), async ({ client }) => {
  const { status } = await client.get('Pod', inDefault('web'))
  assert.equal(status?.phase, 'Running', 'the pod runs before anything is broken')
})

export const removePod =
  (name = 'web'): Step =>
  ({ client }) =>
    client.remove('Pod', inDefault(name), {})
export const removeClaim =
  (name = 'data'): Step =>
  ({ client }) =>
    client.remove('PersistentVolumeClaim', inDefault(name))

export const patchClaim =
  (spec: object, name = 'data'): Step =>
  ({ client }) =>
    client.patch('PersistentVolumeClaim', inDefault(name), { type: 'merge', body: { spec } })
export const grow = (storage = '2Gi') => patchClaim({ resources: { requests: { storage } } })

export const anyVolume = async ({ client }: WholeCluster) =>
  `pv/${(await client.list('PersistentVolume')).items[0]?.metadata.name}`
export const anyAttachment = async ({ client }: WholeCluster) =>
  `va/${(await client.list('VolumeAttachment')).items[0]?.metadata.name}`

export const snapshotClass: Step = ({ client }) =>
  client.create('VolumeSnapshotClass', { metadata: { name: 'snaps' }, driver, deletionPolicy: 'Delete' })
export const takeSnapshot =
  (name = 'snap', claim = 'data'): Step =>
  ({ client }) =>
    client.create('VolumeSnapshot', {
      metadata: inDefault(name),
      spec: { source: { persistentVolumeClaimName: claim }, volumeSnapshotClassName: 'snaps' },
    })
export const removeSnapshot: Step = ({ client }) => client.remove('VolumeSnapshot', inDefault('snap'))
export const attributesClass: Step = ({ client }) =>
  client.create('VolumeAttributesClass', { metadata: { name: 'gold' }, driverName: driver, parameters: { iops: '9' } })
