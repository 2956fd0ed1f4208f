// Which volume suits this claim (docs/rules/claims.md, section 4)? Pure: the index in, at most one volume out.
import { compareAmounts, compareQuantities, parseQuantity, wholeValue } from '../../api/quantity.ts'
import { isDeleting, keyOf } from '../../api/meta.ts'
import { matchesSelector } from '../../api/selectors.ts'
import { factsOfNode, matchesNodeSelector } from '../../api/node-selector.ts'
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { accessModeSet, offersModes } from '../../volume/access.ts'
import { classOf } from '../../api/storage-class.ts'
import { firstFitting, isFree, bucketOf } from './volume-index.ts'
import type { FreeVolume, Bucket, VolumeIndex } from './volume-index.ts'

export interface MatchRequest {
  readonly claim: PersistentVolumeClaim
  /** MAT-6: only reserved volumes count; free ones are the placement's to choose. */
  readonly delayed: boolean
  /** Volumes that are spoken for although the index does not show it yet. */
  readonly excluded?: (volumeName: string) => boolean
  /** Placement: the volume must be reachable from this node. */
  readonly node?: Node
}

/** `wrongNode`: a volume is reserved for the claim and cannot be used from the node; nothing else may be taken (WC-16). */
export type Match =
  | { readonly kind: 'reserved' | 'free'; readonly volume: PersistentVolume }
  | { readonly kind: 'wrongNode'; readonly volume: PersistentVolume }
  | { readonly kind: 'none' }

/** The volume names this claim; a uid, if there is one, must be the claim's (MAT-2). */
export function belongsTo(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const ref = volume.spec.claimRef
  if (ref === undefined || ref.namespace !== claim.metadata.namespace || ref.name !== claim.metadata.name) return false
  return !ref.uid || ref.uid === claim.metadata.uid
}

/** Throws when the claim's selector is invalid (MAT-11). */
export function findVolume(index: VolumeIndex, request: MatchRequest): Match {
  const { claim, node } = request
  // Reserved volumes are looked for over all sets of access modes first (WC-12), so that a free volume with fewer
  // modes cannot take the place of the one that somebody reserved, or that an interrupted bind already wrote.
  const reserved = findReserved(index, claim)
  if (reserved !== undefined) {
    if (node !== undefined && !isReachable(reserved, node)) return { kind: 'wrongNode', volume: reserved }
    return { kind: 'reserved', volume: reserved }
  }
  if (request.delayed && node === undefined) return { kind: 'none' }
  const free = findFree(index, request)
  return free === undefined ? { kind: 'none' } : { kind: 'free', volume: free }
}

function findReserved(index: VolumeIndex, claim: PersistentVolumeClaim): PersistentVolume | undefined {
  let best: PersistentVolume | undefined
  for (const volume of index.namedFor(keyOf(claim))) {
    // MAT-5, MAT-12: phase, selector and class do not matter; size, mode, attributes class and access modes do.
    if (!belongsTo(volume, claim) || !suits(volume, claim)) continue
    if (best === undefined || comesFirst(volume, best)) best = volume
  }
  return best
}

/** MAT-4 with the access modes of MAT-3. */
function suits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const bucket = bucketOf(volume)
  const wanted = bucketWanted(claim)
  return (
    !isDeleting(volume) &&
    volume.spec.capacity?.['storage'] !== undefined &&
    compareQuantities(volume.spec.capacity['storage'], requestOf(claim)) >= 0 &&
    bucket.mode === wanted.mode &&
    bucket.attributesClass === wanted.attributesClass &&
    offersModes(volume.spec.accessModes, claim.spec.accessModes)
  )
}

/** A volume that already carries the claim's uid is a bind half done and goes before a mere reservation (BND-4). */
function comesFirst(volume: PersistentVolume, best: PersistentVolume): boolean {
  const [hasUid, bestHasUid] = [volume, best].map((each) => Boolean(each.spec.claimRef?.uid))
  if (hasUid !== bestHasUid) return hasUid === true
  const [modes, bestModes] = [volume, best].map((each) => accessModeSet(each.spec.accessModes).length)
  if (modes !== bestModes) return modes! < bestModes!
  const bySize = compareQuantities(volume.spec.capacity?.['storage'], best.spec.capacity?.['storage'])
  return bySize < 0 || (bySize === 0 && volume.metadata.name < best.metadata.name)
}

function findFree(index: VolumeIndex, request: MatchRequest): PersistentVolume | undefined {
  const { claim } = request
  const size = parseQuantity(requestOf(claim))
  for (const group of index.groups(bucketWanted(claim))) {
    if (!offersModes(group.modes, claim.spec.accessModes)) continue
    for (let at = firstFitting(group.entries, size); at < group.entries.length; at++) {
      const { volume } = group.entries[at]!
      if (mayTake(volume, request)) return volume
    }
  }
  return undefined
}

/** What the index cannot answer: exclusion, labels, reachability. */
function mayTake(volume: PersistentVolume, { claim, excluded, node }: MatchRequest): boolean {
  if (excluded?.(volume.metadata.name) === true) return false
  if (claim.spec.selector !== undefined && !matchesSelector(claim.spec.selector, volume.metadata.labels ?? {}))
    return false
  return node === undefined || isReachable(volume, node)
}

/** Would this free volume do for this waiting claim? The same rules, asked from the volume's side. */
export function couldTake(entry: FreeVolume, claim: PersistentVolumeClaim): boolean {
  const { volume } = entry
  return (
    isFree(volume) &&
    compareAmounts(entry.size, parseQuantity(requestOf(claim))) >= 0 &&
    classOf(volume) === classOf(claim) &&
    suits(volume, claim) &&
    mayTake(volume, { claim, delayed: false })
  )
}

/** The node satisfies the volume's node affinity, if it has one (MAT-9). */
export function isReachable(volume: PersistentVolume, node: Node): boolean {
  const required = volume.spec.nodeAffinity?.required
  return required === undefined || matchesNodeSelector(required, factsOfNode(node))
}

export function requestOf(claim: PersistentVolumeClaim): string {
  return claim.spec.resources?.requests?.['storage'] ?? '0'
}

export function bucketWanted(claim: PersistentVolumeClaim): Bucket {
  return {
    className: classOf(claim),
    mode: claim.spec.volumeMode ?? 'Filesystem',
    attributesClass: claim.spec.volumeAttributesClassName ?? '',
  }
}

/** MAT-13: why a claim may not have the volume it names; the first reason, in this order. */
export function unfitReason(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const [has, wants] = [bucketOf(volume), bucketWanted(claim)]
  const bytes = (text: string | undefined) => wholeValue(parseQuantity(text ?? '0'))
  if (isDeleting(volume)) return `the volume is marked for deletion "${volume.metadata.name}"`
  if (bytes(volume.spec.capacity?.['storage']) < bytes(requestOf(claim))) return 'requested PV is too small'
  if (has.className !== wants.className) return 'storageClassName does not match'
  if (has.attributesClass !== wants.attributesClass) return 'volumeAttributesClassName does not match'
  if (has.mode !== wants.mode) return 'incompatible volumeMode'
  if (!offersModes(volume.spec.accessModes, claim.spec.accessModes)) return 'incompatible accessMode'
  return undefined
}
