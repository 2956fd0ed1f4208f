// How is storage made? One sparse image file per volume; clones and snapshots are copies that share blocks where the
// filesystem below can (reflink). A file appears under its name only when it is complete.
import { join } from 'node:path/posix'
import type { Records, StorageBackend } from '../../csi/kit/backend.ts'
import { fail } from '../../csi/kit/checks.ts'
import type { Host } from '../../host/host.ts'
import { isThick, readParameters } from './parameters.ts'
import type { SpaceGuard } from './guard.ts'
import { imageName } from './records.ts'
import { roomOnDisk } from './room.ts'
import type { DiskLayout } from './records.ts'
import { releaseLoops, stagedAt } from './staged.ts'
import type { StageMark, Stages } from './stages.ts'

const copyTimeoutMs = 3_600_000
const freezeTimeoutMs = 30_000

/** Gives a file this size; what is added is a hole. */
export type SetSize = (path: string, sizeBytes: bigint) => Promise<void>

export interface ImageDeps {
  readonly host: Host
  readonly layout: DiskLayout
  readonly records: Records
  readonly stages: Stages
  readonly setSize: SetSize
  readonly guard: Pick<SpaceGuard, 'view' | 'describe'>
  /** How many bytes of thin volumes may be promised for each byte of the disk. */
  readonly overcommit: number
}

export function createImageStorage(deps: ImageDeps): StorageBackend {
  const { host, layout, stages, setSize, guard } = deps
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
    checkParameters: (parameters) => void readParameters(parameters),
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
          await setSize(path, record.capacityBytes)
          if (isThick(record)) await allocate(host, path, record.capacityBytes, signal)
        },
        signal,
      )
    },
    async remove(record, signal) {
      const image = volumeImage(record.id)
      const staged = await stagedAt(host, image, await stages.of(record.id, signal), signal)
      if (staged.length > 0)
        throw fail('FAILED_PRECONDITION', `volume ${record.id} is still staged at ${pathsOf(staged)}`)
      const held = await releaseLoops(host, image, signal)
      if (held.length > 0)
        throw fail('FAILED_PRECONDITION', `volume ${record.id} is still in use on ${held.join(', ')}`)
      await host.files.remove(image, signal)
    },
    exists: (record, signal) => host.files.exists(volumeImage(record.id), signal),
    snapshotExists: (snapshot, signal) => host.files.exists(snapshotImage(snapshot.id), signal),
    async grow(record, sizeBytes, signal) {
      await setSize(volumeImage(record.id), sizeBytes)
      if (isThick(record)) await allocate(host, volumeImage(record.id), sizeBytes, signal)
    },
    async snapshot(snapshot, source, signal) {
      const view = await guard.view(signal)
      if (view.level === 'out') throw fail('RESOURCE_EXHAUSTED', `no snapshot now: ${guard.describe(view)}`)
      await appear(
        snapshotImage(snapshot.id),
        (path) => copyFrozen(host, stages, source.id, volumeImage(source.id), path, signal),
        signal,
      )
    },
    removeSnapshot: (snapshot, signal) => host.files.remove(snapshotImage(snapshot.id), signal),
    async condition(_record, signal) {
      const message = guard.describe(await guard.view(signal))
      return { abnormal: message !== undefined, message: message ?? '' }
    },
    room: (parameters, signal) => roomOnDisk(deps, readParameters(parameters).provisioning, signal),
    async availableBytes(signal) {
      return (await host.filesystems.usage(layout.volumes, signal)).availableBytes
    },
  }
}

const pathsOf = (marks: readonly StageMark[]) => marks.map(({ path }) => path).join(', ')

/** A mounted filesystem is frozen while it is copied; a raw device in use is copied as it is (crash-consistent at best). */
async function copyFrozen(
  host: Host,
  stages: Stages,
  volumeId: string,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const mounted: string[] = []
  for (const { path } of await stages.of(volumeId, signal)) {
    if (await host.mounts.isMountPoint(path, signal).catch(() => false)) mounted.push(path)
  }
  const freezable = mounted[0]
  for (const loop of await host.devices.loopsOf(from, signal)) await host.devices.flush(loop, signal)
  if (freezable === undefined) return copyImage(host, from, to, signal)
  // Not under the caller's signal: one who gives up in the middle of a freeze would leave the filesystem frozen.
  const unbroken = new AbortController().signal
  const fsfreeze = (way: '--freeze' | '--unfreeze') =>
    host.run({ argv: ['fsfreeze', way, freezable], timeoutMs: freezeTimeoutMs }, unbroken)
  let isOurs = true
  try {
    const { exitCode, stderr } = await fsfreeze('--freeze')
    isOurs = exitCode === 0
    if (!isOurs) throw fail('INTERNAL', `fsfreeze ${freezable} failed: ${stderr.trim()}`)
    await copyImage(host, from, to, signal)
  } finally {
    // Also where it is not known whether the freeze came about. What somebody else froze stays so.
    if (isOurs) await fsfreeze('--unfreeze')
  }
}

/** Takes all blocks of the image now; those that hold data stay as they are. */
async function allocate(host: Host, path: string, sizeBytes: bigint, signal: AbortSignal): Promise<void> {
  const argv = ['fallocate', '--length', String(sizeBytes), '--', path] as const
  const result = await host.run({ argv, timeoutMs: copyTimeoutMs }, signal)
  if (result.exitCode !== 0)
    throw fail('RESOURCE_EXHAUSTED', `cannot allocate ${sizeBytes} bytes for ${path}: ${result.stderr.trim()}`)
}

async function copyImage(host: Host, from: string, to: string, signal: AbortSignal): Promise<void> {
  const argv = ['cp', '--reflink=auto', '--sparse=always', '--', from, to] as const
  const result = await host.run({ argv, timeoutMs: copyTimeoutMs }, signal)
  if (result.exitCode !== 0) throw fail('INTERNAL', `copying ${from} failed: ${result.stderr.trim()}`)
}
