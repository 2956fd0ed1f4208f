// Which attachable volumes does a pod want on its node? Claims are resolved from caches; one bad volume
// does not affect the others (rules AD-5, AD-6, ID-1, ID-5, ID-7).
import type { PluginName, UniqueVolumeName } from '../../api/names.ts'
import { isControlledBy, keyFor } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/types.ts'
import { VolumeError } from '../../volume/effect.ts'
import { sharedVolumeName, splitVolumeName } from '../../volume/identity.ts'
import { migrated } from '../../volume/migration.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { hasSource, specOfPersistentVolume, specOfPodVolume } from '../../volume/spec.ts'

export interface Lookups {
  claim(key: string): PersistentVolumeClaim | undefined
  volume(name: string): PersistentVolume | undefined
}

export interface WantedVolume {
  readonly volume: UniqueVolumeName
  readonly spec: VolumeSpec
}

export interface PodVolumes {
  readonly wanted: readonly WantedVolume[]
  /** Why the other volumes could not be resolved, in words, by the pod's volume name. */
  readonly problems: ReadonlyMap<string, string>
}

/** ID-7: nothing of this pod runs any more, so its volumes are no longer wanted. */
export function isTerminated(pod: Pod): boolean {
  const status = pod.status
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return true
  if (!pod.metadata.deletionTimestamp) return false
  const statuses = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ]
  return statuses.every(({ state }) => state?.running === undefined)
}

export function resolvePodVolumes(pod: Pod, lookups: Lookups, registry: Registry<ClusterPlugin>): PodVolumes {
  const wanted = new Map<UniqueVolumeName, WantedVolume>()
  const problems = new Map<string, string>()
  for (const volume of pod.spec?.volumes ?? []) {
    try {
      const spec = migrated(specOf(volume, pod, lookups), pod.metadata.namespace)
      const name = attachableName(registry, spec)
      // One volume may stand in the pod under several names (ID-4); it is wanted once.
      if (name !== undefined && !wanted.has(name)) wanted.set(name, { volume: name, spec })
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error
      problems.set(volume.name, error.message)
    }
  }
  return { wanted: [...wanted.values()], problems }
}

/** The keys of the claims a pod refers to, generic ephemeral volumes included (AD-7). */
export function claimKeysOf(pod: Pod): readonly string[] {
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const name = claimNameOf(pod, volume)
    return name === undefined ? [] : [keyFor(pod.metadata.namespace, name)]
  })
}

/** The unique name if the volume is attachable, undefined if its type knows no attaching (ID-5). */
export function attachableName(registry: Registry<ClusterPlugin>, spec: VolumeSpec): UniqueVolumeName | undefined {
  const plugin = registry.all().find((candidate) => candidate.supports(spec))
  if (!plugin?.plugin.attacher?.(spec)) return undefined
  return sharedVolumeName(plugin.name, plugin.volumeName(spec))
}

/** The name a PersistentVolume has as an attached volume, whether or not it is attachable just now. */
export function volumeNameOf(registry: Registry<ClusterPlugin>, spec: VolumeSpec): UniqueVolumeName | undefined {
  const plugin = registry.all().find((candidate) => candidate.supports(spec))
  return plugin && sharedVolumeName(plugin.name, plugin.volumeName(spec))
}

export function attacherFor(registry: Registry<ClusterPlugin>, spec: VolumeSpec): Attacher {
  const found = registry.find(spec)
  const attacher = found.plugin.attacher?.(spec)
  if (attacher) return attacher
  throw new VolumeError('NotAttachable', `volume plugin ${found.name} does not attach this volume`, {
    effect: 'untried',
  })
}

/** MET-14: `kubernetes.io/csi:<driver>` for CSI volumes, the plugin's name otherwise. */
export function pluginLabel(spec: VolumeSpec | undefined, volume: UniqueVolumeName): string {
  const plugin: PluginName = splitVolumeName(volume).plugin
  return spec && hasSource(spec, 'csi') ? `${plugin}:${spec.source.value.driver}` : plugin
}

/** The volume behind a claim of the pod, or the inline volume itself. */
function specOf(volume: Volume, pod: Pod, lookups: Lookups): VolumeSpec {
  const claimName = claimNameOf(pod, volume)
  if (claimName === undefined) return specOfPodVolume(volume)
  const key = keyFor(pod.metadata.namespace, claimName)
  const claim = lookups.claim(key)
  if (!claim) throw unresolved(`failed to find PVC ${key} in the cache`)
  if (volume.ephemeral && !isControlledBy(claim, pod)) {
    throw unresolved(
      `PVC ${key} was not created for pod ${keyFor(pod.metadata.namespace, pod.metadata.name)} (pod is not owner)`,
    )
  }
  const volumeName = claim.spec?.volumeName
  if (claim.status?.phase !== 'Bound' || !volumeName) throw unresolved(`PVC ${key} is not bound`)
  const persistentVolume = lookups.volume(volumeName)
  if (!persistentVolume) throw unresolved(`failed to find PV ${volumeName} in the cache`)
  if (persistentVolume.spec?.claimRef?.uid !== claim.metadata.uid) {
    throw unresolved(`PV ${volumeName} is bound to another claim than ${key}`)
  }
  return specOfPersistentVolume(persistentVolume, volume.persistentVolumeClaim?.readOnly === true)
}

function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim) return volume.persistentVolumeClaim.claimName
  return volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined
}

function unresolved(message: string): VolumeError {
  return new VolumeError('ClaimUnresolved', message, { effect: 'untried' })
}
