// Who makes a volume grow on the side of the control plane? Its plugin; for a FlexVolume whose driver is not installed
// here nobody has to: the node, where the driver is, does it all (MGR-8, FLEX-12).
import type { ClusterPlugin } from './plugin.ts'
import type { Registry } from './registry.ts'
import type { VolumeSpec } from './spec.ts'

export type Expander = Required<Pick<ClusterPlugin, 'expand'>> & Pick<ClusterPlugin, 'requiresResize'>

const leftToTheNode: Expander = { expand: async ({ newBytes }) => newBytes, requiresResize: () => true }

export function expanderOf(plugins: Registry<ClusterPlugin>, spec: VolumeSpec): Expander | undefined {
  const found = plugins.all().find((each) => each.supports(spec))
  if (!found) return spec.source.kind === 'flexVolume' ? leftToTheNode : undefined
  const { plugin } = found
  return plugin.expand && { ...plugin, expand: plugin.expand }
}
