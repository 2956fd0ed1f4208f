// Who brings volumes to nodes? Informers become events, events change the worlds, a changed volume wakes its key, and
// the plan for that one volume is carried out. Nothing polls: only timers named by a plan and a slow audit run by time.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import type { History } from '../../client/history.ts'
import type { Informers } from '../../client/informer.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { KeyLoop } from '../../loop/key-loop.ts'
import { createPending } from '../../loop/pending.ts'
import type { Pending } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { allowsMultiAttach } from '../../volume/access.ts'
import type { OperationObserver } from '../../volume/operation.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { ActualWorld } from './actual.ts'
import { createActualWorld } from './actual.ts'
import { createAttachmentHistory } from './history.ts'
import type { AttachmentHistory } from './history.ts'
import { createAudit } from './audit.ts'
import { createCarryOut } from './carry-out.ts'
import type { CarryOut } from './carry-out.ts'
import type { DesiredWorld } from './desired.ts'
import { createDesiredWorld } from './desired.ts'
import { followCluster } from './follow.ts'
import { createNodeIndex } from './node-index.ts'
import type { NodeIndex } from './node-index.ts'
import { createNodeStatusWriter } from './node-status.ts'
import { createNodeWorld, factsOf } from './nodes.ts'
import type { NodeWorld } from './nodes.ts'
import type { AttachmentWaiting } from './plan.ts'
import { defaultMaxWaitForUnmountMs, planVolume } from './plan.ts'

export interface AttachmentDeps {
  readonly client: Client
  readonly informers: Informers
  readonly registry: Registry<ClusterPlugin>
  readonly recorder: Recorder
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly observer?: OperationObserver
  readonly history?: History
  readonly options?: AttachmentOptions
}

export interface AttachmentOptions {
  /** How long an unhealthy node may keep a volume that nobody wants there (C-3). */
  readonly maxWaitForUnmountMs?: number
  /** C-6: false is `--disable-force-detach-on-timeout`. */
  readonly forceDetachOnTimeout?: boolean
  /** C-5; 0 switches the audit off. */
  readonly verifyPeriodMs?: number
}

export interface AttachmentController extends AsyncDisposable {
  /** Resolves when the start is over: caches synced, worlds filled, work begun. */
  readonly started: Promise<void>
  readonly desired: DesiredWorld['items']
  readonly actual: ActualWorld['items']
  readonly nodes: NodeWorld['items']
  /** What each volume waits for, by volume; volumes that wait for nothing are absent. */
  readonly waiting: ReadonlyMap<UniqueVolumeName, readonly AttachmentWaiting[]>
  /** Resolves when no key is queued and no operation runs. */
  idle(): Promise<void>
}

export function createAttachmentController(deps: AttachmentDeps): AttachmentController {
  const { client, clock, log } = deps
  const stopping = new AbortController()
  const desired = createDesiredWorld()
  const actual = createActualWorld()
  const nodes = createNodeWorld()
  const index = createNodeIndex(desired, actual)
  const pending = createPending(clock)
  const waiting = new Map<UniqueVolumeName, readonly AttachmentWaiting[]>()
  const nodeStatus = createNodeStatusWriter({ client, clock, log, listFor: index.reported })
  const told = deps.history && createAttachmentHistory({ history: deps.history, desired, actual })
  const observed = told && !deps.observer ? { observer: told } : {}
  const parts = { ...deps, ...observed, desired, actual, nodes, index, pending, nodeStatus, signal: stopping.signal }
  const carryOut = createCarryOut(parts)
  const periodMs = deps.options?.verifyPeriodMs ?? 60_000
  const audit = createAudit({ ...parts, attachedTo: index.attachedTo, periodMs })
  const loop = createVolumeLoop({ ...parts, carryOut, waiting, ...(told ? { told } : {}) })

  const forgetNode = (node: NodeName) => {
    // The record of a deleted Node is kept for as long as something of ours is there (AD-9), and no longer (WA-34).
    if (nodes.items.get(node)?.exists !== false || index.concerns(node)) return
    nodes.apply({ kind: 'nodeForgotten', name: node })
  }
  desired.subscribe((volume, event) => {
    if (event.kind === 'multiAttachReported') return
    const seenOnly = actual.items.get(volume)?.identity.kind === 'seen'
    if (event.kind === 'wanted' && seenOnly) {
      // Node status gave only the volume's name; the pod brings its spec (AD-4).
      actual.apply({ kind: 'specLearned', volume, node: event.node, spec: event.spec })
    }
    loop.wake(volume)
    if (event.kind !== 'unwanted') return
    forgetNode(event.node)
  })
  actual.subscribe((volume, event) => {
    if (event.kind === 'detachWanted' || event.kind === 'detachUnwanted' || event.kind === 'specLearned') return
    nodeStatus.touch(event.node)
    if (event.kind === 'attached' || event.kind === 'foundInNodeStatus') audit.expect(event.node)
    if (event.kind === 'foundNotAttached') loop.wake(volume)
    forgetNode(event.node)
  })
  // A finished operation releases its key after the world was told (OP-2); now the volume may be planned again.
  pending.onRelease(([volume]) => loop.wake(volume as UniqueVolumeName))
  const started = followCluster({ ...parts, audit, forgetNode, wake: loop.wake })
  return {
    started,
    desired: desired.items,
    actual: actual.items,
    nodes: nodes.items,
    waiting,
    async idle() {
      do await Promise.all([loop.idle(), pending.idle()])
      while (loop.depth > 0 || loop.running > 0 || pending.size > 0)
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('attachment controller is stopping'))
      await loop[Symbol.asyncDispose]()
      await audit[Symbol.asyncDispose]()
      await pending.idle()
      await nodeStatus[Symbol.asyncDispose]()
    },
  }
}

interface VolumeLoopDeps {
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly nodes: NodeWorld
  readonly index: NodeIndex
  readonly pending: Pending
  readonly carryOut: CarryOut
  readonly waiting: Map<UniqueVolumeName, readonly AttachmentWaiting[]>
  readonly clock: Clock
  readonly log: Log
  readonly told?: AttachmentHistory
  readonly options?: AttachmentOptions
}

/** Reading the records, planning and claiming the pending key are one synchronous stretch. */
function createVolumeLoop(deps: VolumeLoopDeps): KeyLoop<UniqueVolumeName> {
  const { desired, actual, nodes, index, pending, carryOut, waiting, clock, log, options } = deps
  const look = (volume: UniqueVolumeName): readonly AttachmentWaiting[] => {
    const multiAttach = allowsMultiAttach(carryOut.specOf(volume))
    const actualItem = actual.items.get(volume)
    const plan = planVolume(desired.items.get(volume), actualItem, {
      now: clock.now(),
      steady: clock.steady(),
      multiAttach,
      maxWaitForUnmountMs: options?.maxWaitForUnmountMs ?? defaultMaxWaitForUnmountMs,
      forceDetachOnTimeout: options?.forceDetachOnTimeout ?? true,
      node: (name) => factsOf(nodes.items.get(name), volume, actualItem?.nodes.get(name)),
    })
    return carryOut.perform(volume, plan, multiAttach)
  }
  const loop = createKeyLoop<UniqueVolumeName>({
    name: 'attachment',
    clock,
    workers: 64,
    look(volume) {
      const reasons = look(volume)
      index.waitsOn(volume, reasons)
      if (reasons.length > 0) waiting.set(volume, reasons)
      else waiting.delete(volume)
      deps.told?.onWaiting(volume, reasons)
      if (!desired.items.has(volume) && !actual.items.has(volume)) {
        pending.forget(volume)
        loop.forget(volume)
      }
      const times = reasons.flatMap(({ until }) => until ?? [])
      return Promise.resolve(times.length > 0 ? { again: Math.min(...times) } : undefined)
    },
    onError: (volume, error) => log.error('volume could not be planned', { volume, error }),
  })
  return loop
}
