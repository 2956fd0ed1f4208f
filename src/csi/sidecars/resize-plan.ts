// To which size is a claim's volume grown next? Table 13.4 of docs/rules/claims.md, column external-resizer, and what each
// stage writes to the claim's status (XRS-3, XRS-7). Pure.
import { annotations, resizeConditions } from '../../api/annotations.ts'
import { annotation, conditionIsTrue } from '../../api/meta.ts'
import { quantityOfBytes, bytesOfQuantity } from '../../api/quantity.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'

export interface ResizePlanFacts {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume | undefined
  readonly driver: string
  readonly trivial: boolean
  readonly memory: ResizeMemory | undefined
  /** Some pod that has not ended uses the claim. */
  readonly isUsed: boolean
  readonly now: number
}

/** What this process remembers of the driver's last answer about a claim. */
export interface ResizeMemory {
  /** The last attempt ended with a final error. */
  readonly final: boolean
  /** The driver refused because the volume is in use. */
  readonly inUse: boolean
  /** The driver called this size infeasible: not asked again before `until`. */
  readonly slow?: { readonly size: bigint; readonly until: number }
}

export interface ResizePlan {
  /** The node has caught up: the volume's note of the old size goes first. */
  readonly forgetOldSize: boolean
  readonly action:
    | { readonly kind: 'nothing' }
    | { readonly kind: 'wait'; readonly until: number }
    /** The driver grows unused volumes only; a pod that ends wakes the claim. */
    | { readonly kind: 'waitForPods' }
    | { readonly kind: 'expand'; readonly target: bigint }
}

export function planResize(facts: ResizePlanFacts): ResizePlan | undefined {
  const { claim, volume, memory } = facts
  if (!volume || claim.status?.phase !== 'Bound' || volume.spec?.csi?.driver !== facts.driver) return undefined
  if (volume.spec.claimRef?.uid !== claim.metadata.uid) return undefined
  const shown = sizeOf(claim.status.capacity) ?? 0n
  const isNoted = annotation(volume, annotations.preResizeCapacity) !== undefined
  const forgetOldSize = isNoted && shown >= volumeSize(volume)
  const nothing: ResizePlan = { forgetOldSize, action: { kind: 'nothing' } }
  const requestedBytes = sizeOf(claim.spec?.resources?.requests) ?? 0n
  if (requestedBytes <= shown) return nothing
  const target = resizeTarget({
    volumeBytes: volumeSize(volume),
    requestedBytes,
    allocatedBytes: sizeOf(claim.status.allocatedResources),
    status: resizeStatusOf(claim),
    lastWasFinal: memory?.final ?? false,
    fileSystemResizePending: conditionIsTrue(claim.status.conditions, 'FileSystemResizePending'),
    trivial: facts.trivial,
  })
  if (target === undefined) return nothing
  if (memory?.slow?.size === target && memory.slow.until > facts.now)
    return { forgetOldSize, action: { kind: 'wait', until: memory.slow.until } }
  if (memory?.inUse && facts.isUsed) return { forgetOldSize, action: { kind: 'waitForPods' } }
  return { forgetOldSize, action: { kind: 'expand', target } }
}

export interface ResizeFacts {
  readonly volumeBytes: bigint
  readonly requestedBytes: bigint
  /** status.allocatedResources */
  readonly allocatedBytes: bigint | undefined
  readonly status: string
  /** The last attempt of this process ended with a final error. */
  readonly lastWasFinal: boolean
  readonly fileSystemResizePending: boolean
  /** The driver has no controller expansion: only the node grows anything (XRS-8). */
  readonly trivial: boolean
}

/** The target size, or undefined: nothing to do here (now). */
export function resizeTarget(facts: ResizeFacts): bigint | undefined {
  const { volumeBytes, requestedBytes: wanted, status } = facts
  const allocated = facts.allocatedBytes ?? wanted
  if (volumeBytes < wanted) {
    switch (status) {
      case 'ControllerResizeInProgress':
        return facts.lastWasFinal ? wanted : allocated
      case 'NodeResizePending':
      case 'NodeResizeInProgress':
        return volumeBytes >= allocated ? undefined : allocated
      case 'NodeResizeInfeasible':
        return allocated
      default:
        return wanted
    }
  }
  switch (status) {
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return undefined
    case 'NodeResizeInfeasible':
      return facts.trivial ? wanted : allocated
    case 'ControllerResizeInProgress':
    case 'ControllerResizeInfeasible':
      return allocated
    default:
      if (facts.allocatedBytes !== undefined) return allocated
      return facts.fileSystemResizePending ? undefined : wanted
  }
}

type Status = NonNullable<PersistentVolumeClaim['status']>
type ResizeStatus = NonNullable<Status['allocatedResourceStatuses']>[string]
type Conditions = NonNullable<Status['conditions']>

export function resizeStatusOf(claim: PersistentVolumeClaim): string {
  return claim.status?.allocatedResourceStatuses?.['storage'] ?? ''
}

function sizeOf(resources: Readonly<Record<string, string>> | undefined): bigint | undefined {
  const text = resources?.['storage']
  return text === undefined ? undefined : bytesOfQuantity(text)
}

const volumeSize = (volume: PersistentVolume) => sizeOf(volume.spec?.capacity) ?? 0n

function withoutResizeConditions(conditions: Conditions | undefined): Conditions {
  const resize: readonly string[] = resizeConditions
  return (conditions ?? []).filter(({ type }) => !resize.includes(type))
}

/** XRS-3: the same target keeps the conditions it has. */
export function started(claim: PersistentVolumeClaim, target: bigint, now: string): PersistentVolumeClaim {
  const status = claim.status ?? {}
  const same = sizeOf(status.allocatedResources) === target
  if (same && resizeStatusOf(claim) === 'ControllerResizeInProgress') return claim
  const resizing = { type: 'Resizing', status: 'True' as const, lastTransitionTime: now }
  return withStatus(claim, {
    ...status,
    allocatedResources: { ...status.allocatedResources, storage: quantityOfBytes(target) },
    allocatedResourceStatuses: { ...status.allocatedResourceStatuses, storage: 'ControllerResizeInProgress' },
    conditions: [...withoutResizeConditions(status.conditions), resizing],
  })
}

/** Left to the node: XRS-5. */
export function handedOver(claim: PersistentVolumeClaim, now: string): PersistentVolumeClaim {
  const pending = {
    type: 'FileSystemResizePending',
    status: 'True' as const,
    lastTransitionTime: now,
    message: 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.',
  }
  return withResizeStatus(claim, 'NodeResizePending', [...withoutResizeConditions(claim.status?.conditions), pending])
}

/** XRS-7: all done without the node. */
export function finished(claim: PersistentVolumeClaim, bytes: bigint): PersistentVolumeClaim {
  const status = claim.status ?? {}
  const { storage: _done, ...others } = status.allocatedResourceStatuses ?? {}
  const { allocatedResourceStatuses: _statuses, ...rest } = status
  return withStatus(claim, {
    ...rest,
    capacity: { ...status.capacity, storage: quantityOfBytes(bytes) },
    conditions: withoutResizeConditions(status.conditions),
    ...(Object.keys(others).length > 0 && { allocatedResourceStatuses: others }),
  })
}

/** The driver refused for good; an infeasible size is tried again slowly (XRS-6). */
export function failedFinally(
  claim: PersistentVolumeClaim,
  message: string,
  infeasible: boolean,
  now: string,
): PersistentVolumeClaim {
  const condition = {
    type: 'ControllerResizeError',
    status: 'True' as const,
    lastTransitionTime: now,
    message: `failed to expand pvc with ${message}`,
  }
  const others = (claim.status?.conditions ?? []).filter(({ type }) => type !== condition.type)
  const status = infeasible ? 'ControllerResizeInfeasible' : (resizeStatusOf(claim) as ResizeStatus)
  return withResizeStatus(claim, status, [...others, condition])
}

function withResizeStatus(
  claim: PersistentVolumeClaim,
  status: ResizeStatus,
  conditions: Conditions,
): PersistentVolumeClaim {
  const allocatedResourceStatuses = { ...claim.status?.allocatedResourceStatuses, storage: status }
  return withStatus(claim, { ...claim.status, conditions, allocatedResourceStatuses })
}

function withStatus(claim: PersistentVolumeClaim, status: Status): PersistentVolumeClaim {
  return { ...claim, status }
}
