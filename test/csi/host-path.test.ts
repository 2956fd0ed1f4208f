// Does somebody else's driver work? csi-driver-host-path from the Go module registry: provision, attach, mount, write,
// snapshot, restore, delete. Skipped, and loudly so, where the program is not to be had.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hostPathPlugin } from '../support/host-path-plugin.ts'
import { claim, gone, pod, startCsiCluster, until } from './cluster.ts'

const driverName = 'hostpath.csi.k8s.io'
const program = await hostPathPlugin()
const skip = program.path === undefined ? program.why : process.getuid?.() === 0 ? false : 'needs root'
if (skip) console.log(`# LOUDLY SKIPPED: third-party driver csi-driver-host-path: ${skip}`)
const inDefault = (name: string) => ({ namespace: 'default', name })

test('csi-driver-host-path lives a claim’s whole life with Hawser', { skip, timeout: 90_000 }, async () => {
  await using cluster = await startCsiCluster({ mode: 'local', others: startDriver })
  const { client } = cluster
  await client.create('CSIDriver', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driverName },
    spec: {
      attachRequired: true,
      podInfoOnMount: true,
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      fsGroupPolicy: 'File',
    },
  })
  await client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'hp' },
    provisioner: driverName,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
  })
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'hp' },
    driver: driverName,
    deletionPolicy: 'Delete',
  })
  await client.create('PersistentVolumeClaim', claim('data', { storageClassName: 'hp' }))
  const volumeOf = (name: string) =>
    until(`${name} bound`, async () => (await client.get('PersistentVolumeClaim', inDefault(name))).spec?.volumeName)
  const made = await client.create(
    'Pod',
    pod('p', { nodeName: 'n1' }, { d: { persistentVolumeClaim: { claimName: 'data' } } }),
  )
  const volume = await volumeOf('data')
  const path = await until('mounted', () => cluster.podVolume(made.metadata.uid ?? '', volume))
  writeFileSync(join(path, 'hello'), 'hello')
  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 's', namespace: 'default' },
    spec: { source: { persistentVolumeClaimName: 'data' }, volumeSnapshotClassName: 'hp' },
  })
  await until('snapshot ready', async () => (await client.get('VolumeSnapshot', inDefault('s'))).status?.readyToUse)
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' }
  await client.create('PersistentVolumeClaim', claim('restored', { storageClassName: 'hp', dataSource }))
  const second = await client.create(
    'Pod',
    pod('q', { nodeName: 'n1' }, { d: { persistentVolumeClaim: { claimName: 'restored' } } }),
  )
  const restored = await volumeOf('restored')
  const copy = await until('restored mounted', () => cluster.podVolume(second.metadata.uid ?? '', restored))
  assert.equal(readFileSync(join(copy, 'hello'), 'utf8'), 'hello')
  for (const name of ['p', 'q']) await client.remove('Pod', inDefault(name), { gracePeriodSeconds: 0 })
  for (const name of ['p', 'q']) await gone(client, 'Pod', inDefault(name))
  await client.remove('VolumeSnapshot', inDefault('s'))
  await gone(client, 'VolumeSnapshot', inDefault('s'))
  for (const name of ['data', 'restored']) await client.remove('PersistentVolumeClaim', inDefault(name))
  for (const name of [volume, restored]) await gone(client, 'PersistentVolume', { name })
  await until('mounts gone', () => cluster.mounts().length === 0)
})

function startDriver(directory: string) {
  const socket = join(directory, 'hostpath.sock')
  const state = join(directory, 'hostpath-state')
  mkdirSync(state)
  const argv = [
    '--endpoint',
    `unix://${socket}`,
    '--nodeid',
    'n1',
    '--statedir',
    state,
    '--drivername',
    driverName,
    '--enable-attach',
  ]
  const driver = spawn(program.path!, argv, { stdio: 'ignore' })
  return [{ name: driverName, socket, [Symbol.dispose]: () => void driver.kill('SIGKILL') }]
}
