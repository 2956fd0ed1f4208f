// Who makes a volume grow on the side of the control plane? Its plugin; for a FlexVolume whose driver is not installed
// here nobody has to: the node, where the driver is, does it all (MGR-8, FLEX-12).
import type { ClusterPlugin } from './plugin.ts'
import type { Registry } from './registry.ts'
import { hasSource } from './spec.ts'
import type { VolumeSpec } from './spec.ts'

export interface Expander extends Required<Pick<ClusterPlugin, 'expand'>>, Pick<ClusterPlugin, 'requiresResize'> {
  /** The resizer's name in the claim's events and conditions. */
  readonly name: string
}

export function expanderOf(plugins: Registry<ClusterPlugin>, spec: VolumeSpec): Expander | undefined {
  const found = plugins.supporting(spec)
  if (!found) return hasSource(spec, 'flexVolume') ? leftToTheNode(spec.source.value.driver) : undefined
  const { name, plugin } = found
  return plugin.expand && { ...plugin, name, expand: plugin.expand }
}

function leftToTheNode(driver: string): Expander {
  return { name: driver, expand: async ({ newBytes }) => newBytes, requiresResize: () => true }
}
