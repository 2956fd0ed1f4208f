// Who hears of it when the disk of a node and its volumes is nearly full? The node, the class's storage, the claim, `why` and the
// metrics; and all of them when there is room again. A real `hawser up` on a small disk. Needs root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createHttpClient } from '../../src/client/http.ts'
import { untilWhy } from '../kit/assert-why.ts'
import { podOn } from '../kit/agent-fixture.ts'
import { needsRoot as skip, until as untilSoon } from '../kit/machine.ts'
import { makeSmallDisk } from '../kit/small-disk.ts'
import { startServer } from '../kit/server-process.ts'

/** The storage is asked each minute. */
const until: typeof untilSoon = (what, ask) => untilSoon(what, ask, 150_000)
const mebibyte = 1 << 20
const nodeName = hostname().toLowerCase()

test(
  'a disk that is nearly full is a condition of its node, its storage and its claims',
  { skip, timeout: 400_000 },
  async () => {
    using disk = makeSmallDisk()
    await using server = await startServer(['--store', 'memory'], { dataDirectory: join(disk.path, 'data') })
    using client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
    const at = { namespace: 'default', name: 'data' }
    const resources = { requests: { storage: '64Mi' } }
    await client.create('PersistentVolumeClaim', { metadata: at, spec: { accessModes: ['ReadWriteOnce'], resources } })
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
    await client.create('Pod', podOn('user', { nodeName, volumes }))
    await until(
      'the claim is bound',
      async () => (await client.get('PersistentVolumeClaim', at)).status?.phase === 'Bound',
    )

    const pressure = async () => {
      const { status } = await client.get('Node', { name: nodeName })
      return status?.conditions?.find(({ type }) => type === 'DiskPressure')
    }
    const told = async (kind: string, reason: string) => {
      const { items } = await client.list('Event', { namespace: 'default' })
      return items.find((event) => event.involvedObject.kind === kind && event.reason === reason)
    }
    const health = async () => {
      const node = await client.get('CSINode', { name: nodeName })
      return (node.status?.storageHealth ?? []).flatMap(({ healthConditions = [] }) => healthConditions)
    }
    await until('the node has looked', async () => (await pressure())?.status === 'False')

    const ballast = join(disk.path, 'ballast')
    const { bavail, bsize } = statfsSync(disk.path)
    execFileSync('fallocate', ['-l', String(bavail * bsize - 140 * mebibyte), ballast])
    const low = await until('the node says so', async () => {
      const found = await pressure()
      return found?.status === 'True' ? found : undefined
    })
    assert.equal(low.reason, 'KubeletHasDiskPressure')
    assert.match(low.message ?? '', /the disk of .* MiB left, less than/)
    await until('the node has an event', () => told('Node', 'NodeHasDiskPressure'))
    await untilWhy(client, `node/${nodeName}`, 'diskPressure')
    const [ill] = await until('the storage is ill', async () => ((await health()).length > 0 ? health() : undefined))
    assert.match(ill?.reason ?? '', /^(LowSpace|OutOfSpace)$/)
    const event = await until('the claim has an event', () => told('PersistentVolumeClaim', 'VolumeConditionAbnormal'))
    assert.match(event.message ?? '', /the disk of .* has .* left/)
    await untilWhy(client, 'pvc/data', 'volumeIll')

    rmSync(ballast)
    await until('the node is well', async () => (await pressure())?.status === 'False')
    await until('the node has said so', () => told('Node', 'NodeHasNoDiskPressure'))
    await until('the storage is well', async () => (await health()).length === 0)
    await until('the claim is well', () => told('PersistentVolumeClaim', 'VolumeConditionNormal'))
    await client.remove('Pod', { namespace: 'default', name: 'user' })
    await until('the pod is gone', async () => (await client.list('Pod', {})).items.length === 0)
    await client.remove('PersistentVolumeClaim', at)
    await until('the volume is gone', async () => (await client.list('PersistentVolume', {})).items.length === 0)
  },
)
