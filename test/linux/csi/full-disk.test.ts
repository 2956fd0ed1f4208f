// What becomes of volumes when the disk below their images is full? Writers wait, nothing is lost, and all goes on when there is
// room again. A real small disk, filled through a volume with each filesystem.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSystemClock } from '../../../src/clock/system-clock.ts'
import { openChannel } from '../../../src/csi/channel.ts'
import { openDriver } from '../../../src/csi/drivers.ts'
import type { Capability } from '../../../src/csi/values.ts'
import { serveLocalDriver } from '../../../src/drivers/local/serve.ts'
import { needsRoot, until } from '../../kit/machine.ts'
import { makeSmallDisk } from '../../kit/small-disk.ts'

const options = { skip: needsRoot, timeout: 240_000 }
const never = new AbortController().signal
const mebibyte = 1_048_576

/** What proves that a filesystem is whole; none of them changes anything. */
const checks: Readonly<Record<string, readonly [string, ...string[]]>> = {
  ext4: ['e2fsck', '-f', '-n'],
  xfs: ['xfs_repair', '-n'],
  btrfs: ['btrfs', 'check', '--readonly'],
}

for (const [fsType, check] of Object.entries(checks)) {
  test(`${fsType}: on a full disk writers wait, and nothing is lost`, options, async () => {
    await using stack = new AsyncDisposableStack()
    const disk = stack.use(makeSmallDisk())
    const ballast = join(disk.path, 'ballast') // can be given up
    execFileSync('fallocate', ['-l', '200M', ballast])
    const socket = join(disk.directory, 'csi.sock')
    const data = join(disk.path, 'data')
    stack.use(await serveLocalDriver({ socket, dataDirectory: data, nodeId: 'n1', mode: 'local' }))
    const clock = createSystemClock()
    const driver = stack.use(openDriver({ name: 'd', endpoint: socket, connect: openChannel, clock }))
    const controller = driver.controller(10_000)
    const { node } = driver
    const capability: Capability = { access: { kind: 'mount', fsType, mountFlags: [] }, mode: 'SINGLE_NODE_WRITER' }
    const make = (name: string) =>
      controller.createVolume({ name, requiredBytes: BigInt(1024 * mebibyte), capabilities: [capability] }, never)
    const { volumeId } = await make('v')
    const staging = join(disk.directory, 'stage')
    mkdirSync(staging)
    const stage = { volumeId, stagingPath: staging, capability }
    await node.stage(stage, never)
    const kept = Buffer.alloc(4 * mebibyte, 'precious')
    writeFileSync(join(staging, 'kept'), kept)

    const fill = join(staging, 'fill')
    const writer = spawn('dd', ['if=/dev/zero', `of=${fill}`, 'bs=1M', 'count=900', 'oflag=dsync'], { stdio: 'ignore' })
    stack.defer(() => void writer.kill('SIGKILL'))
    let ended: unknown
    writer.once('exit', (code, signal) => (ended = signal ?? code))
    const reasons = async () => (await node.storageHealth(never)).map(({ reason }) => reason)
    await until('the disk is called full', async () => (await reasons()).includes('OutOfSpace'), 60_000)
    await until('the writer stands still', () => standsStill(fill, writer.pid), 60_000)
    assert.equal(ended, undefined, 'the writer was told nothing')
    assert.deepEqual(readFileSync(join(staging, 'kept')), kept, 'readers go on')
    await assert.rejects(make('w'), /0 bytes left on the disk/)
    assert.match((await controller.getVolume(volumeId, never)).condition?.message ?? '', /writers of thin volumes wait/)

    const before = statSync(fill).size
    rmSync(ballast)
    await until('the writer goes on', () => statSync(fill).size > before + 16 * mebibyte, 60_000)
    await until('the disk is full again', async () => (await reasons()).includes('OutOfSpace'), 60_000)
    await until('the writer stands still again', () => standsStill(fill, writer.pid), 60_000)
    assert.equal(ended, undefined, 'the writer was told nothing')
    writer.kill('SIGKILL')
    await until('the killed writer ends', () => ended === 'SIGKILL', 30_000)

    await node.unstage(volumeId, staging, never)
    const image = join(data, 'volumes', volumeId, 'image')
    const whole = spawnSync(check[0], [...check.slice(1), image], { encoding: 'utf8' })
    assert.equal(whole.status, 0, whole.stdout + whole.stderr)
    await node.stage(stage, never)
    assert.deepEqual(readFileSync(join(staging, 'kept')), kept)
    await node.unstage(volumeId, staging, never)
    await controller.deleteVolume(volumeId, {}, never)
    assert.deepEqual(readdirSync(join(data, 'volumes')), [])
    await until('the disk is well', async () => (await reasons()).length === 0)
    assert.ok((await make('w')).volumeId !== '')
  })
}

/** It has written nothing for two seconds: it waits for good, or it has ended. */
async function standsStill(file: string, pid: number | undefined): Promise<boolean> {
  const before = statSync(file).size
  await sleep(2_000)
  const isRunning = existsSync(`/proc/${pid}/status`)
  return !isRunning || statSync(file).size === before
}
