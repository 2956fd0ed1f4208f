// What is a persistent volume of which only traces on disk are left? A spec good enough to clean up by (WART-25).

import type { PersistentVolume } from '../../api/types.ts'
import type { RestoreRequest } from '../../volume/plugin.ts'
import type { VolumeSource, VolumeSpec } from '../../volume/spec.ts'

export function restoredVolume({ volumeName, mode }: RestoreRequest, source: VolumeSource): VolumeSpec {
  const persistentVolume: PersistentVolume = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: volumeName },
    spec: { volumeMode: mode, [source.kind]: source.value },
  }
  return { name: volumeName, from: 'persistentVolume', mode, readOnly: false, source, persistentVolume }
}
