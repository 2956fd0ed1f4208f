// Does a stage that fails undo itself? A mistyped mount option, a filesystem without mkfs: with pod and claim gone, the volume,
// its image, its loop device and every directory are gone too, also if the driver was restarted in between.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { StorageClass } from '../../../src/api/generated/types.ts'
import { localDriverName } from '../../../src/drivers/local/driver.ts'
import { serveLocalDriver } from '../../../src/drivers/local/serve.ts'
import { createLinuxHost } from '../../../src/host/linux/linux-host.ts'
import { loopsBelow, needsRoot, until } from '../../kit/machine.ts'
import { claim, gone, pod, startCsiCluster } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'

const options = { skip: needsRoot, timeout: 120_000 }
/** The driver may have been killed just before: it is registered again first. */
const waitMs = 60_000
const mistakes: Readonly<Record<string, { readonly about: Partial<StorageClass>; readonly message: RegExp }>> = {
  'mistyped-option': { about: { mountOptions: ['noatimee'] }, message: /noatimee|invalid|EINVAL/i },
  'no-mkfs': { about: { parameters: { 'csi.storage.k8s.io/fstype': 'zfs' } }, message: /mkfs\.zfs is not installed/ },
}

let cluster: CsiCluster
before(async () => {
  if (needsRoot) return
  cluster = await startCsiCluster({ mode: 'local' })
  for (const [name, { about }] of Object.entries(mistakes)) {
    await cluster.client.create('StorageClass', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: localDriverName,
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
      ...about,
    })
  }
})
after(() => cluster?.[Symbol.asyncDispose]())

for (const [name, { message }] of Object.entries(mistakes)) {
  for (const restart of [false, true]) {
    const also = restart ? ', also after the driver was killed' : ''
    test(`a volume whose stage failed (${name}) is deleted with all that belongs to it${also}`, options, async () => {
      await failThenDelete(name, message, restart)
    })
  }
}

async function failThenDelete(storageClassName: string, message: RegExp, restart: boolean): Promise<void> {
  const { client, directory } = cluster
  const name = `${storageClassName}-${restart ? 'killed' : 'plain'}`
  const ref = { namespace: 'default', name }
  await client.create('PersistentVolumeClaim', claim(name, { storageClassName }))
  await client.create('Pod', pod(name, { nodeName: 'n1' }, { d: { persistentVolumeClaim: { claimName: name } } }))
  const said = await until('a failed mount', async () => {
    const { items } = await client.list('Event', { namespace: 'default' })
    return items.find(({ reason, involvedObject }) => reason === 'FailedMount' && involvedObject?.name === name)
      ?.message
  })
  assert.match(said ?? '', message)
  if (restart) {
    const before = cluster.drivers[0]?.pid
    process.kill(before ?? 0, 'SIGKILL')
    await until('the driver runs again', () => {
      const pid = cluster.drivers[0]?.pid
      return pid !== undefined && pid !== before
    })
  }
  await client.remove('Pod', ref)
  await gone(client, 'Pod', ref)
  await client.remove('PersistentVolumeClaim', ref)
  await until('the volume is gone', async () => (await client.list('PersistentVolume')).items.length === 0, waitMs)
  assert.deepEqual(cluster.driverVolumes(), [])
  await until('no loop device', () => cluster.loops().length === 0)
  assert.deepEqual(cluster.mounts(), [])
  const staging = join(directory, 'n1', 'plugins', 'kubernetes.io', 'csi', localDriverName)
  assert.deepEqual(existsSync(staging) ? readdirSync(staging) : [], [])
}

test('a driver that starts frees the loop device that an older version kept for a failed stage', options, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-heal-'))
  const volume = join(directory, 'data', 'volumes', 'vol-1')
  const image = join(volume, 'image')
  const staging = join(directory, 'globalmount')
  const record = { id: 'vol-1', name: 'v', capacityBytes: '16777216', parameters: {}, attachments: {}, node: 'n1' }
  mkdirSync(join(volume, 'stages'), { recursive: true })
  writeFileSync(join(volume, 'record.json'), JSON.stringify(record))
  writeFileSync(image, '')
  truncateSync(image, 16_777_216)
  const mark = join(volume, 'stages', createHash('sha256').update(staging).digest('hex').slice(0, 32))
  writeFileSync(mark, staging)
  await using host = createLinuxHost()
  try {
    await host.devices.attachLoop({ file: image, readOnly: false }, new AbortController().signal)
    assert.equal(loopsBelow(directory).length, 1)
    const socket = join(directory, 'csi.sock')
    await using _driver = await serveLocalDriver({
      socket,
      dataDirectory: join(directory, 'data'),
      nodeId: 'n1',
      mode: 'local',
    })
    assert.deepEqual(loopsBelow(directory), [])
    assert.deepEqual([existsSync(mark), existsSync(image)], [false, true])
  } finally {
    for (const loop of loopsBelow(directory)) spawnSync('losetup', ['-d', loop])
    rmSync(directory, { recursive: true, force: true })
  }
})
