// Do the other shapes of volumes work on the built-in driver? Late binding, raw block, inline, shared by pods, read
// only, clones; and a driver that is killed in between.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
  writeSync,
  closeSync,
  fsyncSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { untilWhy } from '../../kit/assert-why.ts'
import { until } from '../../kit/machine.ts'
import { claim, gone, pod, startCsiCluster } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'needs root for mounts and loop devices' }
const options = { ...asRoot, timeout: 60_000 }
const inDefault = (name: string) => ({ namespace: 'default', name })
const ofClaim = (claimName: string, readOnly = false) => ({ persistentVolumeClaim: { claimName, readOnly } })

let cluster: CsiCluster
before(async () => {
  if (!('skip' in asRoot)) cluster = await startCsiCluster({ mode: 'local' })
})
after(async () => {
  if (!('skip' in asRoot)) await cluster[Symbol.asyncDispose]()
})

const volumeOf = (name: string) =>
  until(`claim ${name} bound`, async () => {
    const found = await cluster.client.get('PersistentVolumeClaim', inDefault(name))
    return found.status?.phase === 'Bound' ? (found.spec?.volumeName ?? '') : undefined
  })

const start = async (object: ReturnType<typeof pod>) => (await cluster.client.create('Pod', object)).metadata.uid ?? ''
const mounted = (uid: string, volume: string) => until(`pod ${uid} mounted`, () => cluster.podVolume(uid, volume))

async function cleanUp(pods: readonly string[], claims: readonly string[]) {
  for (const name of pods) await cluster.client.remove('Pod', inDefault(name), { gracePeriodSeconds: 0 })
  for (const name of pods) await gone(cluster.client, 'Pod', inDefault(name))
  for (const name of claims) await cluster.client.remove('PersistentVolumeClaim', inDefault(name))
  await until('volumes gone', async () => (await cluster.client.list('PersistentVolume')).items.length === 0)
  await until('mounts gone', () => cluster.mounts().length === 0)
  await until('loop devices gone', () => cluster.loops().length === 0)
  await until('driver volumes gone', () => cluster.driverVolumes().length === 0)
}

test(
  'a claim that waits for its first consumer is made on the pod’s node, with its affinity (SIDE-15, SIDE-19)',
  options,
  async () => {
    await cluster.client.create('PersistentVolumeClaim', claim('late', { storageClassName: 'later' }))
    await untilWhy(cluster.client, 'pvc/late', 'firstConsumer')
    const uid = await start(pod('late', {}, { d: ofClaim('late') }))
    const name = await volumeOf('late')
    writeFileSync(`${await mounted(uid, name)}/x`, 'x')
    const volume = await cluster.client.get('PersistentVolume', { name })
    assert.deepEqual(volume.spec?.nodeAffinity, {
      required: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'topology.local.hawser.dev/node', operator: 'In', values: ['n1'] }] },
        ],
      },
    })
    await cleanUp(['late'], ['late'])
  },
)

test('free space is published for classes that wait (SIDE-50)', options, async () => {
  const found = await until('a capacity object', async () => (await cluster.client.list('CSIStorageCapacity')).items[0])
  assert.equal(found.storageClassName, 'later')
  assert.deepEqual(found.nodeTopology, { matchLabels: { 'topology.local.hawser.dev/node': 'n1' } })
})

test('a raw block volume keeps its bytes when the pod comes back (CSI-50 … CSI-54)', options, async () => {
  await cluster.client.create('PersistentVolumeClaim', claim('raw', { volumeMode: 'Block' }))
  const name = await volumeOf('raw')
  const device = (uid: string) => `${cluster.directory}/n1/pods/${uid}/volumeDevices/kubernetes.io~csi/${name}`
  const first = await start(pod('b1', { nodeName: 'n1' }, { d: { ...ofClaim('raw'), block: true } }))
  await until('device linked', () => existsSync(device(first)))
  const written = openSync(device(first), 'r+')
  writeSync(written, 'raw bytes', 4096)
  fsyncSync(written)
  closeSync(written)
  await cluster.client.remove('Pod', inDefault('b1'), { gracePeriodSeconds: 0 })
  await gone(cluster.client, 'Pod', inDefault('b1'))
  await until('device unmapped', () => cluster.mounts().length === 0)
  const second = await start(pod('b2', { nodeName: 'n1' }, { d: { ...ofClaim('raw'), block: true } }))
  await until('device linked', () => existsSync(device(second)))
  const found = Buffer.alloc(9)
  const read = openSync(device(second), 'r')
  readSync(read, found, 0, 9, 4096)
  closeSync(read)
  assert.equal(found.toString(), 'raw bytes')
  await cleanUp(['b2'], ['raw'])
})

test('an inline volume lives as long as its pod (CSI-43, TP-34)', options, async () => {
  const inline = { csi: { driver: 'local.hawser.dev', fsType: 'ext4', volumeAttributes: { size: '8Mi' } } }
  const uid = await start(pod('inline', { nodeName: 'n1' }, { d: inline }))
  const path = await mounted(uid, 'd')
  writeFileSync(`${path}/x`, 'x')
  const expected = `csi-${createHash('sha256').update(`${uid}d`).digest('hex')}`
  assert.deepEqual(cluster.driverVolumes(), [expected])
  await cleanUp(['inline'], [])
})

test('two pods share one volume, one of them reading only', options, async () => {
  await cluster.client.create('PersistentVolumeClaim', claim('shared', { accessModes: ['ReadWriteMany'] }))
  const name = await volumeOf('shared')
  const writer = await mounted(await start(pod('w', { nodeName: 'n1' }, { d: ofClaim('shared') })), name)
  const reader = await mounted(await start(pod('r', { nodeName: 'n1' }, { d: ofClaim('shared', true) })), name)
  writeFileSync(`${writer}/x`, 'seen by both')
  assert.equal(readFileSync(`${reader}/x`, 'utf8'), 'seen by both')
  assert.throws(() => writeFileSync(`${reader}/y`, 'no'), { code: 'EROFS' })
  await cluster.client.remove('Pod', inDefault('w'), { gracePeriodSeconds: 0 })
  await gone(cluster.client, 'Pod', inDefault('w'))
  assert.equal(readFileSync(`${reader}/x`, 'utf8'), 'seen by both')
  await cleanUp(['r'], ['shared'])
})

test('a clone has the bytes of its source and a life of its own (SIDE-13)', options, async () => {
  await cluster.client.create('PersistentVolumeClaim', claim('origin'))
  const origin = await mounted(
    await start(pod('o', { nodeName: 'n1' }, { d: ofClaim('origin') })),
    await volumeOf('origin'),
  )
  writeFileSync(`${origin}/x`, 'original')
  const dataSource = { kind: 'PersistentVolumeClaim', name: 'origin' }
  await cluster.client.create('PersistentVolumeClaim', claim('copy', { dataSource }))
  const copy = await mounted(await start(pod('c', { nodeName: 'n1' }, { d: ofClaim('copy') })), await volumeOf('copy'))
  assert.equal(readFileSync(`${copy}/x`, 'utf8'), 'original')
  writeFileSync(`${copy}/x`, 'changed')
  assert.equal(readFileSync(`${origin}/x`, 'utf8'), 'original')
  await cleanUp(['o', 'c'], ['origin', 'copy'])
})

test(
  'what the node remembers of a volume is damaged: what the agent knows serves, and it is taken apart (WART-6)',
  options,
  async () => {
    await cluster.client.create('PersistentVolumeClaim', claim('damaged'))
    const name = await volumeOf('damaged')
    const path = await mounted(await start(pod('d', { nodeName: 'n1' }, { d: ofClaim('damaged') })), name)
    const remembered = join(path, '../vol_data.json')
    writeFileSync(remembered, readFileSync(remembered, 'utf8').slice(0, 20))
    await cluster.client.remove('Pod', inDefault('d'), { gracePeriodSeconds: 0 })
    await until('unmounted and gone', () => !existsSync(join(path, '..')))
    await cleanUp([], ['damaged'])
  },
)

test('a driver killed while its volumes are in use comes back and takes them apart (SIDE-2)', options, async () => {
  await cluster.client.create('PersistentVolumeClaim', claim('survivor'))
  const name = await volumeOf('survivor')
  const path = await mounted(await start(pod('s', { nodeName: 'n1' }, { d: ofClaim('survivor') })), name)
  writeFileSync(`${path}/x`, 'x'.repeat(100_000))
  const driver = cluster.drivers[0]!
  const before = driver.pid
  process.kill(before ?? 0, 'SIGKILL')
  assert.equal(readFileSync(`${path}/x`, 'utf8').length, 100_000, 'the mount does not need the driver')
  await until('driver started again', () => driver.pid !== undefined && driver.pid !== before)
  assert.ok(lstatSync(path).isDirectory())
  await cleanUp(['s'], ['survivor'])
})
