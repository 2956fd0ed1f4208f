// When does a node say that its disks are low?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DiskUsage } from '../../host/host.ts'
import { HostError } from '../../host/host-error.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createDiskPressure, lowSpace } from './disk-pressure.ts'

const mebibyte = 1 << 20
const disk = (capacity: number, available: number, inodesFree = 100): DiskUsage => ({
  capacityBytes: BigInt(capacity * mebibyte),
  availableBytes: BigInt(available * mebibyte),
  usedBytes: 0n,
  inodes: 100n,
  inodesFree: BigInt(inodesFree),
  inodesUsed: 0n,
  type: 'ext',
})

const table: readonly [string, DiskUsage, boolean, RegExp | undefined][] = [
  ['a large disk with 3 GiB left', disk(100_000, 3_000), false, undefined],
  ['a large disk with 2000 MiB left', disk(100_000, 2_000), false, /2000 MiB of 100000 MiB left, less than 2048 MiB/],
  ['one that was low and has 2100 MiB', disk(100_000, 2_100), true, /less than 2560 MiB/],
  ['one that was low and has 2600 MiB', disk(100_000, 2_600), true, undefined],
  ['a small disk with 130 MiB left', disk(500, 130), false, undefined],
  ['a small disk with 120 MiB left', disk(500, 120), false, /less than 128 MiB/],
  ['a tiny disk that is empty', disk(100, 100), false, undefined],
  ['few inodes', disk(1_000, 900, 4), false, /4 of 100 inodes left/],
  ['a filesystem without a size', disk(0, 0), false, undefined],
]
for (const [name, usage, wasLow, expected] of table)
  test(name, () => {
    const words = lowSpace('/d', usage, wasLow)
    if (expected === undefined) assert.equal(words, undefined)
    else assert.match(words ?? '', expected)
  })

test('a change is told once, a disk that does not answer changes nothing, and the metric follows', async () => {
  const { signal } = new AbortController()
  const answers: Record<string, DiskUsage | Error> = { '/root': disk(1_000, 900), '/pool': disk(1_000, 10) }
  const usage = async (path: string) => {
    const answer = answers[path]
    if (answer === undefined) throw new HostError('ENOENT', `${path} is not there`)
    if (answer instanceof Error) throw answer
    return answer
  }
  const metrics = createMetrics()
  const host = { filesystems: { usage } } as unknown as Parameters<typeof createDiskPressure>[0]['host']
  const pressure = createDiskPressure({ host, log: silentLog, metrics, paths: ['/root', '/pool', '/none'] })
  assert.deepEqual([await pressure.look(signal), await pressure.look(signal)], [true, false])
  assert.match(pressure.problem() ?? '', /^the disk of \/pool has 10 MiB/)
  assert.match(await metrics.text(), /hawser_node_disk_pressure\{path="\/pool"\} 1/)
  answers['/pool'] = new HostError('EIO', 'broken')
  assert.equal(await pressure.look(signal), false)
  assert.notEqual(pressure.problem(), undefined)
  answers['/pool'] = disk(1_000, 900)
  assert.equal(await pressure.look(signal), true)
  assert.equal(pressure.problem(), undefined)
  assert.match(await metrics.text(), /hawser_node_disk_pressure\{path="\/pool"\} 0/)
})
