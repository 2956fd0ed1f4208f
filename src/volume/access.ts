// Who may use a volume at the same time? Access modes, attaching to several nodes, the single-pod writer.
import type { AccessMode } from '../api/access-modes.ts'
import { accessModes } from '../api/access-modes.ts'
import type { PersistentVolume } from '../api/generated/types.ts'
import type { VolumeSpec } from './spec.ts'

/** May several nodes hold the volume? Unknown specs may; the answer decides the operation's key (ID-6). */
export function allowsMultiAttach(spec: VolumeSpec | undefined): boolean {
  if (spec === undefined) return true
  if (!spec.persistentVolume) return spec.source.kind !== 'azureDisk' && spec.source.kind !== 'cinder'
  const modes = spec.persistentVolume.spec?.accessModes ?? []
  return modes.length === 0 || modes.includes('ReadWriteMany') || modes.includes('ReadOnlyMany')
}

/** Only one pod may use the volume, wherever it runs (MNT-5). */
export function isSinglePodWriter(persistentVolume: PersistentVolume | undefined): boolean {
  const modes = persistentVolume?.spec?.accessModes ?? []
  return modes.length === 1 && modes[0] === 'ReadWriteOncePod'
}

/** The set of modes without duplicates, in the fixed order (MAT-3). */
export function accessModeSet(modes: readonly string[] | undefined): readonly AccessMode[] {
  return accessModes.filter((mode) => modes?.includes(mode))
}

/** Does the offer contain every requested mode? RWO does not satisfy RWOP nor the reverse. */
export function offersModes(offered: readonly string[] | undefined, requested: readonly string[] | undefined): boolean {
  return (requested ?? []).every((mode) => offered?.includes(mode) === true)
}
