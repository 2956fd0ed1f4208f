// Is a volume ill, as this node sees it? Asked of the storage every minute for what was mounted or tried here; the answers
// belong to the pods that use it (CSI-71, VM-13). A question that fails leaves what was known.
import { join } from 'node:path/posix'
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { PodVolumeHealth } from '../../api/generated/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import { pluginLabel } from '../../volume/identity.ts'
import { podVolumePath } from '../../volume/paths.ts'
import type { HealthCondition, NodePlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { ActualWorld } from '../volumes/actual.ts'
import type { DesiredMount, DesiredVolume, DesiredWorld } from '../volumes/desired.ts'

export interface VolumeHealth {
  /** MNT-16: from now on the storage may know of this volume on this node. */
  attempted(volume: UniqueVolumeName, pod: PodUid): void
  probe(signal: AbortSignal): Promise<void>
}

export interface VolumeHealthDeps {
  readonly log: Log
  readonly root: string
  readonly registry: Registry<NodePlugin>
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  /** What the storage said of a pod's volume, by its name in the pod. */
  tell(pod: PodUid, name: string, conditions: readonly HealthCondition[]): void
}

export function createVolumeHealth(deps: VolumeHealthDeps): VolumeHealth {
  const { desired, actual, registry } = deps
  const tried = new Map<UniqueVolumeName, Set<PodUid>>()
  const keyed = (volume: UniqueVolumeName) => tried.getOrInsertComputed(volume, () => new Set<PodUid>())

  const ask = async (item: DesiredVolume, mount: DesiredMount, signal: AbortSignal) => {
    const { volume, plugin: name } = item
    const plugin = registry.known(name)?.plugin
    const known = actual.items.get(volume)
    const target = podVolumePath(deps.root, mount.uid, name, mount.spec.name)
    // A raw device has no paths that a driver would know.
    const block = mount.spec.mode === 'Block'
    const path = !block && known?.pods.has(mount.uid) ? (plugin?.path?.(mount.spec, target) ?? target) : ''
    const stagingPath = !block && known && known.device.presence !== 'absent' ? known.device.path : ''
    try {
      const conditions = await plugin?.health?.({ spec: mount.spec, path, stagingPath }, signal)
      if (conditions) for (const outer of mount.outerNames) deps.tell(mount.uid, outer, conditions)
    } catch (error) {
      if (!signal.aborted) deps.log.debug('volume health unknown', { volume, error })
    }
  }
  return {
    attempted: (volume, pod) => void keyed(volume).add(pod),
    async probe(signal) {
      for (const volume of tried.keys()) if (!desired.items.has(volume)) tried.delete(volume)
      // One after the other for each driver, so that one that hangs keeps nobody else waiting (WART-28).
      const questions = Map.groupBy(askable(), ({ item, mount }) => pluginLabel(item.plugin, mount.spec))
      await Promise.all(
        [...questions.values()].map(async (list) => {
          for (const { item, mount } of list) if (!signal.aborted) await ask(item, mount, signal)
        }),
      )
    },
  }

  function askable(): { item: DesiredVolume; mount: DesiredMount }[] {
    return [...desired.items.values()].flatMap((item) => {
      if (!registry.known(item.plugin)?.plugin.health) return []
      const isTried = (pod: PodUid) =>
        tried.get(item.volume)?.has(pod) === true || actual.items.get(item.volume)?.pods.has(pod) === true
      const mounts = [...item.pods.values()].filter(({ uid, spec }) => spec.persistentVolume && isTried(uid))
      return mounts.map((mount) => ({ item, mount }))
    })
  }
}

/** The same list if nothing of weight changed: words alone are no news (status and reason are what is compared). */
export function withHealth(
  present: readonly PodVolumeHealth[],
  name: string,
  conditions: readonly HealthCondition[],
  now: number,
): readonly PodVolumeHealth[] {
  const before = present.find((each) => each.name === name)
  const identity = (list: readonly { readonly status: string; readonly reason: string }[]) =>
    [...new Set(list.map(({ status, reason }) => join(status, reason)))].toSorted().join()
  if (identity(before?.healthConditions ?? []) === identity(conditions)) return present
  const healthConditions = conditions.map(({ message, ...rest }) => ({ ...rest, ...(message && { message }) }))
  const entry = { name, ...(conditions.length > 0 && { healthConditions }), lastTransitionTime: timestamp(now) }
  return before ? present.map((each) => (each === before ? entry : each)) : [...present, entry]
}
