// What keeps a claim from a volume? In the words of whoever looks at both, and in the order in which binding asks.
import { classOf } from '../api/storage-class.ts'
import { isDeleting } from '../api/meta.ts'
import { compareQuantities } from '../api/quantity.ts'
import { matchesSelector } from '../api/selectors.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../api/generated/types.ts'
import { offersModes } from '../volume/access.ts'
import type { Facts } from './facts.ts'

const most = 3

/** Why none of the volumes with the claim's class will do; the first few of them, each with its own reason. */
export function whyNoneFits({ volumes }: Facts, claim: PersistentVolumeClaim): string {
  const className = classOf(claim)
  const candidates = volumes.filter((volume) => classOf(volume) === className)
  if (candidates.length === 0)
    return className === '' ? 'there is no volume without a class' : `there is no volume of class ${className}`
  // What is free and nearly fits tells more than what belongs to others.
  const reasons = candidates
    .map((volume) => ({ volume, taken: whoHas(volume, claim) }))
    .toSorted((one, other) => Number(one.taken !== undefined) - Number(other.taken !== undefined))
    .slice(0, most)
    .map(({ volume, taken }) => `${volume.metadata.name} ${taken ?? unfit(volume, claim) ?? unchosen(volume, claim)}`)
  const rest = candidates.length - reasons.length
  return [...reasons, ...(rest > 0 ? [`and ${rest} more do not fit`] : [])].join('; ')
}

/** Somebody else's, or kept for somebody who is gone. Undefined when it is free, or ours. */
export function whoHas({ spec, status }: PersistentVolume, { metadata }: PersistentVolumeClaim): string | undefined {
  const { claimRef } = spec
  if (!claimRef) return undefined
  const isNamed = claimRef.name === metadata.name && claimRef.namespace === metadata.namespace
  if (isNamed && (!claimRef.uid || claimRef.uid === metadata.uid)) return undefined
  if (isNamed) return 'is kept for a deleted claim of the same name'
  const isKept = status?.phase === 'Released' || status?.phase === 'Failed'
  return `${isKept ? 'is kept for the deleted claim' : 'is bound to claim'} ${claimRef.namespace}/${claimRef.name}`
}

/** What no reservation helps over (MAT-4). */
export function unfit(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const { capacity, volumeMode = 'Filesystem', accessModes = [], volumeAttributesClassName = '' } = volume.spec
  const wants = claim.spec
  const { volumeMode: mode = 'Filesystem' } = wants
  const [size, wanted] = [capacity?.['storage'] ?? '0', wants.resources?.requests?.['storage'] ?? '0']
  if (isDeleting(volume)) return 'is being deleted'
  if (compareQuantities(size, wanted) < 0) return `has ${size}, the claim requests ${wanted}`
  if (volumeMode !== mode) return `has volume mode ${volumeMode}, the claim requests ${mode}`
  if (!offersModes(accessModes, wants.accessModes))
    return `offers ${accessModes.join(', ') || 'no access mode'}, the claim requests ${wants.accessModes?.join(', ')}`
  const attributes = wants.volumeAttributesClassName ?? ''
  if (volumeAttributesClassName !== attributes)
    return `has attributes class "${volumeAttributesClassName}", the claim requests "${attributes}"`
  return undefined
}

/** What a claim that names its volume must still agree with (MAT-13). */
export function unfitWhenNamed(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const [has, wants] = [classOf(volume), classOf(claim)]
  return unfit(volume, claim) ?? (has === wants ? undefined : `has class "${has}", the claim requests "${wants}"`)
}

function unchosen({ metadata, status }: PersistentVolume, { spec }: PersistentVolumeClaim): string {
  if (spec.selector && !matchesSelector(spec.selector, metadata.labels))
    return 'does not have the labels of the claim’s selector'
  return status?.phase === 'Available' ? 'fits, and is about to be bound' : `is in phase ${status?.phase ?? 'Pending'}`
}

/** The volume that names this very claim and that the claim cannot have, with the reason. */
export function reservedButUnfit(
  { volumes }: Facts,
  claim: PersistentVolumeClaim,
): { readonly volume: PersistentVolume; readonly reason: string } | undefined {
  for (const volume of volumes) {
    const reason = volume.spec.claimRef && !whoHas(volume, claim) ? unfit(volume, claim) : undefined
    if (reason !== undefined) return { volume, reason }
  }
  return undefined
}

/** How a volume that is there denies a claim that counts it as its own. */
export function denial(volume: PersistentVolume, claim: PersistentVolumeClaim): string {
  if (!volume.spec.claimRef) return 'has no claimRef'
  return whoHas(volume, claim) ?? 'has a claimRef without the uid of the claim'
}
