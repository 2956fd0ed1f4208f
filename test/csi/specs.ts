// Volume specs for tests: what the node agent makes of a PersistentVolume or of a pod's inline volume.
import type { CSIPersistentVolumeSource, CSIVolumeSource, PersistentVolume } from '../../src/api/types.ts'
import type { VolumeSpec } from '../../src/volume/spec.ts'

export function persistentVolumeSpec(persistentVolume: PersistentVolume, readOnly = false): VolumeSpec {
  const value = persistentVolume.spec?.csi as CSIPersistentVolumeSource
  const mode = persistentVolume.spec?.volumeMode ?? 'Filesystem'
  return {
    name: persistentVolume.metadata.name,
    from: 'persistentVolume',
    mode,
    readOnly,
    source: { kind: 'csi', value },
    persistentVolume,
  }
}

export function podVolumeSpec(volume: { readonly name: string; readonly csi: CSIVolumeSource }): VolumeSpec {
  return {
    name: volume.name,
    from: 'pod',
    mode: 'Filesystem',
    readOnly: volume.csi.readOnly ?? false,
    source: { kind: 'csi', value: volume.csi },
  }
}
