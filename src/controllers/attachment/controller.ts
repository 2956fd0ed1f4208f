// Who brings volumes to nodes? Informers become events, events change the worlds, a changed volume wakes its key, and
// the plan for that one volume is carried out. Nothing polls: only timers named by a plan and a slow audit run by time.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import type { Informers } from '../../client/informer.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { createPending } from '../../loop/pending.ts'
import type { Refusal, Started } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { allowsMultiAttach } from '../../volume/access.ts'
import { VolumeError } from '../../volume/effect.ts'
import { createRunner } from '../../volume/operation.ts'
import type { OperationObserver, RunContext } from '../../volume/operation.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent, ActualWorld } from './actual.ts'
import { createActualWorld } from './actual.ts'
import { createAudit } from './audit.ts'
import type { DesiredWorld } from './desired.ts'
import { createDesiredWorld } from './desired.ts'
import { followCluster } from './follow.ts'
import { createNodeIndex } from './node-index.ts'
import { createNodeStatusWriter } from './node-status.ts'
import { createNodeWorld, factsOf } from './nodes.ts'
import type { NodeWorld } from './nodes.ts'
import { attachOperation, detachOperation } from './operations.ts'
import type { AttachmentAction, AttachmentWaiting } from './plan.ts'
import { defaultMaxWaitForUnmountMs, planVolume } from './plan.ts'
import { createAttachmentMetrics, multiAttachText } from './report.ts'

export interface AttachmentDeps {
  readonly client: Client
  readonly informers: Informers
  readonly registry: Registry<ClusterPlugin>
  readonly recorder: Recorder
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly observer?: OperationObserver
  readonly options?: AttachmentOptions
}

export interface AttachmentOptions {
  /** C-3 */
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
  const { client, clock, log, registry, recorder, metrics, observer } = deps
  const stopping = new AbortController()
  const desired = createDesiredWorld()
  const actual = createActualWorld()
  const nodes = createNodeWorld()
  const index = createNodeIndex(desired, actual)
  const pending = createPending(clock)
  const runner = createRunner({ clock, pending, log, metrics, ...(observer ? { observer } : {}) })
  const measured = createAttachmentMetrics(metrics, { desired, actual })
  const attaching = createAttaching()
  const waiting = new Map<UniqueVolumeName, readonly AttachmentWaiting[]>()
  const nodeStatus = createNodeStatusWriter({ client, clock, log, listFor: index.reported })

  const specOf = (volume: UniqueVolumeName): VolumeSpec | undefined => {
    const identity = actual.items.get(volume)?.identity
    return desired.items.get(volume)?.spec ?? (identity?.kind === 'known' ? identity.spec : undefined)
  }
  const tellPods = (volume: UniqueVolumeName, node: NodeName): NonNullable<RunContext<ActualEvent>['tell']> => {
    // The pods of this moment: whoever comes later did not wait for this operation (ATT-5).
    const pods = [...(desired.items.get(volume)?.nodes.get(node)?.pods.values() ?? [])]
    return (type, reason, message) => {
      if (stopping.signal.aborted || !desired.items.get(volume)?.nodes.has(node)) return
      for (const pod of pods) recorder.event({ kind: 'Pod', object: { metadata: pod } }, type, reason, message)
    }
  }
  const start = (volume: UniqueVolumeName, action: StartAction, multiAttach: boolean): Refusal | Started => {
    const { node } = action
    const tell = tellPods(volume, node)
    const context: RunContext<ActualEvent> = { apply: actual.apply, tell, signal: stopping.signal }
    const spec = specOf(volume)
    if (action.kind === 'attach') {
      const succeeded = (reason: string, message: string) => tell('Normal', reason, message)
      const nodeVersion = (name: NodeName) => nodes.items.get(name)?.version ?? -1
      const request = { volume, node, spec: spec!, multiAttach } // desired volumes have a spec
      const giveUp = new AbortController()
      const work = { registry, nodeVersion, succeeded }
      const answer = runner.start(attachOperation, request, work, { ...context, signal: giveUp.signal })
      if (answer.kind === 'started') attaching.follow(volume, node, giveUp, answer.finished)
      return answer
    }
    const request = { volume, node, spec, multiAttach, verify: action.force === undefined }
    const answer = runner.start(detachOperation, request, { registry, client, clock, nodeStatus }, context)
    if (answer.kind === 'started' && action.force) {
      measured.forcedDetach(action.force)
      log.warn('volume taken by force', { volume, node, reason: action.force })
    }
    return answer
  }
  const reportMultiAttach = (volume: UniqueVolumeName, node: NodeName, holders: readonly NodeName[]) => {
    const wish = desired.items.get(volume)
    for (const pod of wish?.nodes.get(node)?.pods.values() ?? []) {
      const message = multiAttachText(wish!, pod, holders)
      recorder.event({ kind: 'Pod', object: { metadata: pod } }, 'Warning', attachOperation.failureReason!, message)
    }
    desired.apply({ kind: 'multiAttachReported', volume, node })
  }

  /** Reading the records, planning and claiming the pending key are one synchronous stretch. */
  const look = (volume: UniqueVolumeName): AttachmentWaiting[] => {
    const multiAttach = allowsMultiAttach(specOf(volume))
    const actualItem = actual.items.get(volume)
    const plan = planVolume(desired.items.get(volume), actualItem, {
      now: clock.now(),
      multiAttach,
      maxWaitForUnmountMs: deps.options?.maxWaitForUnmountMs ?? defaultMaxWaitForUnmountMs,
      forceDetachOnTimeout: deps.options?.forceDetachOnTimeout ?? true,
      node: (name) => factsOf(nodes.items.get(name), volume, actualItem?.nodes.get(name)),
    })
    const reasons = [...plan.waiting]
    for (const action of plan.actions) {
      switch (action.kind) {
        case 'startDetachTimer':
          actual.apply({ kind: 'detachWanted', volume, node: action.node, at: clock.now() })
          break
        case 'cancelDetachTimer':
          actual.apply({ kind: 'detachUnwanted', volume, node: action.node })
          break
        case 'reportMultiAttach':
          reportMultiAttach(volume, action.node, action.holders)
          break
        case 'attach':
        case 'detach': {
          const answer = start(volume, action, multiAttach)
          if (answer.kind !== 'started') reasons.push(refused(action.node, answer))
          break
        }
        default:
          action satisfies never
      }
    }
    return reasons
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
      if (!desired.items.has(volume) && !actual.items.has(volume)) forget(volume)
      const times = reasons.flatMap(({ until }) => until ?? [])
      return Promise.resolve(times.length > 0 ? { again: Math.min(...times) } : undefined)
    },
    onError: (volume, error) => log.error('volume could not be planned', { volume, error }),
  })
  const forget = (volume: UniqueVolumeName) => {
    pending.forget(volume)
    loop.forget(volume)
  }
  const forgetNode = (node: NodeName) => {
    // The record of a deleted Node is kept for as long as something of ours is there (AD-9), and no longer (W-34).
    if (nodes.items.get(node)?.exists === false && !index.concerns(node))
      nodes.apply({ kind: 'nodeForgotten', name: node })
  }
  const audit = createAudit({
    ...deps,
    actual,
    pending,
    attachedTo: index.attachedTo,
    periodMs: deps.options?.verifyPeriodMs ?? 60_000,
    signal: stopping.signal,
  })

  desired.subscribe((volume, event) => {
    if (event.kind === 'multiAttachReported') return
    const seenOnly = actual.items.get(volume)?.identity.kind === 'seen'
    if (event.kind === 'wanted' && seenOnly) {
      actual.apply({ kind: 'specLearned', volume, node: event.node, spec: event.spec }) // AD-4
    }
    loop.wake(volume)
    if (event.kind !== 'unwanted') return
    if (!desired.items.get(volume)?.nodes.has(event.node)) attaching.giveUp(volume, event.node)
    forgetNode(event.node)
  })
  actual.subscribe((volume, event) => {
    if (event.kind === 'detachWanted' || event.kind === 'detachUnwanted' || event.kind === 'specLearned') return
    // A withdrawal is flushed by its own operation; doubt changes the list only if the volume was on it.
    nodeStatus.touch(event.node)
    if (event.kind === 'attached' || event.kind === 'foundInNodeStatus') audit.expect(event.node)
    if (event.kind === 'foundNotAttached') loop.wake(volume)
    forgetNode(event.node)
  })
  // A finished operation releases its key after the world was told (OP-2); now the volume may be planned again.
  pending.onRelease(([volume]) => loop.wake(volume as UniqueVolumeName))

  const started = followCluster({
    ...deps,
    desired,
    actual,
    nodes,
    nodeStatus,
    pending,
    audit,
    index,
    forgetNode,
    signal: stopping.signal,
    wake: loop.wake,
  })
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
      attaching.giveUpAll(stopping.signal.reason)
      await started.catch(() => {})
      await loop[Symbol.asyncDispose]()
      await audit[Symbol.asyncDispose]()
      await pending.idle()
      await nodeStatus[Symbol.asyncDispose]()
    },
  }
}

/** Attaches under way. When the last pod goes, waiting for the driver ends at once; a detach then undoes what may be done. */
function createAttaching() {
  const running = new Map<string, AbortController>()
  const slotOf = (volume: UniqueVolumeName, node: NodeName) => `${node} ${volume}`
  return {
    follow(volume: UniqueVolumeName, node: NodeName, giveUp: AbortController, finished: Promise<void>): void {
      const slot = slotOf(volume, node)
      running.set(slot, giveUp)
      void finished.then(() => running.get(slot) === giveUp && running.delete(slot))
    },
    giveUp(volume: UniqueVolumeName, node: NodeName): void {
      const reason = new VolumeError('NoLongerWanted', 'nobody wants the volume on this node any more', {
        effect: 'unknown',
      })
      running.get(slotOf(volume, node))?.abort(reason)
    },
    giveUpAll(reason: unknown): void {
      for (const giveUp of running.values()) giveUp.abort(reason)
    },
  }
}

type StartAction = Extract<AttachmentAction, { kind: 'attach' | 'detach' }>

function refused(node: NodeName, refusal: Refusal): AttachmentWaiting {
  switch (refusal.kind) {
    case 'busy':
      return { reason: 'busy', node, detail: refusal.operation }
    case 'backingOff':
      return { reason: 'backingOff', node, until: refusal.until, detail: refusal.error }
    default:
      return refusal satisfies never
  }
}
