// Is there little space left on the disks of this node? Asked every ten seconds: nothing in Linux would tell.
// A disk is low below twice the reserve at which the built-in driver freezes its volumes, or with one inode of twenty left;
// it is well again with a quarter more than that, so that the condition does not flicker.
import type { DiskUsage, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

export interface DiskPressure {
  /** Which disk is low, for people; undefined while none is. */
  problem(): string | undefined
  /** Looks at the disks; answers whether the problem began or ended. */
  look(signal: AbortSignal): Promise<boolean>
}

export interface DiskPressureDeps {
  readonly host: Pick<Host, 'filesystems'>
  readonly log: Log
  readonly metrics: Metrics
  /** One that does not exist is not looked at. */
  readonly paths: readonly string[]
}

export function createDiskPressure({ host, log, metrics, paths }: DiskPressureDeps): DiskPressure {
  const low = new Map<string, string>()
  metrics.gauge(
    'hawser_node_disk_pressure',
    'Whether a disk of the node is low on space (1) or not (0)',
    ['path'],
    (gauge) => {
      for (const path of paths) gauge.set({ path }, low.has(path) ? 1 : 0)
    },
  )
  const problem = () => (low.size === 0 ? undefined : [...low.values()].join('; '))
  return {
    problem,
    async look(signal) {
      const before = low.size > 0
      for (const path of paths) {
        try {
          const words = lowSpace(path, await host.filesystems.usage(path, signal), low.has(path))
          if (words === undefined) low.delete(path)
          else low.set(path, words)
        } catch (error) {
          signal.throwIfAborted()
          // What was known of a disk that does not answer stands.
          if (hasCode(error, 'ENOENT')) low.delete(path)
          else log.warn('the space of a disk is unknown', { path, error })
        }
      }
      return low.size > 0 !== before
    },
  }
}

const mebibyte = 1n << 20n

/** What is wrong with a disk, if anything is; one that was low needs more to be well. */
export function lowSpace(path: string, usage: DiskUsage, wasLow: boolean): string | undefined {
  const { capacityBytes, availableBytes, inodes, inodesFree } = usage
  if (capacityBytes === 0n) return undefined
  const needed = (bytes: bigint) => (wasLow ? (bytes * 5n) / 4n : bytes)
  const least = needed(2n * reserveOf(capacityBytes))
  const share = `of ${capacityBytes / mebibyte} MiB`
  if (availableBytes < least)
    return `the disk of ${path} has ${availableBytes / mebibyte} MiB ${share} left, less than ${least / mebibyte} MiB`
  if (inodes > 0n && inodesFree < needed(inodes / 20n))
    return `the disk of ${path} has ${inodesFree} of ${inodes} inodes left`
  return undefined
}

/** As the built-in driver counts it: a tenth, at least 64 MiB, at most 1 GiB, never above a quarter. */
function reserveOf(capacityBytes: bigint): bigint {
  const tenth = capacityBytes / 10n
  const wanted = tenth < 64n * mebibyte ? 64n * mebibyte : tenth > 1024n * mebibyte ? 1024n * mebibyte : tenth
  return wanted < capacityBytes / 4n ? wanted : capacityBytes / 4n
}
