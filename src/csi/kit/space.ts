// How much may a driver still promise from one disk, and when is the disk too full to go on? Pure arithmetic.
//
// pool     what volumes may fill: free now plus what images hold already, less a reserve
// thin     may be promised up to the pool (less what is thick) times the ratio of overcommit
// thick    is taken at once: never more than is free now

export interface DiskSpace {
  readonly capacityBytes: bigint
  readonly availableBytes: bigint
  /** What the images of volumes and snapshots take of it now. */
  readonly heldBytes: bigint
}

export interface PromisedSpace {
  readonly thinBytes: bigint
  readonly thickBytes: bigint
}

export const defaultOvercommit = 2
const gibibyte = 1n << 30n
const mebibyte = 1n << 20n

/** Kept free so that what is in memory can still be written: a tenth, at least 64 MiB, at most 1 GiB, never above a quarter. */
export function reserveOf(capacityBytes: bigint): bigint {
  const tenth = capacityBytes / 10n
  const wanted = tenth < 64n * mebibyte ? 64n * mebibyte : tenth > gibibyte ? gibibyte : tenth
  return wanted < capacityBytes / 4n ? wanted : capacityBytes / 4n
}

/** How many bytes of a kind may still be promised. */
export function roomFor(kind: 'thin' | 'thick', space: DiskSpace, promised: PromisedSpace, overcommit: number): bigint {
  const reserve = reserveOf(space.capacityBytes)
  const all = space.availableBytes + space.heldBytes
  const pool = (all < space.capacityBytes ? all : space.capacityBytes) - reserve
  const hundredths = BigInt(Math.round(overcommit * 100))
  const thinLeft = ((pool - promised.thickBytes) * hundredths) / 100n - promised.thinBytes
  if (kind === 'thin') return atLeastZero(thinLeft)
  // A thick volume takes its bytes out of the pool that thin ones are promised from.
  const withoutBreaking = (thinLeft * 100n) / hundredths
  const free = space.availableBytes - reserve
  return atLeastZero(free < withoutBreaking ? free : withoutBreaking)
}

/**
 * How full a disk is. `unflushedBytes`: written by programs, still in memory, and soon on some disk. Nobody knows on which,
 * so it counts up to one more reserve.
 */
export function fullness(
  space: Pick<DiskSpace, 'capacityBytes' | 'availableBytes'>,
  unflushedBytes = 0n,
): 'plenty' | 'low' | 'out' {
  const reserve = reserveOf(space.capacityBytes)
  const needed = reserve + (unflushedBytes < reserve ? unflushedBytes : reserve)
  if (space.availableBytes < needed) return 'out'
  return space.availableBytes < 2n * reserve ? 'low' : 'plenty'
}

const atLeastZero = (bytes: bigint) => (bytes < 0n ? 0n : bytes)
