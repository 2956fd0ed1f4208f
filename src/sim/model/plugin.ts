// Which volume type do simulated clusters use? The real CSI plugin's attaching half, with a driver name of the model.
import { csiVolumeName, pluginName, uniqueCsiVolumeName } from '../../api/names.ts'
import { createCsiAttachment, persistentSource } from '../../plugins/csi/attach.ts'
import type { CsiAttachDeps } from '../../plugins/csi/attach.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registered } from '../../volume/registry.ts'

export const modelDriver = 'model.hawser.dev'
export const modelVolume = (volumeHandle: string) => uniqueCsiVolumeName({ driver: modelDriver, volumeHandle })

export function csiRegistered(deps: CsiAttachDeps): Registered<ClusterPlugin> {
  return {
    name: pluginName('kubernetes.io/csi'),
    traits: { takesMountOptions: true, remountOnPodUpdate: false },
    supports: (spec) => spec.source.kind === 'csi',
    volumeName(spec) {
      const source = persistentSource(spec)
      return source ? csiVolumeName(source) : spec.name
    },
    plugin: createCsiAttachment(deps),
  }
}
