// What happens when the disk below the images is full? A filesystem on a thin image would lose what it cannot write and
// break. So volumes are frozen before: writers wait, readers go on, nothing is lost. When there is room again, they go on.
//
// 1. Frozen below the reserve plus what programs have written to memory only (at most one more reserve): a freeze writes that first.
// 2. Thick images on ext4 and xfs need no new blocks: they are never frozen.
// 3. A process that was killed while it waits can end only when its filesystem is thawed: it is, for a moment.
// 4. Volumes stay frozen when the driver stops, and the next driver thaws them. Their data is safe, and nobody watches.
import type { Clock } from '../../clock/clock.ts'
import { createTurns, sizeText } from '../../csi/kit/checks.ts'
import type { Records } from '../../csi/kit/backend.ts'
import { fullness, reserveOf } from '../../csi/kit/space.ts'
import type { Host } from '../../host/host.ts'
import { isThick } from './parameters.ts'
import type { DiskLayout } from './records.ts'
import type { Stages } from './stages.ts'
import { isAnyKilled, unflushedBytes } from './waiting-writers.ts'

interface DiskView {
  readonly level: 'plenty' | 'low' | 'out'
  readonly availableBytes: bigint
  readonly reserveBytes: bigint
  readonly type: string
  /** When to look again, so that a disk which fills at 4 GB a second is seen in time. */
  readonly againMs: number
}

export interface SpaceGuard {
  view(signal: AbortSignal): Promise<DiskView>
  /** Freezes or thaws what must be, and says when to look again. */
  look(signal: AbortSignal): Promise<DiskView>
  /** The filesystem at the path is thawed, and not frozen again until disposed: a frozen one cannot be unmounted. */
  leaving(path: string, signal: AbortSignal): Promise<Disposable>
  /** For people; undefined while there is plenty. */
  describe(view: DiskView): string | undefined
}

export interface GuardDeps {
  readonly host: Host
  readonly clock: Clock
  readonly layout: DiskLayout
  readonly records: Records
  readonly stages: Stages
}

const commandMs = 120_000
const fastestBytesPerMs = 4_000_000n
const pulseMs = 50

export function createSpaceGuard(deps: GuardDeps): SpaceGuard {
  const { host, clock, layout } = deps
  const frozen = new Set<string>()
  const leaving = new Set<string>()
  // One look at a time, and none while a path is being left: a program that freezes holds the filesystem open.
  const inTurn = createTurns()
  const view = async (signal: AbortSignal): Promise<DiskView> => {
    const now = await viewOf(host, layout, signal)
    return frozen.size > 0 ? { ...now, level: 'out', againMs: 500 } : now
  }
  const freeze = async (path: string, signal: AbortSignal) => {
    // Frozen already (a snapshot is being cut, another driver of this machine was first): tried again at the next look.
    const done = await host.run({ argv: ['fsfreeze', '--freeze', path], timeoutMs: commandMs }, signal)
    if (done.exitCode === 0) frozen.add(path)
  }
  const thaw = async (path: string, signal: AbortSignal) => {
    await host.run({ argv: ['fsfreeze', '--unfreeze', path], timeoutMs: commandMs }, signal)
    frozen.delete(path)
  }
  const freezeAll = async (now: DiskView, signal: AbortSignal) => {
    const paths = await thinMounts(deps, now, signal)
    for (const path of frozen) if (!paths.includes(path)) frozen.delete(path)
    await Promise.all(
      paths.filter((path) => !frozen.has(path) && !leaving.has(path)).map((path) => freeze(path, signal)),
    )
  }
  const thawAll = (signal: AbortSignal) => Promise.all([...frozen].map((path) => thaw(path, signal)))
  return {
    view,
    look: (signal) =>
      inTurn(async () => {
        const now = await view(signal)
        if (frozen.size > 0 && now.availableBytes > enoughFor(now)) await thawAll(signal)
        else if (now.level === 'out') await freezeAll(now, signal)
        if (frozen.size > 0 && now.availableBytes > now.reserveBytes / 4n && (await isAnyKilled(host, signal))) {
          await thawAll(signal)
          await clock.sleep(pulseMs, signal)
          await freezeAll(now, signal)
        }
        return view(signal)
      }),
    leaving: (path, signal) =>
      inTurn(async () => {
        if (frozen.has(path) || (await view(signal)).level === 'out') await thaw(path, signal)
        leaving.add(path)
        return { [Symbol.dispose]: () => void leaving.delete(path) }
      }),
    describe: (now) => describe(now, layout.volumes),
  }
}

/** More than where they are frozen: else they would be frozen again at once. */
const enoughFor = ({ reserveBytes }: DiskView) => (reserveBytes * 5n) / 2n

/** Looks until disposed; a look that fails is repeated. */
export function watchSpace(guard: SpaceGuard, clock: Clock, onError: (error: unknown) => void): AsyncDisposable {
  const stop = new AbortController()
  const run = async () => {
    while (!stop.signal.aborted) {
      const againMs = await guard.look(stop.signal).then(
        (now) => now.againMs,
        (error: unknown) => {
          if (!stop.signal.aborted) onError(error)
          return 1_000
        },
      )
      await clock.sleep(againMs, stop.signal).catch(() => {})
    }
  }
  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('stopping'))
      await running
    },
  }
}

async function viewOf(host: Host, layout: DiskLayout, signal: AbortSignal): Promise<DiskView> {
  const { capacityBytes, availableBytes, type } = await host.filesystems.usage(layout.volumes, signal)
  const reserveBytes = reserveOf(capacityBytes)
  const unflushed = availableBytes < 8n * reserveBytes ? await unflushedBytes(host, signal) : 0n
  const level = fullness({ capacityBytes, availableBytes }, unflushed)
  const above = availableBytes - reserveBytes - unflushed
  const againMs = Math.min(5_000, Math.max(50, Number(above / fastestBytesPerMs)))
  return { level, availableBytes, reserveBytes, type, againMs }
}

/** Where thin volumes are mounted; on a disk that copies on write, thick ones too. */
async function thinMounts(deps: GuardDeps, { type }: DiskView, signal: AbortSignal): Promise<string[]> {
  const { host, records, stages } = deps
  const overwrites = type === 'ext' || type === 'xfs'
  const paths: string[] = []
  for (const volume of await records.volumes(signal)) {
    if (overwrites && isThick(volume)) continue
    for (const { path } of await stages.of(volume.id, signal))
      if (await host.mounts.isMountPoint(path, signal).catch(() => false)) paths.push(path)
  }
  return paths
}

function describe(view: DiskView, path: string): string | undefined {
  const { level, availableBytes, reserveBytes } = view
  const left = `the disk of ${path} has ${sizeText(availableBytes)} left`
  switch (level) {
    case 'plenty':
      return undefined
    case 'low':
      return `${left}: near ${sizeText(reserveBytes)} writers of thin volumes will wait; free space there, or enlarge that disk`
    case 'out':
      return `${left}: writers of thin volumes wait, nothing is lost; free space there or enlarge that disk, and with ${sizeText(enoughFor(view))} free they go on by themselves`
    default:
      return level satisfies never
  }
}
