// What does a fresh start know? First what nodes list as attached, then attachments nobody lists, then what
// PersistentVolumes explain (rules AD-2, AD-3, AD-4). After this, a dangling attachment is wanted by a pod or detached.
import { nodeName, uniqueVolumeName } from '../../api/names.ts'
import type { UniqueVolumeName } from '../../api/names.ts'
import type { Node, PersistentVolume, VolumeAttachment } from '../../api/generated/types.ts'
import { VolumeError } from '../../volume/effect.ts'
import { migrated } from '../../volume/migration.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { ActualWorld } from './actual.ts'
import { nameOf } from './nodes.ts'
import { attachableName, volumeNameOf } from './populate.ts'

/** AD-2: everything in volumesAttached is attached; all we have of it is a name. */
export function recoverNode(actual: ActualWorld, node: Node): void {
  for (const { name, devicePath } of node.status?.volumesAttached ?? []) {
    // The node's own status was read in the same moment: nothing needs to be assumed about its use (nodeVersion −1).
    const at = { volume: uniqueVolumeName(name), node: nameOf(node) }
    actual.apply({ kind: 'foundInNodeStatus', ...at, devicePath: devicePath ?? '', nodeVersion: -1 })
  }
}

/** AD-3: an attachment that no node lists may or may not be there. What the object says of itself is not consulted. */
export function recoverAttachment(
  actual: ActualWorld,
  attachment: VolumeAttachment,
  volume: (name: string) => PersistentVolume | undefined,
  registry: Registry<ClusterPlugin>,
): void {
  const found = volumeOf(attachment, volume, registry)
  if (!found) return
  actual.apply({ kind: 'foundAttachment', ...found, node: nodeName(attachment.spec.nodeName) })
}

/** A volume that is only a name learns its spec, so that an exclusive volume is not taken for a shared one (WA-15). */
export function explain(
  actual: ActualWorld,
  persistentVolume: PersistentVolume,
  registry: Registry<ClusterPlugin>,
): void {
  if (actual.items.size === 0) return
  const spec = specOrNothing(persistentVolume)
  const volume = spec && volumeNameOf(registry, spec)
  const item = volume && actual.items.get(volume)
  if (!item || item.identity.kind === 'known') return
  for (const node of item.nodes.keys()) {
    actual.apply({ kind: 'specLearned', volume, node, spec })
    return
  }
}

/** The attached volume an attachment object is about; undefined when its PersistentVolume or plugin is unknown. */
export function volumeOf(
  attachment: VolumeAttachment,
  volume: (name: string) => PersistentVolume | undefined,
  registry: Registry<ClusterPlugin>,
): { readonly volume: UniqueVolumeName; readonly spec: VolumeSpec } | undefined {
  const persistentVolume = volume(attachment.spec.source.persistentVolumeName ?? '')
  const spec = persistentVolume && specOrNothing(persistentVolume)
  const name = spec && attachableName(registry, spec)
  return name === undefined ? undefined : { volume: name, spec: spec! }
}

function specOrNothing(persistentVolume: PersistentVolume): VolumeSpec | undefined {
  try {
    return migrated(specOfPersistentVolume(persistentVolume, false))
  } catch (error) {
    if (error instanceof VolumeError) return undefined
    throw error
  }
}
