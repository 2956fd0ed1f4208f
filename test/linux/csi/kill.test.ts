// What if the driver is killed again and again while volumes come and go? Real processes, mounts and loop devices: every
// byte written and synced is read back, nothing is attached twice, and nothing is left at the end.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRandom } from '../../../src/clock/random.ts'
import { until } from '../../kit/machine.ts'
import { claim, gone, pod, startCsiCluster } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root for mounts and loop devices'
const seed = Number(process.env['HAWSER_SEED'] ?? 7)
const kills = Number(process.env['HAWSER_KILLS'] ?? 10)
const rounds = Number(process.env['HAWSER_ROUNDS'] ?? 5)
const inDefault = (name: string) => ({ namespace: 'default', name })
const waitMs = 60_000

test(
  `a driver killed between any two calls loses nothing and leaks nothing (seed ${seed})`,
  { skip, timeout: 240_000 },
  async () => {
    await using cluster = await startCsiCluster({ mode: 'shared', nodeNames: ['n1', 'n2'] })
    const random = createRandom(seed)
    let killing = true
    const killer = (async () => {
      for (let count = 0; killing && count < kills; count++) {
        await new Promise((resolve) => setTimeout(resolve, 200 + random.below(600)))
        const pid = random.pick(cluster.drivers).pid
        if (killing && pid !== undefined) process.kill(pid, 'SIGKILL')
      }
    })()
    const names = ['a', 'b', 'c']
    try {
      await Promise.all(names.map((name) => live(cluster, name, random.fork())))
    } finally {
      killing = false
      await killer
    }
    for (const name of names) await cluster.client.remove('PersistentVolumeClaim', inDefault(name))
    await until('volumes gone', async () => (await cluster.client.list('PersistentVolume')).items.length === 0, waitMs)
    await until('mounts gone', () => cluster.mounts().length === 0, waitMs)
    await until('loop devices gone', () => cluster.loops().length === 0, waitMs)
    assert.deepEqual(cluster.driverVolumes(), [])
    assert.deepEqual((await cluster.client.list('VolumeAttachment')).items, [])
  },
)

/** One claim, used by one pod after the other on changing nodes; each finds what the ones before wrote. */
async function live(cluster: CsiCluster, name: string, random: ReturnType<typeof createRandom>): Promise<void> {
  const { client } = cluster
  await client.create('PersistentVolumeClaim', claim(name))
  const sums = new Map<string, string>()
  for (let round = 0; round < rounds; round++) {
    const podName = `${name}-${round}`
    const nodeName = random.pick(['n1', 'n2'])
    const made = await client.create(
      'Pod',
      pod(podName, { nodeName }, { d: { persistentVolumeClaim: { claimName: name } } }),
    )
    const volume = await until(
      `${name} bound`,
      async () => (await client.get('PersistentVolumeClaim', inDefault(name))).spec?.volumeName,
      waitMs,
    )
    const path = await until(`${podName} mounted`, () => cluster.podVolume(made.metadata.uid ?? '', volume), waitMs)
    assertAttachedOnce(cluster, volume)
    for (const [file, sum] of sums)
      assert.equal(checksum(readFileSync(join(path, file))), sum, `${file} on ${nodeName}`)
    const bytes = randomBytes(200_000)
    write(join(path, `file-${round}`), bytes)
    sums.set(`file-${round}`, checksum(bytes))
    assert.deepEqual(
      readdirSync(path)
        .filter((file) => file.startsWith('file-'))
        .toSorted(),
      [...sums.keys()].toSorted(),
    )
    await client.remove('Pod', inDefault(podName), { gracePeriodSeconds: 0 })
    await until(`${podName} gone`, () => gone(client, 'Pod', inDefault(podName)).then(() => true), waitMs)
  }
}

/** A volume for one node is staged on one node. */
function assertAttachedOnce(cluster: CsiCluster, volume: string): void {
  const pods = cluster.mounts().filter((path) => path.includes(`/${volume}/mount`))
  const nodes = new Set(pods.map((path) => path.slice(cluster.directory.length + 1).split('/')[0]))
  assert.ok(nodes.size <= 1, `${volume} is mounted on ${[...nodes].join(' and ')}`)
}

function write(path: string, bytes: Buffer): void {
  const file = openSync(path, 'w')
  writeSync(file, bytes)
  fsyncSync(file)
  closeSync(file)
}

const checksum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
