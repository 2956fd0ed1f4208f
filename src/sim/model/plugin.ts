// Which volume type do simulated clusters use? The real CSI plugin's attaching half, with a driver name of the model.
import { pluginName } from '../../api/names.ts'
import { createCsiAttachment, persistentSource } from '../../plugins/csi/attach.ts'
import type { CsiAttachDeps } from '../../plugins/csi/attach.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registered } from '../../volume/registry.ts'

export const modelDriver = 'model.hawser.dev'

export function csiRegistered(deps: CsiAttachDeps): Registered<ClusterPlugin> {
  return {
    name: pluginName('kubernetes.io/csi'),
    traits: { takesMountOptions: true, remountOnPodUpdate: false },
    supports: (spec) => spec.source.kind === 'csi',
    volumeName(spec) {
      const source = persistentSource(spec)
      return source ? `${source.driver}^${source.volumeHandle}` : spec.name
    },
    plugin: createCsiAttachment(deps),
  }
}
