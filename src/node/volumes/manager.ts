// What does the rest of the agent ask about volumes? Are a pod's volumes there, are they gone, which are in use, where do
// containers find them. Answers come on events; a wait that fails names the volumes that keep it (VM-2 … VM-11).
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import { DeadlineExceeded } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import { podDeviceDirectory, podVolumePath } from '../../volume/paths.ts'
import type { NodePlugin, PluginTraits } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualVolume, ActualWorld } from './actual.ts'
import { heldByPod, isPresent } from './actual.ts'
import { usedVolumes } from './claims.ts'
import type { DesiredVolume, DesiredWorld } from './desired.ts'
import { indexByPod } from './desired.ts'
import type { Populator } from './populate.ts'
import type { Reconciler } from './reconcile.ts'

export interface VolumeManager {
  /** Resolves when every volume of the pod may be used; throws VolumesNotReady otherwise (VM-2 … VM-4). */
  mounted(pod: Pod, signal: AbortSignal): Promise<void>
  /** Resolves when nothing of the pod's volumes is mounted or in doubt (VM-7, stricter: doubt counts). */
  unmounted(pod: PodUid, signal: AbortSignal): Promise<void>
  /** Outer name → where containers find it (VM-8). */
  mountedVolumes(pod: PodUid): ReadonlyMap<string, MountedVolume>
  possiblyMounted(pod: PodUid): readonly UniqueVolumeName[]
  /** Sorted and unique (VM-9). */
  volumesInUse(): readonly UniqueVolumeName[]
  /** Groups that volumes of the pod ask for, beside those the pod names itself (VM-10). */
  extraGroups(pod: Pod): readonly number[]
}

export interface MountedVolume {
  readonly volume: UniqueVolumeName
  readonly spec: VolumeSpec
  readonly mode: 'Filesystem' | 'Block'
  /** The directory to bind into containers; for block volumes the link to the device. */
  readonly path: string
  readonly readOnly: boolean
  /** What the plugin says of its type; unknown while the plugin is gone. */
  readonly traits: PluginTraits | undefined
  /** For block volumes: this pod's device node, which the holder keeps open. */
  readonly mapPath: string
}

/** VM-4's sentence, with what it is made of. */
export class VolumesNotReady extends Error {
  override readonly name = 'VolumesNotReady'
  readonly unmounted: readonly string[]
  /** Why the wait ended: an error of a volume, its time, or that the node can hold no more volumes (VM-5). */
  readonly why: 'error' | 'time' | 'exhausted'
  constructor({ unmounted, unattached, unprocessed }: Standing, cause: string, why: VolumesNotReady['why']) {
    const list = (names: readonly string[]) => `[${[...names].sort().join(' ')}]`
    super(
      (why === 'exhausted' ? 'Node has reached its volume attachment limit, rejecting pod. ' : '') +
        `unmounted volumes=${list(unmounted)}, unattached volumes=${list(unattached)}, ` +
        `failed to process volumes=${list(unprocessed)}: ${cause}`,
    )
    this.unmounted = unmounted
    this.why = why
  }
}

/** Outer names the pod expects, by how far each has got. */
interface Standing {
  readonly uid: PodUid
  readonly unmounted: readonly string[]
  readonly unattached: readonly string[]
  readonly unprocessed: readonly string[]
}

export interface ManagerDeps {
  readonly clock: Clock
  readonly root: string
  readonly registry: Registry<NodePlugin>
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly populator: Populator
  readonly reconciler: Pick<Reconciler, 'isBusy' | 'onQuiet'>
}

/** How long a pod waits before it is told which volumes keep it (C-8). */
const waitMs = 123_000

/** What the functions of this file share. */
interface Managing {
  readonly deps: ManagerDeps
  /** Which volumes a pod wants. */
  ofPod(pod: PodUid): readonly DesiredVolume[]
  /** Which volumes a pod holds, surely or not. */
  heldBy(pod: PodUid): readonly ActualVolume[]
  /** Who waits for which pod: a change concerns one pod, and nobody else is asked. */
  readonly waiters: Map<PodUid, Set<() => void>>
}

export function createVolumeManager(deps: ManagerDeps): VolumeManager {
  const { desired, actual, populator, reconciler } = deps
  const waiters: Managing['waiters'] = new Map()
  const managing: Managing = { deps, ofPod: indexByPod(desired), heldBy: heldByPod(actual), waiters }
  const notify = (pod: PodUid) => waiters.get(pod)?.forEach((attempt) => attempt())
  // Only a pod's own mounts can end its wait; what happens to devices cannot.
  actual.subscribe((_, event) => ('pod' in event && event.pod !== undefined ? notify(event.pod) : undefined))
  reconciler.onQuiet(notify)
  populator.onChange(notify)
  populator.onNote(notify)
  const possiblyMounted = (pod: PodUid) => managing.heldBy(pod).map(({ volume }) => volume)
  return {
    mounted: (pod, signal) => untilMounted(managing, pod, signal),
    async unmounted(pod, signal) {
      // A mount under way when the pod left is waited for and undone: only then is there nothing.
      const gone = () => !reconciler.isBusy(pod) && possiblyMounted(pod).length === 0
      await until(managing, pod, () => (gone() ? true : undefined), signal)
    },
    mountedVolumes(pod) {
      const found = new Map<string, MountedVolume>()
      for (const item of managing.ofPod(pod)) {
        if (!isPresent(actual.items.get(item.volume), pod)) continue
        const mounted = describe(deps, item, pod)
        for (const name of item.pods.get(pod)!.outerNames) found.set(name, mounted)
      }
      return found
    },
    possiblyMounted,
    volumesInUse() {
      const names = new Set<UniqueVolumeName>()
      for (const item of desired.items.values()) if (item.attachable) names.add(item.volume)
      for (const item of actual.items.values()) if (isAttached(deps, item)) names.add(item.volume)
      return [...names].sort()
    },
    extraGroups(pod) {
      const uid = podUid(pod.metadata.uid ?? '')
      const given = new Set(pod.spec?.securityContext?.supplementalGroups ?? [])
      const groups = new Set<number>()
      for (const { pods } of managing.heldBy(uid)) {
        const mount = pods.get(uid)
        const group = mount?.presence === 'present' ? parseGroup(mount.group) : undefined
        if (group !== undefined && !given.has(group)) groups.add(group)
      }
      return [...groups]
    },
  }
}

async function untilMounted(managing: Managing, pod: Pod, signal: AbortSignal): Promise<void> {
  const { clock, populator } = managing.deps
  const uid = podUid(pod.metadata.uid ?? '')
  if (isComplete(managing, pod, uid) && !populator.hasErrors(uid)) return
  using deadline = clock.deadline(waitMs, signal)
  const check = () => {
    if (isComplete(managing, pod, uid)) return { cause: undefined }
    return populator.hasErrors(uid) ? { cause: populator.popErrors(uid).join('; ') } : undefined
  }
  let end: { readonly cause: string | undefined; readonly why: 'error' | 'time' }
  try {
    end = { ...(await until(managing, uid, check, deadline.signal)), why: 'error' }
  } catch (error) {
    if (!(error instanceof DeadlineExceeded) || signal.aborted) throw error
    end = { cause: 'context deadline exceeded', why: 'time' }
    populator.reprocess(uid) // a change that we did not hear of is read now
  }
  if (end.cause === undefined) return
  const failure = await notReady(managing, pod, end.cause, end.why, signal)
  if (failure) throw failure
}

/** Calls `check` now and after every change that may concern the pod, until it answers. */
function until<T>({ waiters }: Managing, uid: PodUid, check: () => T | undefined, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      try {
        const answer = check()
        if (answer !== undefined) end(() => resolve(answer))
      } catch (error) {
        end(() => reject(error))
      }
    }
    const end = (settle: () => void) => {
      signal.removeEventListener('abort', onAbort)
      const others = waiters.get(uid)
      if (others?.delete(attempt) && others.size === 0) waiters.delete(uid)
      settle()
    }
    const onAbort = () => end(() => reject(signal.reason))
    if (signal.aborted) return reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    waiters.set(uid, (waiters.get(uid) ?? new Set()).add(attempt))
    attempt()
  })
}

/** By the names that the pod's volumes have in its spec. */
function wantedByName({ ofPod }: Managing, uid: PodUid): ReadonlyMap<string, DesiredVolume> {
  return new Map(ofPod(uid).flatMap((item) => item.pods.get(uid)!.outerNames.map((name) => [name, item])))
}

/** Is nothing unmounted? Asked at every change of the pod's volumes. */
function isComplete(managing: Managing, pod: Pod, uid: PodUid): boolean {
  const { actual } = managing.deps
  const wanted = wantedByName(managing, uid)
  return usedVolumes(pod).volumes.every(({ name }) => {
    const item = wanted.get(name)
    return item !== undefined && isPresent(actual.items.get(item.volume), uid)
  })
}

function standingOf(managing: Managing, pod: Pod): Standing {
  const { actual } = managing.deps
  const uid = podUid(pod.metadata.uid ?? '')
  const wanted = wantedByName(managing, uid)
  const expected = usedVolumes(pod).volumes.map(({ name }) => name)
  const unmounted = expected.filter((name) => {
    const item = wanted.get(name)
    return !item || !isPresent(actual.items.get(item.volume), uid)
  })
  const unprocessed = expected.filter((name) => !wanted.has(name))
  const unattached = expected.filter((name) => {
    const item = wanted.get(name)
    return item?.attachable === true && !actual.items.has(item.volume)
  })
  return { uid, unmounted, unattached, unprocessed }
}

/** No wait helps a pod whose volume the storage refuses to attach here for want of room (VM-5). */
async function notReady(
  managing: Managing,
  pod: Pod,
  cause: string,
  why: 'error' | 'time',
  signal: AbortSignal,
): Promise<VolumesNotReady | undefined> {
  const { actual, registry } = managing.deps
  const now = standingOf(managing, pod)
  if (now.unmounted.length === 0) return undefined
  const waiting = managing.ofPod(now.uid).filter(({ attachable, volume }) => attachable && !actual.items.has(volume))
  const asked = waiting.map(({ plugin, pods }) => {
    const { spec } = pods.get(now.uid)!
    return registry.known(plugin)?.plugin.exhausted?.(spec, signal) ?? false
  })
  const exhausted = (await Promise.all(asked)).includes(true)
  return new VolumesNotReady(now, cause, exhausted ? 'exhausted' : why)
}

/** What is no decimal number of 64 bits is ignored (VM-10). */
function parseGroup(text: string): number | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined
  const group = BigInt(text.replace('+', ''))
  return BigInt.asIntN(64, group) === group ? Number(group) : undefined
}

/**
 * What was left by an earlier life counts as attached if it can be, whatever node.status says of it: a Node object made anew
 * lists nothing, and the volume would be taken from under its mount (INV-1).
 */
function isAttached({ registry }: ManagerDeps, { attachable, restored, plugin, spec }: ActualVolume): boolean {
  if (attachable === 'yes' || !restored) return attachable === 'yes'
  return registry.known(plugin)?.plugin.attachable?.(spec) ?? false
}

function describe({ registry, root, actual }: ManagerDeps, item: DesiredVolume, pod: PodUid): MountedVolume {
  const { spec } = item.pods.get(pod)!
  const { volume, plugin: name } = item
  // What is mounted stays usable while its driver is gone.
  const registered = registry.known(name)
  const { plugin, traits } = registered ?? {}
  const readOnly = plugin?.readOnly?.(spec) ?? spec.readOnly
  if (spec.mode === 'Block') {
    const path = `${podDeviceDirectory(root, pod, name)}/${spec.name}`
    const mapPath = `${actual.items.get(volume)?.device.path ?? ''}/${pod}`
    return { volume, spec, mode: 'Block', path, readOnly, traits, mapPath }
  }
  const target = podVolumePath(root, pod, name, spec.name)
  const path = plugin?.path?.(spec, target) ?? target
  return { volume, spec, mode: 'Filesystem', path, readOnly, traits, mapPath: '' }
}
