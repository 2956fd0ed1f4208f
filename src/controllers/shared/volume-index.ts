// Which volumes could a claim take, without looking at all of them (WC-4)? Reserved ones by the claim they name;
// free ones by class, mode, attributes class and set of access modes, ordered by size and name.
import { compareAmounts, tryParseQuantity } from '../../api/quantity.ts'
import type { Amount } from '../../api/quantity.ts'
import { isDeleting, keyFor } from '../../api/meta.ts'
import type { PersistentVolume } from '../../api/generated/types.ts'
import { accessModeSet } from '../../volume/access.ts'
import type { AccessMode } from '../../api/access-modes.ts'
import { classOf } from '../../api/storage-class.ts'

/** What must be equal for a free volume to be considered at all (MAT-4, MAT-7). */
export interface Bucket {
  readonly className: string
  readonly mode: 'Filesystem' | 'Block'
  readonly attributesClass: string
}

/** Free volumes that share one set of access modes, smallest first, then by name (MAT-8, WC-13). */
interface ModeGroup {
  readonly modes: readonly AccessMode[]
  readonly entries: readonly FreeVolume[]
}

export interface FreeVolume {
  readonly size: Amount
  readonly volume: PersistentVolume
}

export interface VolumeIndex {
  put(volume: PersistentVolume): void
  remove(name: string): void
  /** Volumes whose claimRef names this claim, whatever the uid. */
  namedFor(claimKey: string): Iterable<PersistentVolume>
  /** The groups of a bucket, from fewest to most modes (MAT-3). */
  groups(bucket: Bucket): readonly ModeGroup[]
  readonly freeCount: number
}

export function bucketOf(volume: PersistentVolume): Bucket {
  return {
    className: classOf(volume),
    mode: volume.spec.volumeMode ?? 'Filesystem',
    attributesClass: volume.spec.volumeAttributesClassName ?? '',
  }
}

export function bucketKey(bucket: Bucket): string {
  return `${bucket.mode}\n${bucket.className}\n${bucket.attributesClass}`
}

/** Free to be taken: nobody's, declared Available, not on its way out (MAT-4, MAT-7, I-7). */
export function isFree(volume: PersistentVolume): boolean {
  return volume.spec.claimRef === undefined && volume.status?.phase === 'Available' && !isDeleting(volume)
}

export function createVolumeIndex(): VolumeIndex {
  const buckets = new Map<string, MutableGroup[]>()
  const named = new Map<string, Map<string, PersistentVolume>>()
  const known = new Map<string, { readonly volume: PersistentVolume; readonly free: Place | undefined }>()
  let freeCount = 0

  const putIn = (volume: PersistentVolume): Place | undefined => {
    if (!isFree(volume)) return undefined
    const size = tryParseQuantity(volume.spec.capacity?.['storage'] ?? '')
    if (size === undefined) return undefined
    const key = bucketKey(bucketOf(volume))
    const groups = buckets.getOrInsertComputed(key, () => [])
    const group = groupFor(groups, accessModeSet(volume.spec.accessModes))
    const entry = { size, volume }
    group.entries.splice(lowerBound(group.entries, entry), 0, entry)
    freeCount++
    return { key, group, entry }
  }
  const takeOut = ({ key, group, entry }: Place) => {
    const at = lowerBound(group.entries, entry)
    group.entries.splice(at, 1)
    freeCount--
    if (group.entries.length > 0) return
    const groups = (buckets.get(key) ?? []).filter((each) => each !== group)
    if (groups.length === 0) buckets.delete(key)
    else buckets.set(key, groups)
  }
  const remove = (name: string) => {
    const old = known.get(name)
    if (old === undefined) return
    known.delete(name)
    if (old.free !== undefined) takeOut(old.free)
    const claimKey = claimKeyOf(old.volume)
    if (claimKey === undefined) return
    const bucket = named.get(claimKey)
    bucket?.delete(name)
    if (bucket?.size === 0) named.delete(claimKey)
  }
  return {
    put(volume) {
      const { name } = volume.metadata
      remove(name)
      known.set(name, { volume, free: putIn(volume) })
      const claimKey = claimKeyOf(volume)
      if (claimKey !== undefined) named.getOrInsertComputed(claimKey, () => new Map()).set(name, volume)
    },
    remove,
    namedFor: (claimKey) => named.get(claimKey)?.values() ?? [],
    groups: (bucket) => buckets.get(bucketKey(bucket)) ?? [],
    get freeCount() {
      return freeCount
    },
  }
}

interface MutableGroup extends ModeGroup {
  readonly entries: FreeVolume[]
}

interface Place {
  readonly key: string
  readonly group: MutableGroup
  readonly entry: FreeVolume
}

export function claimKeyOf(volume: PersistentVolume): string | undefined {
  const ref = volume.spec.claimRef
  return ref === undefined ? undefined : keyFor(ref.namespace, ref.name ?? '')
}

/** The index of the first entry that is not smaller than `size`. */
export function firstFitting(entries: readonly FreeVolume[], size: Amount): number {
  return search(entries, (entry) => compareAmounts(entry.size, size) < 0)
}

function lowerBound(entries: readonly FreeVolume[], wanted: FreeVolume): number {
  return search(entries, (entry) => {
    const bySize = compareAmounts(entry.size, wanted.size)
    return bySize < 0 || (bySize === 0 && entry.volume.metadata.name < wanted.volume.metadata.name)
  })
}

/** Binary search: how many entries at the front satisfy `isBefore`? */
function search(entries: readonly FreeVolume[], isBefore: (entry: FreeVolume) => boolean): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(entries[middle]!)) low = middle + 1
    else high = middle
  }
  return low
}

/** Groups stand in the order in which they are tried: by number of modes, then by the modes themselves. */
function groupFor(groups: MutableGroup[], modes: readonly AccessMode[]): MutableGroup {
  const text = modes.join()
  const found = groups.find((group) => group.modes.join() === text)
  if (found !== undefined) return found
  const group = { modes, entries: [] }
  const comesAfter = (other: MutableGroup) =>
    other.modes.length > modes.length || (other.modes.length === modes.length && other.modes.join() > text)
  const at = groups.findIndex(comesAfter)
  groups.splice(at < 0 ? groups.length : at, 0, group)
  return group
}
