// Which pods want which volumes? Pods come in as events; their claims are resolved; the desired world hears the result.
//
// 1. A pod's failure is its own: it is remembered (KD-9), told to whoever waits, and tried again (KP-4, KP-5).
// 2. A changed claim, volume, ConfigMap or Secret wakes the pods that use it; nobody polls.
// 3. Contents from the API are set up again when they change, and now and then for what changes by time (REC-9).
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import type { Pod, Volume } from '../../api/types.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { podVolumeName, sharedVolumeName } from '../../volume/identity.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { PodWaitReason } from '../../volume/wait-reasons.ts'
import type { Registered, Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualWorld } from './actual.ts'
import { checkMode, claimNameOf, resolveVolume, sizeLimitOf, usedVolumes, usesMore } from './claims.ts'
import type { DesiredWorld } from './desired.ts'
import { indexByPod } from './desired.ts'
import type { LabelRequest, WantedLabel } from './labels.ts'
import { noLabel } from './labels.ts'
import type { ObjectWatch, ObjectWatches } from './object-watches.ts'
import { sourceObjects } from './object-watches.ts'

export interface Populator extends AsyncDisposable {
  /** A pod that runs or may run; called again whenever it changed. */
  put(pod: Pod): void
  /** The pod's containers are gone for good: its volumes may go (KP-9). */
  drop(pod: PodUid): void
  /** Every pod known now has been looked at once when this resolves (KP-1). */
  processed(): Promise<void>
  /** Asks again for a pod's volumes and forgets its old errors (VM-2, KP-3). */
  reprocess(pod: PodUid): void
  /** Errors since the last question, sorted (KD-9). */
  popErrors(pod: PodUid): readonly string[]
  hasErrors(pod: PodUid): boolean
  /** Something that keeps a volume of the pod waiting and that its user should hear of. */
  note(pod: PodUid, error: string): void
  /** Pods whose volumes are not all resolved. */
  readonly unresolved: ReadonlySet<PodUid>
  /** Hears that a pod was looked at, or dropped: its volumes may be resolved now. */
  onChange(listener: (pod: PodUid) => void): Disposable
  /** Hears of notes. They resolve nothing: whoever noted because a volume waits must not be woken by it. */
  onNote(listener: (pod: PodUid) => void): Disposable
}

export interface PopulatorDeps {
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
  readonly registry: Registry<NodePlugin>
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly watches: ObjectWatches
  /** The SELinux label a pod wants for a volume; absent where SELinux is off. */
  label?(request: LabelRequest): WantedLabel
  /** Called when contents changed: a failed set-up need not wait for its back-off. */
  retryNow(volume: UniqueVolumeName): void
  /** Hears, each time a pod was looked at, why volumes of it cannot be found; nothing means that all were. */
  onResolved?(pod: Pod, errors: readonly Unresolved[]): void
}

export interface Unresolved {
  readonly reason: PodWaitReason
  readonly message: string
}

interface Known {
  pod: Pod
  seen: boolean
  failures: number
  errors: Set<string>
  watches: readonly ObjectWatch[]
  /** The watches whose first pictures were waited for. */
  pictured: readonly ObjectWatch[]
  refreshed: number
  /** The pod changed, and what is made of it (downwardAPI) has not been set up again yet. */
  changed: boolean
  /** The pod that was last set up again in part, while a volume of it was in trouble. */
  refreshedFor: Pod | undefined
}

const fresh = { seen: false, failures: 0, pictured: [], changed: false, refreshedFor: undefined }
const errorLimit = 10
const firstPictureMs = 2_000
const firstRetryMs = 100
const retryCapMs = 15_000
/** C-13 for what changes by time (tokens, republish); slower for what we watch anyway. */
const refreshMs = 60_000
const slowRefreshMs = 600_000

export function createPopulator(deps: PopulatorDeps): Populator {
  const { clock, desired, registry } = deps
  const known = new Map<PodUid, Known>()
  const ofPod = indexByPod(desired)
  const unresolved = new Set<PodUid>()
  const changes = createListeners()
  const notes = createListeners()
  const remember = ({ errors }: Known, message: string) => {
    if (errors.size < errorLimit) errors.add(message)
  }
  const loop = createKeyLoop<PodUid>({
    name: 'populate',
    clock,
    workers: 16,
    look: (uid, signal) => look(uid, signal),
    onError: (uid, error) => deps.log.warn('pod could not be processed', { pod: uid, error }),
  })

  const look = async (uid: PodUid, signal: AbortSignal) => {
    const record = known.get(uid)
    if (!record) return
    const { pod } = record
    // A change after the first picture is heard; one before it must be seen by the first set-up. So we wait for the
    // picture, but not for a server that keeps us waiting.
    if (record.pictured !== record.watches) await firstPictures(record, signal)
    const { volumes } = usedVolumes(pod)
    const errors = (await Promise.all(volumes.map((volume) => want(uid, pod, volume, signal)))).filter(
      (e) => e !== undefined,
    )
    if (known.get(uid) !== record) return release(uid)
    record.seen = true
    deps.onResolved?.(pod, errors)
    for (const { message } of errors) remember(record, message)
    // Only now the desired world has the new pod: an earlier refresh would be made of the old one, and be the last. Where a
    // volume is in trouble, perhaps for long, the others of the pod do not wait for it; all are refreshed when it is over.
    if (record.pod === pod && record.changed && (errors.length === 0 || record.refreshedFor !== pod)) {
      for (const { volume } of refreshable(uid)) refresh(uid, volume)
      record.refreshedFor = pod
    }
    const due = nextRefresh(uid, record)
    if (errors.length > 0) {
      record.failures++
      changes.tell(uid)
      const retryMs = Math.min(retryCapMs, firstRetryMs * 2 ** Math.min(record.failures - 1, 20))
      return { again: Math.min(clock.now() + retryMs, due ?? Infinity) }
    }
    record.failures = 0
    record.errors.clear()
    if (record.pod === pod) {
      unresolved.delete(uid)
      record.changed = false
      record.refreshedFor = undefined
    }
    changes.tell(uid)
    return { again: due }
  }

  const firstPictures = async (record: Known, signal: AbortSignal) => {
    const { watches } = record
    record.pictured = watches
    if (watches.length === 0) return
    const enough = new AbortController()
    const pictures = Promise.all(watches.map(({ synced }) => synced))
    const late = clock.sleep(firstPictureMs, AbortSignal.any([signal, enough.signal])).catch(() => {})
    await Promise.race([pictures, late])
    enough.abort()
  }

  /** One volume: undefined when the desired world has it, else what is in its way. */
  const want = async (uid: PodUid, pod: Pod, volume: Volume, signal: AbortSignal): Promise<Unresolved | undefined> => {
    try {
      const resolved = await resolveVolume(deps.client, pod, volume, signal)
      if (known.get(uid)?.pod !== pod) return undefined // superseded while we read; the newer look decides
      const { spec } = resolved
      checkMode(volume.name, spec, usedVolumes(pod))
      const plugin = findPlugin(registry, spec)
      const { attachable, deviceMountable } = abilities(plugin, spec)
      const name = uniqueName(plugin, spec, uid)
      const request = { pod, uid, outerName: volume.name, spec, plugin, known: desired.items.get(name) }
      const label = deps.label?.(request) ?? noLabel
      // Known only now that nobody will attach it: then waiting for that would never end (KP-9). The other way round what
      // is there stays as it is.
      if (!attachable) desired.apply({ kind: 'attachability', volume: name, attachable })
      desired.apply({
        kind: 'wanted',
        volume: name,
        plugin: plugin.name,
        attachable,
        deviceMountable,
        group: resolved.group,
        label,
        sizeLimitBytes: sizeLimitOf(pod, spec),
        pod,
        uid,
        spec,
        outerName: volume.name,
        readOnly: resolved.readOnly,
        claimBytes: resolved.claimBytes,
        at: clock.now(),
      })
      if (resolved.volumeBytes > 0n && !resolved.readOnly) {
        desired.apply({ kind: 'sized', volume: name, bytes: resolved.volumeBytes })
        deps.actual.apply({ kind: 'sized', volume: name, bytes: resolved.claimBytes })
      }
      return undefined
    } catch (error) {
      if (signal.aborted) throw error
      const isPlugin = error instanceof PluginUnknown
      const message = error instanceof Error ? error.message : String(error)
      return { reason: isPlugin ? 'pluginMissing' : 'volumesUnresolved', message }
    }
  }

  /** Volumes whose plugin sets them up again on a sync, for one pod. */
  const refreshable = (uid: PodUid) =>
    ofPod(uid).filter((item) => {
      const mount = item.pods.get(uid)!
      const found = registry.known(item.plugin)
      return found?.plugin.remountRequired?.(mount.spec) ?? found?.traits.remountOnPodUpdate ?? false
    })
  const outdate = (uid: PodUid, volume: UniqueVolumeName) =>
    desired.apply({ kind: 'refresh', volume, pod: uid, at: clock.now() })
  /** Something changed, so that what failed before may succeed now. That time passed is no such news (INV-11). */
  const refresh = (uid: PodUid, volume: UniqueVolumeName) => {
    outdate(uid, volume)
    deps.retryNow(volume)
  }
  const nextRefresh = (uid: PodUid, record: Known): number | undefined => {
    const volumes = refreshable(uid)
    if (volumes.length === 0) return undefined
    const byTime = volumes.some(({ pods }) => changesByTime(pods.get(uid)!.spec))
    const due = record.refreshed + (byTime ? refreshMs : slowRefreshMs)
    if (due > clock.now()) return due
    record.refreshed = clock.now()
    for (const { volume } of volumes) outdate(uid, volume)
    return clock.now() + (byTime ? refreshMs : slowRefreshMs)
  }
  const release = (uid: PodUid) => {
    for (const { volume } of ofPod(uid)) desired.apply({ kind: 'released', volume, pod: uid })
  }
  const watchSources = (uid: PodUid, pod: Pod): ObjectWatch[] => {
    const { volumes } = usedVolumes(pod)
    const claims = volumes.map((volume) => claimNameOf(pod, volume)).filter((name) => name !== undefined)
    const namespace = pod.metadata.namespace ?? ''
    const wake = () => {
      for (const { volume } of ofPod(uid)) deps.actual.apply({ kind: 'expansionDeferred', volume, bytes: 0n })
      loop.wake(uid)
    }
    return [
      ...claims.map((name) => deps.watches.watch('PersistentVolumeClaim', { namespace, name }, wake)),
      ...volumes.flatMap((volume) =>
        sourceObjects(volume).map(({ kind, name }) =>
          deps.watches.watch(kind, { namespace, name }, () => refreshNamed(uid, volume.name)),
        ),
      ),
    ]
  }
  const refreshNamed = (uid: PodUid, outerName: string) => {
    for (const item of ofPod(uid)) {
      if (item.pods.get(uid)?.outerNames.includes(outerName)) refresh(uid, item.volume)
    }
  }

  return {
    unresolved,
    put(pod) {
      const uid = podUid(pod.metadata.uid ?? '')
      const record = known.get(uid)
      if (!record) {
        const watches = watchSources(uid, pod)
        const refreshed = clock.now()
        known.set(uid, { ...fresh, pod, errors: new Set(), watches, refreshed })
      } else {
        if (record.pod === pod || !mattersToVolumes(record.pod, pod)) return
        if (usesMore(pod, record.pod)) watchAnew(record, watchSources(uid, pod))
        record.pod = pod
        record.changed = true
      }
      unresolved.add(uid)
      loop.wake(uid)
    },
    drop(uid) {
      const record = known.get(uid)
      if (!record) return
      known.delete(uid)
      unresolved.delete(uid)
      loop.forget(uid)
      for (const watch of record.watches) watch[Symbol.dispose]()
      release(uid)
      changes.tell(uid)
    },
    async processed() {
      const open = () => [...known.values()].some(({ seen }) => !seen)
      while (open()) await loop.idle()
    },
    reprocess(uid) {
      known.get(uid)?.errors.clear()
      loop.wake(uid)
    },
    popErrors(uid) {
      const errors = [...(known.get(uid)?.errors ?? [])].sort()
      known.get(uid)?.errors.clear()
      return errors
    },
    hasErrors: (uid) => (known.get(uid)?.errors.size ?? 0) > 0,
    note(uid, error) {
      const record = known.get(uid)
      if (!record) return
      remember(record, error)
      notes.tell(uid)
    },
    onChange: changes.listen,
    onNote: notes.listen,
    async [Symbol.asyncDispose]() {
      for (const { watches } of known.values()) for (const watch of watches) watch[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

function createListeners() {
  const listeners = new Set<(pod: PodUid) => void>()
  return {
    tell(pod: PodUid) {
      for (const listener of [...listeners]) listener(pod)
    },
    listen(listener: (pod: PodUid) => void): Disposable {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}

/** The old ones end last, so that what both want is watched without a gap. */
function watchAnew(record: Known, watches: readonly ObjectWatch[]): void {
  const before = record.watches
  record.watches = watches
  for (const watch of before) watch[Symbol.dispose]()
}

/** ID-5: what the plugin says of this spec. Block volumes have a device stage of their own. */
export function abilities({ plugin }: Registered<NodePlugin>, spec: VolumeSpec) {
  const attachable = plugin.attachable?.(spec) ?? false
  const deviceMountable =
    plugin.device?.(spec) !== undefined || (spec.mode === 'Block' && plugin.block?.(spec) !== undefined)
  return { attachable, deviceMountable }
}

/** ID-2 */
export function uniqueName(plugin: Registered<NodePlugin>, spec: VolumeSpec, pod: PodUid): UniqueVolumeName {
  const { attachable, deviceMountable } = abilities(plugin, spec)
  return attachable || deviceMountable
    ? sharedVolumeName(plugin.name, plugin.volumeName(spec))
    : podVolumeName(plugin.name, pod, spec.name)
}

class PluginUnknown extends Error {}

function findPlugin(registry: Registry<NodePlugin>, spec: VolumeSpec): Registered<NodePlugin> {
  try {
    return registry.find(spec)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new PluginUnknown(`failed to get Plugin from volumeSpec for volume "${spec.name}" err=${why}`, {
      cause: error,
    })
  }
}

/** Our own status writes come back as pod changes; they change no volume's content. */
function mattersToVolumes(before: Pod, after: Pod): boolean {
  const facts = ({ metadata, spec }: Pod) => JSON.stringify([metadata.labels, metadata.annotations, spec])
  return facts(before) !== facts(after)
}

function changesByTime({ source }: VolumeSpec): boolean {
  if (source.kind === 'csi') return true
  return (
    source.kind === 'projected' && (source.value.sources ?? []).some((each) => each.serviceAccountToken !== undefined)
  )
}
