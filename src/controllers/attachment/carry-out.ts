// How is a volume's plan carried out? Starts operations, notes timers, tells users; answers what could not start and why.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Pending, Refusal, Started } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createRunner } from '../../volume/operation.ts'
import type { OperationObserver, RunContext } from '../../volume/operation.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent, ActualWorld } from './actual.ts'
import type { DesiredWorld } from './desired.ts'
import type { NodeStatusWriter } from './node-status.ts'
import type { NodeWorld } from './nodes.ts'
import { attachOperation, detachOperation } from './operations.ts'
import type { AttachmentAction, AttachmentPlan, AttachmentWaiting } from './plan.ts'
import { createAttachmentMetrics, multiAttachText } from './report.ts'

export interface CarryOutDeps {
  readonly client: Client
  readonly registry: Registry<ClusterPlugin>
  readonly recorder: Recorder
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly observer?: OperationObserver
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly nodes: NodeWorld
  readonly pending: Pending
  readonly nodeStatus: NodeStatusWriter
  readonly signal: AbortSignal
}

export interface CarryOut {
  /** Does what the plan says and answers everything the volume now waits for. */
  perform(volume: UniqueVolumeName, plan: AttachmentPlan, multiAttach: boolean): readonly AttachmentWaiting[]
  specOf(volume: UniqueVolumeName): VolumeSpec | undefined
}

type StartAction = Extract<AttachmentAction, { kind: 'attach' | 'detach' }>

export function createCarryOut(deps: CarryOutDeps): CarryOut {
  const { clock, desired, actual } = deps
  const specOf = (volume: UniqueVolumeName): VolumeSpec | undefined => {
    const identity = actual.items.get(volume)?.identity
    return desired.items.get(volume)?.spec ?? (identity?.kind === 'known' ? identity.spec : undefined)
  }
  const start = createStart(deps, specOf)
  const reportMultiAttach = (volume: UniqueVolumeName, node: NodeName, holders: readonly NodeName[]) => {
    const wish = desired.items.get(volume)
    for (const pod of wish?.nodes.get(node)?.pods.values() ?? []) {
      const message = multiAttachText(wish!, { node, pod }, holders)
      deps.recorder.event(
        { kind: 'Pod', object: { metadata: pod } },
        'Warning',
        attachOperation.failureReason!,
        message,
      )
    }
    desired.apply({ kind: 'multiAttachReported', volume, node })
  }
  return {
    specOf,
    perform(volume, plan, multiAttach) {
      const waiting = [...plan.waiting]
      for (const action of plan.actions) {
        switch (action.kind) {
          case 'startDetachTimer':
            actual.apply({ kind: 'detachWanted', volume, node: action.node, at: clock.steady() })
            break
          case 'cancelDetachTimer':
            actual.apply({ kind: 'detachUnwanted', volume, node: action.node })
            break
          case 'reportMultiAttach':
            // ADR-4: while something is under way for the volume it may be on its way here; nobody is told anything yet.
            if (!deps.pending.isPending([volume])) reportMultiAttach(volume, action.node, action.holders)
            break
          case 'attach':
          case 'detach': {
            const answer = start(volume, action, multiAttach)
            if (answer.kind !== 'started') waiting.push(refused(action.node, answer))
            break
          }
          default:
            action satisfies never
        }
      }
      return waiting
    },
  }
}

function createStart(
  deps: CarryOutDeps,
  specOf: CarryOut['specOf'],
): (volume: UniqueVolumeName, action: StartAction, multiAttach: boolean) => Refusal | Started {
  const { client, clock, log, registry, metrics, pending, desired, actual, nodes, nodeStatus, observer, signal } = deps
  const runner = createRunner({ clock, pending, log, metrics, ...(observer ? { observer } : {}) })
  const measured = createAttachmentMetrics(metrics, { desired, actual })
  const tellPods = (volume: UniqueVolumeName, node: NodeName): NonNullable<RunContext<ActualEvent>['tell']> => {
    // The pods of this moment: whoever comes later did not wait for this operation (ATT-5).
    const pods = [...(desired.items.get(volume)?.nodes.get(node)?.pods.values() ?? [])]
    return (type, reason, message) => {
      if (signal.aborted) return
      for (const pod of pods) deps.recorder.event({ kind: 'Pod', object: { metadata: pod } }, type, reason, message)
    }
  }
  const attach = (volume: UniqueVolumeName, node: NodeName, spec: VolumeSpec, multiAttach: boolean) => {
    const tell = tellPods(volume, node)
    const work = {
      registry,
      nodeVersion: (name: NodeName) => nodes.items.get(name)?.version ?? -1,
      succeeded: (reason: string, message: string) => tell('Normal', reason, message),
    }
    return runner.start(attachOperation, { volume, node, spec, multiAttach }, work, {
      apply: actual.apply,
      tell,
      signal,
    })
  }
  return (volume, action, multiAttach) => {
    const { node } = action
    const spec = specOf(volume)
    const wanted = desired.items.get(volume)?.nodes.get(node)
    if (action.kind === 'attach') return attach(volume, node, wanted!.spec, multiAttach) // only what is wanted is attached
    const request = { volume, node, spec, multiAttach, verify: action.force === undefined }
    const work = { registry, client, clock, nodeStatus }
    const answer = runner.start(detachOperation, request, work, { apply: actual.apply, signal })
    if (answer.kind === 'started' && action.force) {
      measured.forcedDetach(action.force)
      log.warn('volume taken by force', { volume, node, reason: action.force })
    }
    return answer
  }
}

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
