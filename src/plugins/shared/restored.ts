// How is a persistent volume described that was found on disk after a restart? By a spec good enough to clean it up (WART-25).

import type { PersistentVolume } from '../../api/generated/types.ts'
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
