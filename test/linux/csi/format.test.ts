// Can a volume with data ever be formatted again? Only a format that was cut short is begun anew; what was mounted once
// is never touched, whatever the moment at which the driver died.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { VolumeRecord } from '../../../src/csi/kit/backend.ts'
import { createImageStorage } from '../../../src/drivers/local/images.ts'
import { createSystemClock } from '../../../src/clock/system-clock.ts'
import { createSpaceGuard } from '../../../src/drivers/local/guard.ts'
import { createLoopNode } from '../../../src/drivers/local/loops.ts'
import { createDiskRecords, layoutOf } from '../../../src/drivers/local/records.ts'
import { createStages } from '../../../src/drivers/local/stages.ts'
import type { Host } from '../../../src/host/host.ts'
import { createLinuxHost } from '../../../src/host/linux/linux-host.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root for mounts and loop devices'
const signal = new AbortController().signal
const setSize = (path: string, bytes: bigint) => truncate(path, Number(bytes))
const volume: VolumeRecord = { id: 'vol-1', name: 'v', capacityBytes: 1n << 24n, parameters: {}, attachments: {} }

/** A driver whose process dies at the n-th call to the host. */
function dyingAt(host: Host, call: number): Host {
  let count = 0
  const wrap = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (++count >= call) return Promise.reject(new Error('the driver died'))
          return Reflect.apply(value, target, args) as unknown
        }
      },
    })
  const run: Host['run'] = (command, stop) =>
    ++count >= call ? Promise.reject(new Error('the driver died')) : host.run(command, stop)
  return {
    files: wrap(host.files),
    mounts: wrap(host.mounts),
    devices: wrap(host.devices),
    filesystems: wrap(host.filesystems),
    run,
  }
}

test('a driver that dies at any moment of a stage never formats data away', { skip, timeout: 120_000 }, async () => {
  await using host = createLinuxHost()
  for (let call = 1; call <= 20; call++) {
    const directory = mkdtempSync(join(tmpdir(), 'hawser-format-'))
    const layout = layoutOf(join(directory, 'data'))
    mkdirSync(layout.volume(volume.id), { recursive: true })
    const path = join(directory, 'stage')
    const input = { volume, path, access: { kind: 'mount' as const, fsType: 'ext4', options: [] }, readOnly: false }
    const guardOn = (on: Host) =>
      createSpaceGuard({
        host: on,
        clock: createSystemClock(),
        layout,
        records: createDiskRecords(on.files, layout),
        stages: createStages(on.files, layout),
      })
    const nodeOn = (on: Host) => createLoopNode(on, layout, createStages(on.files, layout), guardOn(on))
    const node = nodeOn(host)
    try {
      const records = createDiskRecords(host.files, layout)
      const stages = createStages(host.files, layout)
      await createImageStorage({ host, layout, records, stages, setSize, guard: guardOn(host), overcommit: 1 }).create(
        volume,
        signal,
      )
      await nodeOn(dyingAt(host, call))
        .stage(input, signal)
        .catch(() => {})
      await node.stage(input, signal)
      writeFileSync(join(path, 'data'), 'precious')
      await node.unstage(volume, path, signal)
      await nodeOn(dyingAt(host, call))
        .stage(input, signal)
        .catch(() => {})
      await node.stage(input, signal)
      assert.equal(readFileSync(join(path, 'data'), 'utf8'), 'precious', `died at call ${call}`)
      await node.unstage(volume, path, signal)
      assert.deepEqual(await host.devices.loopsOf(join(layout.volume(volume.id), 'image'), signal), [])
    } finally {
      spawnSync('umount', [path])
      for (const loop of await host.devices.loopsOf(join(layout.volume(volume.id), 'image'), signal).catch(() => []))
        spawnSync('losetup', ['-d', loop])
      rmSync(directory, { recursive: true, force: true })
    }
  }
})
