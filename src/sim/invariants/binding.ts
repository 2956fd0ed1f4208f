// What must be true of claims and volumes? No two claims share a volume at any time; in the end every claim is bound, and its
// volume says the same.
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'

/** True at every moment: a volume belongs to one claim at most. */
export function sharedVolumes(claims: readonly PersistentVolumeClaim[]): readonly string[] {
  const owners = new Map<string, string>()
  return claims.flatMap(({ metadata, spec, status }) => {
    const volume = spec?.volumeName
    if (!volume || status?.phase !== 'Bound') return []
    const owner = owners.get(volume)
    owners.set(volume, metadata.name)
    return owner === undefined ? [] : [`claims ${owner} and ${metadata.name} are both bound to ${volume}`]
  })
}

/** True once all is at rest: both sides of every binding agree. */
export function unboundClaims(
  claims: readonly PersistentVolumeClaim[],
  volumes: readonly PersistentVolume[],
): readonly string[] {
  const byName = new Map(volumes.map((volume) => [volume.metadata.name, volume]))
  return claims.flatMap(({ metadata, spec, status }) => {
    if (status?.phase !== 'Bound') return [`claim ${metadata.name} is ${status?.phase ?? 'without a phase'}`]
    const volume = byName.get(spec?.volumeName ?? '')
    if (volume?.spec?.claimRef?.uid !== metadata.uid)
      return [`volume ${spec?.volumeName} does not know claim ${metadata.name}`]
    return volume?.status?.phase === 'Bound' ? [] : [`volume ${volume?.metadata.name} is ${volume?.status?.phase}`]
  })
}
