// How is storage made? One sparse image file per volume; clones and snapshots are copies that share blocks where the
// filesystem below can (reflink). A file appears under its name only when it is complete.
import { truncate } from 'node:fs/promises'
import { join } from 'node:path/posix'
import type { StorageBackend } from '../../csi/kit/backend.ts'
import { fail } from '../../csi/kit/checks.ts'
import type { Host } from '../../host/host.ts'
import type { DiskLayout } from './records.ts'
import type { Stages } from './stages.ts'

export const imageName = 'image'
const copyTimeoutMs = 3_600_000
const freezeTimeoutMs = 30_000

export function createImageStorage(host: Host, layout: DiskLayout, stages: Stages): StorageBackend {
  const volumeImage = (id: string) => join(layout.volume(id), imageName)
  const snapshotImage = (id: string) => join(layout.snapshot(id), imageName)
  /** Fills a temporary file and gives it its name in one step. */
  const appear = async (path: string, fill: (temporary: string) => Promise<void>, signal: AbortSignal) => {
    if (await host.files.exists(path, signal)) return
    const temporary = `${path}.new`
    await host.files.remove(temporary, signal)
    await fill(temporary)
    await host.files.rename(temporary, path, signal)
  }
  return {
    async create(record, signal) {
      const { source } = record
      await appear(
        volumeImage(record.id),
        async (path) => {
          if (source?.kind === 'snapshot') await copyImage(host, snapshotImage(source.id), path, signal)
          else if (source) await copyFrozen(host, stages, source.id, volumeImage(source.id), path, signal)
          else {
            await host.files.writeFile(path, '', { mode: 0o600 }, signal)
            await stages.setFormat(record.id, { kind: 'begun', type: 'none' }, signal)
          }
          await truncate(path, Number(record.capacityBytes))
        },
        signal,
      )
    },
    async remove(record, signal) {
      const image = volumeImage(record.id)
      if (!(await host.files.exists(image, signal))) return
      const staged = await stages.of(record.id, signal)
      if (staged.length > 0)
        throw fail('FAILED_PRECONDITION', `volume ${record.id} is still staged at ${staged.join(', ')}`)
      for (const loop of await host.devices.loopsOf(image, signal)) await host.devices.detachLoop(loop, signal)
      await host.files.remove(image, signal)
    },
    async grow(record, sizeBytes) {
      await truncate(volumeImage(record.id), Number(sizeBytes))
    },
    async snapshot(snapshot, source, signal) {
      await appear(
        snapshotImage(snapshot.id),
        (path) => copyFrozen(host, stages, source.id, volumeImage(source.id), path, signal),
        signal,
      )
    },
    removeSnapshot: (snapshot, signal) => host.files.remove(snapshotImage(snapshot.id), signal),
    async availableBytes(signal) {
      return (await host.filesystems.usage(layout.volumes, signal)).availableBytes
    },
  }
}

/** A mounted filesystem stands still while it is copied; a raw device in use is copied as it is (crash-consistent at best). */
async function copyFrozen(
  host: Host,
  stages: Stages,
  volumeId: string,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const mounted: string[] = []
  for (const path of await stages.of(volumeId, signal)) {
    if (await host.mounts.isMountPoint(path, signal).catch(() => false)) mounted.push(path)
  }
  const freezable = mounted[0]
  for (const loop of await host.devices.loopsOf(from, signal)) await host.devices.flush(loop, signal)
  if (freezable === undefined) return copyImage(host, from, to, signal)
  const frozen = await host.run({ argv: ['fsfreeze', '--freeze', freezable], timeoutMs: freezeTimeoutMs }, signal)
  if (frozen.exitCode !== 0) throw fail('INTERNAL', `fsfreeze ${freezable} failed: ${frozen.stderr.trim()}`)
  try {
    await copyImage(host, from, to, signal)
  } finally {
    // Not the caller's signal: whatever happened, writers must not stay stopped.
    await host.run(
      { argv: ['fsfreeze', '--unfreeze', freezable], timeoutMs: freezeTimeoutMs },
      new AbortController().signal,
    )
  }
}

async function copyImage(host: Host, from: string, to: string, signal: AbortSignal): Promise<void> {
  const argv = ['cp', '--reflink=auto', '--sparse=always', '--', from, to] as const
  const result = await host.run({ argv, timeoutMs: copyTimeoutMs }, signal)
  if (result.exitCode !== 0) throw fail('INTERNAL', `copying ${from} failed: ${result.stderr.trim()}`)
}
