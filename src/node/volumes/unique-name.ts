// What is a volume called on this node, and what can its plugin do with it?
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import { podVolumeName, sharedVolumeName } from '../../volume/identity.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registered } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

/** What the plugin says of this spec. Block volumes have a device stage of their own (ID-5). */
export function abilities({ plugin }: Registered<NodePlugin>, spec: VolumeSpec) {
  const attachable = plugin.attachable?.(spec) ?? false
  const deviceMountable =
    plugin.device?.(spec) !== undefined || (spec.mode === 'Block' && plugin.block?.(spec) !== undefined)
  return { attachable, deviceMountable }
}

/** Pods share the name of a volume that has a device; any other volume belongs to one pod (ID-2). */
export function uniqueName(plugin: Registered<NodePlugin>, spec: VolumeSpec, pod: PodUid): UniqueVolumeName {
  const { attachable, deviceMountable } = abilities(plugin, spec)
  return attachable || deviceMountable
    ? sharedVolumeName(plugin.name, plugin.volumeName(spec))
    : podVolumeName(plugin.name, pod, spec.name)
}
