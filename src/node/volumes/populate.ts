// Which pods want which volumes? Pods come in as events; their claims are resolved; the desired world hears the result.
//
// 1. A pod's failure is its own: it is remembered (KD-9), told to whoever waits, and tried again (KP-4, KP-5).
// 2. A changed claim, volume, ConfigMap or Secret wakes the pods that use it; nobody polls.
// 3. Contents from the API are set up again when they change, and now and then for what changes by time (REC-9).
import type { PodUid } from '../../api/names.ts'
import { podUid } from '../../api/names.ts'
import type { Pod, Volume } from '../../api/generated/types.ts'
import { claimNameOf } from '../../api/pod-claims.ts'
import type { KeyLoop, Looked } from '../../loop/key-loop.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Listeners } from '../../loop/listeners.ts'
import { createListeners } from '../../loop/listeners.ts'
import type { Log } from '../../telemetry/log.ts'
import type { NodePlugin, SourceObject } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { inlineSpec } from '../../volume/spec.ts'
import { usedVolumes, usesMore } from './claims.ts'
import { indexByPod } from './desired.ts'
import type { ObjectWatch, ObjectWatches } from './object-watches.ts'
import type { RefreshDeps } from './refresh.ts'
import { refreshByTime, refreshNamed, refreshPod, volumesNamed } from './refresh.ts'
import type { Unresolved, WantDeps } from './want.ts'
import { wantVolume } from './want.ts'

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

export interface PopulatorDeps extends WantDeps {
  readonly log: Log
  readonly watches: ObjectWatches
  /** Hears, each time a pod was looked at, why volumes of it cannot be found; nothing means that all were. */
  onResolved?(pod: Pod, errors: readonly Unresolved[]): void
}

interface Known {
  pod: Pod
  seen: boolean
  failures: number
  errors: Set<string>
  watches: readonly ObjectWatch[]
  /** The watches whose first answers were waited for. */
  synced: readonly ObjectWatch[]
  refreshedAt: number
  /** The pod changed, and what is made of it (downwardAPI) has not been set up again yet. */
  changed: boolean
  /** The pod that was last set up again in part, while a volume of it was in trouble. */
  refreshedFor: Pod | undefined
}

/** What the functions of this file share. */
interface Populating {
  readonly deps: PopulatorDeps
  readonly known: Map<PodUid, Known>
  readonly unresolved: Set<PodUid>
  readonly refreshing: RefreshDeps
  readonly changes: Listeners<[PodUid]>
  readonly notes: Listeners<[PodUid]>
  readonly loop: KeyLoop<PodUid>
}

const fresh = { seen: false, failures: 0, synced: [], changed: false, refreshedFor: undefined }
const errorLimit = 10
const longestSyncMs = 2_000
const firstRetryMs = 100
const retryCapMs = 15_000

export function createPopulator(deps: PopulatorDeps): Populator {
  const known = new Map<PodUid, Known>()
  const loop = createKeyLoop<PodUid>({
    name: 'populate',
    clock: deps.clock,
    workers: 16,
    look: (uid, signal) => look(populating, uid, signal),
    onError: (uid, error) => deps.log.warn('pod could not be processed', { pod: uid, error }),
  })
  const populating: Populating = {
    deps,
    known,
    loop,
    unresolved: new Set(),
    refreshing: { ...deps, ofPod: indexByPod(deps.desired) },
    changes: createListeners(),
    notes: createListeners(),
  }
  return {
    unresolved: populating.unresolved,
    put: (pod) => put(populating, pod),
    drop: (uid) => drop(populating, uid),
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
      populating.notes.tell(uid)
    },
    onChange: populating.changes.listen,
    onNote: populating.notes.listen,
    async [Symbol.asyncDispose]() {
      for (const { watches } of known.values()) for (const watch of watches) watch[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
    },
  }
}

function put(populating: Populating, pod: Pod): void {
  const { deps, known, unresolved, loop } = populating
  const uid = podUid(pod.metadata.uid ?? '')
  const record = known.get(uid)
  if (!record) {
    const watches = watchSources(populating, uid, pod)
    known.set(uid, { ...fresh, pod, errors: new Set(), watches, refreshedAt: deps.clock.now() })
  } else {
    if (record.pod === pod || !mattersToVolumes(record.pod, pod)) return
    if (usesMore(pod, record.pod)) watchAnew(record, watchSources(populating, uid, pod))
    record.pod = pod
    record.changed = true
  }
  unresolved.add(uid)
  loop.wake(uid)
}

function drop(populating: Populating, uid: PodUid): void {
  const { known, unresolved, loop, changes } = populating
  const record = known.get(uid)
  if (!record) return
  known.delete(uid)
  unresolved.delete(uid)
  loop.forget(uid)
  for (const watch of record.watches) watch[Symbol.dispose]()
  release(populating, uid)
  changes.tell(uid)
}

async function look(populating: Populating, uid: PodUid, signal: AbortSignal): Promise<Looked | void> {
  const { deps, known, changes, refreshing } = populating
  const record = known.get(uid)
  if (!record) return
  const { pod } = record
  // A change after a watch's first answer is heard; one before it must be seen by the first set-up. So we wait for that
  // answer, but not for a server that keeps us waiting.
  if (record.synced !== record.watches) await firstAnswers(deps, record, signal)
  const isCurrent = () => known.get(uid)?.pod === pod
  const { volumes } = usedVolumes(pod)
  const answers = await Promise.all(volumes.map((volume) => wantVolume(deps, { uid, pod, volume, isCurrent }, signal)))
  const errors = answers.filter((answer) => answer !== undefined)
  if (known.get(uid) !== record) return release(populating, uid)
  deps.onResolved?.(pod, errors)
  noteOutcome(populating, uid, record, pod, errors)
  const { refreshedAt, dueAt } = refreshByTime(refreshing, uid, record.refreshedAt)
  record.refreshedAt = refreshedAt
  changes.tell(uid)
  if (errors.length === 0) return { again: dueAt }
  const retryMs = Math.min(retryCapMs, firstRetryMs * 2 ** Math.min(record.failures - 1, 20))
  return { again: Math.min(deps.clock.now() + retryMs, dueAt ?? Infinity) }
}

function noteOutcome(
  { refreshing, unresolved }: Populating,
  uid: PodUid,
  record: Known,
  pod: Pod,
  errors: readonly Unresolved[],
): void {
  record.seen = true
  for (const { message } of errors) remember(record, message)
  // Only now the desired world has the new pod: an earlier refresh would be made of the old one, and be the last. Where a
  // volume is in trouble, perhaps for long, the others of the pod do not wait for it; all are refreshed when it is over.
  if (record.pod === pod && record.changed && (errors.length === 0 || record.refreshedFor !== pod)) {
    refreshPod(refreshing, uid)
    record.refreshedFor = pod
  }
  if (errors.length > 0) {
    record.failures++
    return
  }
  record.failures = 0
  record.errors.clear()
  if (record.pod !== pod) return
  unresolved.delete(uid)
  record.changed = false
  record.refreshedFor = undefined
}

async function firstAnswers({ clock }: PopulatorDeps, record: Known, signal: AbortSignal): Promise<void> {
  const { watches } = record
  record.synced = watches
  if (watches.length === 0) return
  const enough = new AbortController()
  const answers = Promise.all(watches.map(({ synced }) => synced))
  const late = clock.sleep(longestSyncMs, AbortSignal.any([signal, enough.signal])).catch(() => {})
  await Promise.race([answers, late])
  enough.abort()
}

function release({ deps, refreshing }: Populating, uid: PodUid): void {
  for (const { volume } of refreshing.ofPod(uid)) deps.desired.apply({ kind: 'released', volume, pod: uid })
}

function watchSources({ deps, loop, refreshing }: Populating, uid: PodUid, pod: Pod): ObjectWatch[] {
  const namespace = pod.metadata.namespace ?? ''
  return usedVolumes(pod).volumes.flatMap((volume) => {
    const claim = claimNameOf(pod, volume)
    const onClaim = () => {
      for (const item of volumesNamed(refreshing, uid, volume.name))
        deps.desired.apply({ kind: 'claimChanged', volume: item.volume })
      loop.wake(uid)
    }
    const onContents = () => refreshNamed(refreshing, uid, volume.name)
    return [
      ...(claim === undefined
        ? []
        : [deps.watches.watch('PersistentVolumeClaim', { namespace, name: claim }, onClaim)]),
      ...sourceObjects(deps.registry, volume).map(({ kind, name }) =>
        deps.watches.watch(kind, { namespace, name }, onContents),
      ),
    ]
  })
}

/** The old ones end last, so that what both want is watched without a gap. */
function watchAnew(record: Known, watches: readonly ObjectWatch[]): void {
  const before = record.watches
  record.watches = watches
  for (const watch of before) watch[Symbol.dispose]()
}

function remember({ errors }: Known, message: string): void {
  if (errors.size < errorLimit) errors.add(message)
}

/** Our own status writes come back as pod changes; they change no volume's content. */
function mattersToVolumes(before: Pod, after: Pod): boolean {
  const facts = ({ metadata, spec }: Pod) => JSON.stringify([metadata.labels, metadata.annotations, spec])
  return facts(before) !== facts(after)
}

/** The objects whose contents a pod's volume shows. */
function sourceObjects(registry: Registry<NodePlugin>, volume: Volume): readonly SourceObject[] {
  const spec = inlineSpec(volume)
  return (spec && registry.supporting(spec)?.traits.sourceObjects?.(spec)) ?? []
}
