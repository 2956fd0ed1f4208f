// How is the plan for a claim or a volume carried out? By writes and slow operations; answers what the object waits for.
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import type { Pending } from '../../loop/pending.ts'
import type { EventThrottle } from '../shared/event-throttle.ts'
import type { Waiting } from '../shared/waiting.ts'
import { claimLost, claimPending } from '../shared/writes.ts'
import type { ClaimPlan } from './claim-plan.ts'
import type { BindingMetrics } from './metrics.ts'
import { operationName } from './operations.ts'
import type { Operations } from './operations.ts'
import { askFor, provision } from './provision.ts'
import type { ProvisionDeps, ProvisionRequest } from './provision.ts'
import type { Reclaim } from './reclaim.ts'
import { claimKey } from './state.ts'
import type { BindingKey } from './state.ts'
import type { VolumeHolds } from './volume-holds.ts'
import { isLetGo } from './volume-plan.ts'
import type { VolumePlan } from './volume-plan.ts'
import type { Writer } from './writer.ts'

export interface CarryOutDeps extends ProvisionDeps {
  readonly pending: Pending
  readonly operations: Operations
  readonly reclaim: Reclaim
  readonly holds: VolumeHolds
  wake(key: BindingKey): void
}

interface SyncedClaim {
  readonly key: BindingKey
  readonly claim: PersistentVolumeClaim
  /** The claim as it was cached when the sync began. */
  readonly beforeRepair: PersistentVolumeClaim
}

interface SyncedVolume {
  readonly key: BindingKey
  readonly volume: PersistentVolume
  /** The claim of the name in claimRef, if the cache has it. */
  readonly claim: PersistentVolumeClaim | undefined
}

export interface CarryOut {
  claim(synced: SyncedClaim, plan: ClaimPlan, signal: AbortSignal): Promise<readonly Waiting[]>
  /** The caller holds the volume. */
  volume(synced: SyncedVolume, plan: VolumePlan, signal: AbortSignal): Promise<readonly Waiting[]>
}

export function createCarryOut(deps: CarryOutDeps): CarryOut {
  return {
    claim: (synced, plan, signal) => carryOutClaim(deps, synced, plan, signal),
    volume: (synced, plan, signal) => carryOutVolume(deps, synced, plan, signal),
  }
}

async function carryOutClaim(
  deps: CarryOutDeps,
  { key, claim, beforeRepair }: SyncedClaim,
  plan: ClaimPlan,
  signal: AbortSignal,
): Promise<readonly Waiting[]> {
  const { writer, events, metrics, holds } = deps
  const { action, event, waiting } = plan
  const recordEvent = (object = claim) => {
    if (event !== undefined) events.record('PersistentVolumeClaim', object, event)
  }
  switch (action.kind) {
    case 'waitForVolume':
      holds.waitFor(action.volume.metadata.name, key)
      return waiting
    case 'bind': {
      using _hold = holds.hold(action.volume.metadata.name, key)
      await writer.bind({ claim, volume: action.volume }, signal)
      metrics.claimBound(claim)
      return []
    }
    case 'markPending':
      recordEvent()
      await writer.putClaim(claim, claimPending(claim), { what: 'phase Pending', subresource: 'status' }, signal)
      return waiting
    case 'markLost':
      await writer.putClaim(claim, claimLost(claim), { what: 'phase Lost', subresource: 'status' }, signal)
      if (claim.status?.phase !== 'Lost') recordEvent() // told once (CLM-21)
      return waiting
    case 'assignClass':
      await assignClass(writer, metrics, claim, action.className, signal)
      // What follows is decided on the claim as it is now (CLM-7).
      deps.wake(key)
      return waiting
    case 'askProvisioner':
      metrics.provisionStarted(beforeRepair, action.provisioner)
      // The recorded outcome of 1.35: asking right after a repair still carries the version from before it, so the first
      // attempt ends in a conflict that users see as an event. Kept on purpose (conformance 158); the retry succeeds.
      await askFor(writer, events, beforeRepair, action.provisioner, signal)
      recordEvent(beforeRepair)
      return waiting
    case 'provision':
      return startProvision(deps, key, { claim, storageClass: action.storageClass, plugin: action.plugin }, waiting)
    case 'fail':
      recordEvent()
      throw new Error(action.message)
    case 'leave':
      recordEvent()
      return waiting
    default:
      return action satisfies never
  }
}

async function assignClass(
  writer: Writer,
  metrics: BindingMetrics,
  claim: PersistentVolumeClaim,
  storageClassName: string,
  signal: AbortSignal,
): Promise<void> {
  metrics.retroactiveClass('tried')
  try {
    const spec = { ...claim.spec, storageClassName }
    await writer.putClaim(claim, { ...claim, spec }, { what: `class ${storageClassName}` }, signal)
  } catch (error) {
    metrics.retroactiveClass('failed')
    throw error
  }
}

function startProvision(
  deps: CarryOutDeps,
  key: BindingKey,
  request: ProvisionRequest,
  waiting: readonly Waiting[],
): readonly Waiting[] {
  const { operations, pending } = deps
  const name = operationName('claim', request.claim.metadata.uid)
  operations.expect(name, key)
  const begun = pending.start([name], 'volume_provision', () => provision(deps, request, operations.signal))
  if (begun.kind !== 'backingOff') return waiting
  return [{ reason: 'provisioningFailed', message: begun.error, until: begun.until }]
}

async function carryOutVolume(
  deps: CarryOutDeps,
  { key, volume, claim }: SyncedVolume,
  plan: VolumePlan,
  signal: AbortSignal,
): Promise<readonly Waiting[]> {
  const { writer } = deps
  recordEvents(deps.events, volume, claim, plan)
  switch (plan.action.kind) {
    case 'leave':
    case 'askServer':
      return plan.waiting
    case 'wakeClaim':
      // Nothing is written here; the claim's own sync binds the pair as soon as the hold is released (TC-25).
      deps.wake(claimKey(plan.action.claim))
      return plan.waiting
    case 'markAvailable':
      await writer.setPhase({ volume, phase: 'Available' }, signal)
      return plan.waiting
    case 'markBound':
      await writer.setPhase({ volume, phase: 'Bound' }, signal)
      return plan.waiting
    case 'unbind':
      await writer.unbind(volume, signal)
      return plan.waiting
    case 'release': {
      const released = isLetGo(volume) ? volume : (await writer.setPhase({ volume, phase: 'Released' }, signal)).volume
      deps.operations.expect(operationName('volume', volume.metadata.uid), key)
      return deps.reclaim(released, deps.operations.signal)
    }
    default:
      return plan.action satisfies never
  }
}

function recordEvents(
  events: EventThrottle,
  volume: PersistentVolume,
  claim: PersistentVolumeClaim | undefined,
  plan: VolumePlan,
): void {
  for (const { on, event } of plan.events) {
    if (on === 'volume') events.record('PersistentVolume', volume, event)
    else if (claim !== undefined) events.record('PersistentVolumeClaim', claim, event)
  }
}
