// Who wants what? Follows pods into the desired world: what a pod asked for is remembered by its uid, so that it
// can be taken back exactly, even when its claim has vanished meanwhile (rules AD-5 … AD-7, ADP-1 … ADP-3).
import { nodeName, podUid } from '../../api/names.ts'
import type { NodeName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import { isTerminated } from '../../api/pod-claims.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { DesiredWorld } from './desired.ts'
import type { NodeWorld } from './nodes.ts'
import type { Lookups } from './populate.ts'
import { attachableName, resolvePodVolumes } from './populate.ts'

export interface PodFollower {
  /** A pod appeared or changed, or something it refers to did. Looking twice adds nothing. */
  seen(pod: Pod): void
  gone(pod: Pod): void
  /** A driver may have changed its mind about attaching: what is no longer attachable is no longer wanted (ADP-2). */
  recheck(): void
}

export interface PodFollowerDeps {
  readonly desired: DesiredWorld
  readonly nodes: NodeWorld
  readonly lookups: Lookups
  readonly registry: Registry<ClusterPlugin>
  readonly clock: Clock
  readonly log: Log
}

export function createPodFollower({ desired, nodes, lookups, registry, clock, log }: PodFollowerDeps): PodFollower {
  const followed = new Map<PodUid, { readonly node: NodeName; readonly volumes: Set<UniqueVolumeName> }>()

  const drop = (uid: PodUid) => {
    const known = followed.get(uid)
    followed.delete(uid)
    for (const volume of known?.volumes ?? []) desired.apply({ kind: 'unwanted', volume, node: known!.node, pod: uid })
  }
  const seen = (pod: Pod) => {
    if (!pod.spec?.nodeName || !pod.spec.volumes?.length) return
    const uid = podUid(pod.metadata.uid ?? '')
    if (isTerminated(pod)) return drop(uid)
    const node = nodeName(pod.spec.nodeName)
    // The kubelet of an unmanaged node attaches by itself (C-15); the pod is looked at again when that changes.
    if (!nodes.items.get(node)?.managed) return
    const { wanted, problems } = resolvePodVolumes(pod, lookups, registry)
    for (const [volume, problem] of problems)
      log.debug('volume not resolved', { pod: pod.metadata.name, volume, problem })
    const known = followed.get(uid) ?? { node, volumes: new Set() }
    const reference = { namespace: pod.metadata.namespace ?? '', name: pod.metadata.name, uid }
    for (const { volume, spec } of wanted) {
      if (known.volumes.has(volume)) continue
      known.volumes.add(volume)
      followed.set(uid, known)
      desired.apply({ kind: 'wanted', volume, node, spec, pod: reference, at: clock.now() })
    }
  }
  const recheck = () => {
    for (const { volume, spec } of [...desired.items.values()]) {
      if (attachableName(registry, spec) !== undefined) continue
      for (const [uid, { node, volumes }] of followed) {
        if (volumes.delete(volume)) desired.apply({ kind: 'unwanted', volume, node, pod: uid })
      }
    }
  }
  return { seen, recheck, gone: (pod) => drop(podUid(pod.metadata.uid ?? '')) }
}
