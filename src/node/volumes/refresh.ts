// When is a mounted volume set up again? When an object whose contents it shows changes, when its pod changes, and now and then
// for what changes by time (REC-9).
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { DesiredVolume, DesiredWorld } from './desired.ts'

export interface RefreshDeps {
  readonly clock: Clock
  readonly registry: Registry<NodePlugin>
  readonly desired: DesiredWorld
  ofPod(pod: PodUid): readonly DesiredVolume[]
}

/** For what changes by time (tokens, republish), C-13; slower for what we watch anyway. */
const refreshMs = 60_000
const slowRefreshMs = 600_000

/** The pod changed: everything that its plugin sets up again on a sync. */
export function refreshPod(deps: RefreshDeps, uid: PodUid): void {
  for (const { volume } of refreshable(deps, uid)) refresh(deps, uid, volume, true)
}

/** An object changed whose contents this volume of the pod shows. */
export function refreshNamed(deps: RefreshDeps, uid: PodUid, outerName: string): void {
  for (const { volume } of volumesNamed(deps, uid, outerName)) refresh(deps, uid, volume, true)
}

export function volumesNamed({ ofPod }: RefreshDeps, uid: PodUid, outerName: string): readonly DesiredVolume[] {
  return ofPod(uid).filter(({ pods }) => pods.get(uid)?.outerNames.includes(outerName))
}

/** Refreshes what is due by time. Answers with when that was last done, and when it is due next, if ever. */
export function refreshByTime(
  deps: RefreshDeps,
  uid: PodUid,
  refreshedAt: number,
): { readonly refreshedAt: number; readonly dueAt: number | undefined } {
  const { clock, registry } = deps
  const volumes = refreshable(deps, uid)
  if (volumes.length === 0) return { refreshedAt, dueAt: undefined }
  const byTime = volumes.some((item) => changesByTime(registry, item, uid))
  const periodMs = byTime ? refreshMs : slowRefreshMs
  if (refreshedAt + periodMs > clock.now()) return { refreshedAt, dueAt: refreshedAt + periodMs }
  // That time passed is no reason to retry at once what failed before (INV-11).
  for (const { volume } of volumes) refresh(deps, uid, volume, false)
  return { refreshedAt: clock.now(), dueAt: clock.now() + periodMs }
}

function refreshable({ ofPod, registry }: RefreshDeps, uid: PodUid): readonly DesiredVolume[] {
  return ofPod(uid).filter((item) => {
    const mount = item.pods.get(uid)!
    const found = registry.known(item.plugin)
    return found?.plugin.remountRequired?.(mount.spec) ?? found?.traits.remountOnPodUpdate ?? false
  })
}

function refresh({ clock, desired }: RefreshDeps, pod: PodUid, volume: UniqueVolumeName, changed: boolean): void {
  desired.apply({ kind: 'refresh', volume, pod, changed, at: clock.now() })
}

function changesByTime(registry: Registry<NodePlugin>, { plugin, pods }: DesiredVolume, pod: PodUid): boolean {
  return registry.known(plugin)?.traits.changesByTime?.(pods.get(pod)!.spec) ?? false
}
