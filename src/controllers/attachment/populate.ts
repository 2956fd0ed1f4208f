// Which attachable volumes does a pod want on its node? Claims are resolved from caches; one bad volume
// does not affect the others (rules AD-5, AD-6, ID-1, ID-5, ID-7).
import type { UniqueVolumeName } from '../../api/names.ts'
import { isControlledBy, keyFor } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts'
import { claimNameOf } from '../../api/pod-claims.ts'
import { VolumeError } from '../../volume/effect.ts'
import { sharedVolumeName } from '../../volume/identity.ts'
import { migrated } from '../../volume/migration.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { specOfPersistentVolume, specOfPodVolume } from '../../volume/spec.ts'

export interface Lookups {
  claim(key: string): PersistentVolumeClaim | undefined
  volume(name: string): PersistentVolume | undefined
}

interface WantedVolume {
  readonly volume: UniqueVolumeName
  readonly spec: VolumeSpec
}

export interface PodVolumes {
  readonly wanted: readonly WantedVolume[]
  /** Why the other volumes could not be resolved, in words, by the pod's volume name. */
  readonly problems: ReadonlyMap<string, string>
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

/** The unique name if the volume is attachable, undefined if its type knows no attaching (ID-5). */
export function attachableName(registry: Registry<ClusterPlugin>, spec: VolumeSpec): UniqueVolumeName | undefined {
  const plugin = registry.supporting(spec)
  if (!plugin?.plugin.attacher?.(spec)) return undefined
  return sharedVolumeName(plugin.name, plugin.volumeName(spec))
}

/** The name a PersistentVolume has as an attached volume, whether or not it is attachable just now. */
export function volumeNameOf(registry: Registry<ClusterPlugin>, spec: VolumeSpec): UniqueVolumeName | undefined {
  const plugin = registry.supporting(spec)
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

function unresolved(message: string): VolumeError {
  return new VolumeError('ClaimUnresolved', message, { effect: 'untried' })
}
