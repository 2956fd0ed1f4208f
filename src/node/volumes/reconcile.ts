// Who starts what the plan says? One loop over volumes: read both records, plan, claim the pending key, all in one
// synchronous stretch. A changed record, a finished operation or the end of a back-off wakes the volume; nothing polls.
import type { PluginName, PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { KeyLoop, Looked } from '../../loop/key-loop.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Listeners } from '../../loop/listeners.ts'
import { createListeners } from '../../loop/listeners.ts'
import type { Pending, Refusal, Started } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Operation, RunContext, Runner } from '../../volume/operation.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { expandInUse } from '../operations/expand.ts'
import { mapVolume } from '../operations/map.ts'
import { mountVolume } from '../operations/mount.ts'
import type { MountWork, OperationDeps } from '../operations/steps.ts'
import { unmapDevice } from '../operations/unmap-device.ts'
import { unmapVolume } from '../operations/unmap.ts'
import { unmountDevice } from '../operations/unmount-device.ts'
import { unmountVolume } from '../operations/unmount.ts'
import { verifyAttached } from '../operations/verify-attached.ts'
import type { ActualEvent, ActualVolume, ActualWorld } from './actual.ts'
import type { DesiredVolume, DesiredWorld } from './desired.ts'
import type { NodeAction, NodeFacts, Waiting } from './plan.ts'
import { planVolume } from './plan.ts'

export interface Reconciler extends AsyncDisposable {
  wake(volume: UniqueVolumeName): void
  wakeAll(): void
  /** These volumes need not wait for a back-off any longer, whatever failed on them. */
  retry(chosen: (plugin: PluginName, spec: VolumeSpec) => boolean): void
  /** Why volumes stand still, as of their last look. */
  readonly waiting: ReadonlyMap<UniqueVolumeName, readonly Waiting[]>
  /** Does something run on behalf of this pod? What it makes is not in the actual world yet. */
  isBusy(pod: PodUid): boolean
  /** Hears when the last operation on behalf of a pod has ended. */
  onQuiet(listener: (pod: PodUid) => void): Disposable
  idle(): Promise<void>
}

export interface ReconcilerDeps {
  readonly clock: Clock
  readonly log: Log
  readonly pending: Pending
  readonly runner: Runner
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly operations: OperationDeps
  facts(volume: UniqueVolumeName): Omit<NodeFacts, 'triedLast'>
  /** Hears what a volume waits for, each time it was looked at, and once that it waits no more. */
  onWaiting?(volume: UniqueVolumeName, waiting: readonly Waiting[]): void
}

/** Most operations are over in a moment: that others wait for one counts only when it lasts. */
const briefMs = 250

/** What the functions of this file share. */
interface Reconciling {
  readonly deps: ReconcilerDeps
  readonly loop: KeyLoop<UniqueVolumeName>
  readonly waiting: Map<UniqueVolumeName, readonly Waiting[]>
  readonly stopping: AbortController
  /** Mounts under way, so that a wait for a device ends when its pod goes (WA-27). */
  readonly underWay: Map<string, AbortController>
  /** How many operations run on behalf of a pod. */
  readonly busy: Map<PodUid, number>
  readonly triedLast: Map<UniqueVolumeName, PodUid>
  readonly quiet: Listeners<[PodUid]>
}

export function createReconciler(deps: ReconcilerDeps): Reconciler {
  const { clock, desired, actual, pending } = deps
  const loop = createKeyLoop<UniqueVolumeName>({
    name: 'volumes',
    clock,
    workers: 64,
    // oxlint-disable-next-line require-await -- the stretch from reading to claiming must be synchronous
    look: async (volume) => look(reconciling, volume),
    onError: (volume, error) => deps.log.error('volume could not be planned', { volume, error }),
  })
  const reconciling: Reconciling = {
    deps,
    loop,
    waiting: new Map(),
    stopping: new AbortController(),
    underWay: new Map(),
    busy: new Map(),
    triedLast: new Map(),
    quiet: createListeners(),
  }
  const { waiting, underWay, busy, stopping, quiet } = reconciling
  const subscriptions = [
    desired.subscribe((volume, event) => {
      // What failed before may succeed with the new contents: it need not wait for its back-off.
      if (event.kind === 'refresh' && event.changed) pending.forget(volume)
      if (event.kind === 'released') underWay.get(podKey(volume, event.pod))?.abort(new Error('the pod is gone'))
      loop.wake(volume)
    }),
    // What a running operation tells lets nobody begin before its end, which wakes the volume; if it lasts, its wait is told.
    actual.subscribe((volume) => {
      if (pending.isPending([volume])) loop.wakeAt(volume, clock.now() + briefMs)
      else loop.wake(volume)
    }),
    pending.onRelease(([volume]) => loop.wake(volume as UniqueVolumeName)), // keys are made from volumes only
  ]
  return {
    waiting,
    wake: (volume) => loop.wake(volume),
    wakeAll() {
      for (const volume of new Set([...desired.items.keys(), ...actual.items.keys()])) loop.wake(volume)
    },
    retry(chosen) {
      const specs = [
        ...[...desired.items.values()].flatMap(({ volume, plugin, pods }) =>
          [...pods.values()].map(({ spec }) => ({ volume, plugin, spec })),
        ),
        ...actual.items.values(),
      ]
      for (const { volume, plugin, spec } of specs) {
        if (!chosen(plugin, spec)) continue
        pending.forget(volume)
        loop.wake(volume)
      }
    },
    isBusy: (pod) => busy.has(pod),
    onQuiet: quiet.listen,
    async idle() {
      await loop.idle()
      await pending.idle()
    },
    async [Symbol.asyncDispose]() {
      for (const subscription of subscriptions) subscription[Symbol.dispose]()
      await loop[Symbol.asyncDispose]()
      stopping.abort(new Error('the agent is stopping'))
      await pending.idle()
    },
  }
}

function look(reconciling: Reconciling, volume: UniqueVolumeName): Looked | undefined {
  const { deps, loop, waiting, triedLast } = reconciling
  const { clock, desired, actual, pending } = deps
  const before = actual.items.get(volume)
  const facts = { ...deps.facts(volume), triedLast: triedLast.get(volume) }
  const plan = planVolume(desired.items.get(volume), before, facts)
  const waits = [...plan.waiting]
  const times: number[] = []
  for (const action of plan.actions) {
    const answer = perform(reconciling, volume, before, action)
    if (!answer || answer.kind === 'started') continue
    if (answer.kind === 'busy' && clock.now() < answer.since + briefMs) times.push(answer.since + briefMs)
    else waits.push(asWaiting(answer, action))
  }
  const waited = waiting.delete(volume)
  if (waits.length > 0) waiting.set(volume, waits)
  if (waited || waits.length > 0) deps.onWaiting?.(volume, waits)
  if (!desired.items.has(volume) && !actual.items.has(volume)) {
    pending.forget(volume)
    loop.forget(volume)
    triedLast.delete(volume)
    return undefined
  }
  for (const { until } of waits) if (until !== undefined) times.push(until)
  return times.length > 0 ? { again: Math.min(...times) } : undefined
}

function perform(
  reconciling: Reconciling,
  volume: UniqueVolumeName,
  before: ActualVolume | undefined,
  action: NodeAction,
): Refusal | Started | undefined {
  const { actual, desired, pending, operations } = reconciling.deps
  switch (action.kind) {
    case 'forget':
      // A mount under way would lose its record, and what it mounts would be nobody's (REC-6).
      if (pending.isPending([volume])) return pending.refusal([volume], 'forget')
      actual.apply({ kind: 'forgotten', volume })
      return undefined
    case 'enter':
      // Nobody attaches it: it is on the node as soon as a pod wants it (VCA-4).
      actual.apply(enteredAs(desired.items.get(volume)!, action.pod))
      return undefined
    case 'size':
      actual.apply({ kind: 'sized', volume, bytes: action.bytes })
      return undefined
    case 'unmountDevice': {
      const { node } = operations
      const work = { volume, node, planned: before!, actual: () => actual.items.get(volume) }
      return start(reconciling, before!.spec.mode === 'Block' ? unmapDevice : unmountDevice, work)
    }
    case 'unmount': {
      const work = { actual: before!, mount: before!.pods.get(action.pod)! }
      return start(reconciling, work.mount.spec.mode === 'Block' ? unmapVolume : unmountVolume, work)
    }
    case 'verifyAttached':
    case 'expand':
    case 'mount':
      return performForPod(reconciling, volume, action)
    default:
      return action satisfies never
  }
}

type PodBoundAction = Extract<NodeAction, { kind: 'verifyAttached' | 'expand' | 'mount' }>

function performForPod(reconciling: Reconciling, volume: UniqueVolumeName, action: PodBoundAction): Refusal | Started {
  const { deps, underWay, busy, triedLast } = reconciling
  const item = deps.desired.items.get(volume)!
  const mount = item.pods.get(action.pod)!
  const abandoned = new AbortController()
  const work: MountWork = {
    desired: item,
    mount,
    remount: action.kind === 'mount' && action.remount,
    actual: () => deps.actual.items.get(volume),
    abandoned: abandoned.signal,
  }
  const tell: RunContext<ActualEvent>['tell'] = (type, reason, message) =>
    deps.operations.recorder.event({ kind: 'Pod', object: mount.pod }, type, reason, message)
  const answer = start(reconciling, operationOf(action, work), work, tell)
  if (answer.kind === 'started') {
    const key = podKey(volume, mount.uid)
    underWay.set(key, abandoned)
    if (action.kind === 'mount') triedLast.set(volume, mount.uid)
    busy.set(mount.uid, (busy.get(mount.uid) ?? 0) + 1)
    void answer.finished.then(() => ended(reconciling, key, mount.uid, abandoned))
  }
  return answer
}

function operationOf({ kind }: PodBoundAction, { mount }: MountWork) {
  if (kind === 'verifyAttached') return verifyAttached
  if (kind === 'expand') return expandInUse
  return mount.spec.mode === 'Block' ? mapVolume : mountVolume
}

function ended({ underWay, busy, quiet }: Reconciling, key: string, pod: PodUid, abandoned: AbortController): void {
  if (underWay.get(key) === abandoned) underWay.delete(key)
  const left = (busy.get(pod) ?? 1) - 1
  if (left > 0) return void busy.set(pod, left)
  busy.delete(pod)
  quiet.tell(pod)
}

function start<Request>(
  { deps, stopping }: Reconciling,
  operation: Operation<Request, OperationDeps, ActualEvent>,
  work: Request,
  tell?: RunContext<ActualEvent>['tell'],
): Refusal | Started {
  return deps.runner.start(operation, work, deps.operations, {
    apply: deps.actual.apply,
    signal: stopping.signal,
    ...(tell ? { tell } : {}),
  })
}

const podKey = (volume: UniqueVolumeName, pod: PodUid) => `${pod} ${volume}`

function enteredAs({ volume, plugin, pods }: DesiredVolume, pod: PodUid): ActualEvent {
  const { spec, claimBytes: sizeBytes } = pods.get(pod)!
  return { kind: 'attached', volume, plugin, spec, attachable: false, devicePath: '', sizeBytes }
}

function asWaiting(refusal: Refusal, action: NodeAction): Waiting {
  const pod = 'pod' in action ? { pod: action.pod } : {}
  return refusal.kind === 'busy'
    ? { reason: 'busy', ...pod }
    : { reason: 'backingOff', until: refusal.until, error: refusal.error, ...pod }
}
