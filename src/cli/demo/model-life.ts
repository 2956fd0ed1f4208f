// The life of a volume on models: the real controllers, CSI jobs and node agents on hosts and storage that exist only in
// memory, on virtual time. The same story as the real demo, where there is no root.
import type { Client } from '../../client/client.ts'
import { createCluster } from '../../sim/cluster.ts'
import type { Cluster } from '../../sim/cluster.ts'
import type { Context } from '../context.ts'
import { phase } from './story.ts'

const namespace = 'default'
const className = 'model'
const driver = 'model.hawser.dev'
const longestMs = 120_000
const stepMs = 5

/** Throws when a step does not come true within two virtual minutes. */
export async function liveOnModels(context: Context): Promise<void> {
  await using cluster = await createCluster({ seed: 1, nodes: 2, cast: 'real' })
  cluster.faults.calm = true
  await cluster.start()
  const { admin } = cluster
  const step = async (name: string, detail: string, isTrue: () => Promise<boolean>) =>
    phase(context, name, await until(cluster, name, isTrue), detail)
  await admin.create('StorageClass', {
    metadata: { name: className },
    provisioner: driver,
    allowVolumeExpansion: true,
    volumeBindingMode: 'Immediate',
  })
  await admin.create('PersistentVolumeClaim', {
    metadata: { name: 'data', namespace },
    spec: {
      storageClassName: className,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  })
  await step('provision', `a volume of ${driver}`, async () => (await admin.list('PersistentVolume')).items.length > 0)
  await step('bind', 'claim data ↔ its volume', async () => (await claimOf(admin)).status?.phase === 'Bound')
  for (const node of ['n1', 'n2']) {
    await admin.create('Pod', podOn(node))
    await step('attach', `to model node ${node}`, () => isAttached(admin, node))
    await step('mount', 'staged and published on its model host', async () => (await cluster.leftMounts()).length > 0)
    await step('run', `pod on ${node}`, async () => (await phaseOf(admin)) === 'Running')
    if (node === 'n2') {
      const body = { spec: { resources: { requests: { storage: '2Gi' } } } }
      await admin.patch('PersistentVolumeClaim', { name: 'data', namespace }, { type: 'merge', body })
      const grown = async () => (await claimOf(admin)).status?.capacity?.['storage'] === '2Gi'
      await step('grow', 'to 2Gi, while the pod runs', grown)
    }
    await admin.remove('Pod', { name: 'pod', namespace }, { gracePeriodSeconds: 1 })
    await step('unmount', `pod on ${node} is gone`, async () => (await phaseOf(admin)) === undefined)
  }
  await admin.remove('PersistentVolumeClaim', { name: 'data', namespace })
  await step('delete', 'claim, volume and attachments', () => isEmpty(admin))
  const left = await cluster.leftMounts()
  if (left.length > 0) throw new Error(`still mounted on the model hosts: ${left.join(', ')}`)
  context.print(`  mounts on the model hosts: 0; broken rules: ${cluster.violations.length}`)
}

/** Moves virtual time until it is true; answers how much went by. */
async function until(cluster: Cluster, name: string, isTrue: () => Promise<boolean>): Promise<number> {
  const start = cluster.clock.now()
  while (!(await isTrue())) {
    if (cluster.clock.now() - start > longestMs) throw new Error(`${name} does not come true on models`)
    await cluster.clock.advance(stepMs)
  }
  return cluster.clock.now() - start
}

const claimOf = (client: Client) => client.get('PersistentVolumeClaim', { name: 'data', namespace })

async function phaseOf(client: Client): Promise<string | undefined> {
  const { items } = await client.list('Pod', { namespace })
  return items[0] && (items[0].status?.phase ?? 'Pending')
}

async function isAttached(client: Client, node: string): Promise<boolean> {
  const { items } = await client.list('VolumeAttachment')
  return items.some(({ spec, status }) => spec.nodeName === node && status?.attached === true)
}

async function isEmpty(client: Client): Promise<boolean> {
  const lists = await Promise.all([client.list('PersistentVolume'), client.list('VolumeAttachment')])
  return lists.every(({ items }) => items.length === 0)
}

function podOn(nodeName: string) {
  const volumeMounts = [{ name: 'data', mountPath: '/data' }]
  return {
    metadata: { name: 'pod', namespace },
    spec: {
      nodeName,
      containers: [{ name: 'c', image: 'none', command: ['sleep', '600'], volumeMounts }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
  }
}
