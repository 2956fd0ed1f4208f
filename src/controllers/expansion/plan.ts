// Must this claim's volume grow, by whom, and to what size (EXP-1 … EXP-7, table 13.4)? Pure.
import { annotations, resizeConditions } from '../../api/annotations.ts'
import { annotation, withAnnotations, withCondition } from '../../api/meta.ts'
import { compareQuantities } from '../../api/quantity.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
} from '../../api/generated/types.ts'

export type ResizeStatus =
  | 'ControllerResizeInProgress'
  | 'ControllerResizeInfeasible'
  | 'NodeResizePending'
  | 'NodeResizeInProgress'
  | 'NodeResizeInfeasible'

export type ExpansionPlan =
  | { readonly kind: 'leave' }
  /** The pair does not agree: a retry may find it mended. */
  | { readonly kind: 'fail'; readonly message: string }
  /** EXP-3: the driver that took the type over resizes; the claim is told its name. */
  | { readonly kind: 'handOver'; readonly plugin: string; readonly driver: string }
  /** An external resizer grows it (EXP-4). */
  | { readonly kind: 'external' }
  /** EXP-5: all done, only the volume's annotation is left. */
  | { readonly kind: 'tidy' }
  /** The node must try again. */
  | { readonly kind: 'rearmNode' }
  | { readonly kind: 'expand'; readonly size: string }

export interface ExpansionFacts {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume
  /** The in-tree plugin name and CSI driver, if the source was moved to CSI. */
  readonly migrated: { readonly plugin: string; readonly driver: string } | undefined
  /** Can one of our own plugins grow it? */
  readonly expandable: boolean
}

export function planExpansion({ claim, volume, migrated, expandable }: ExpansionFacts): ExpansionPlan {
  if (claim.status?.phase !== 'Bound') return { kind: 'leave' }
  const ref = volume.spec.claimRef
  if (ref?.namespace !== claim.metadata.namespace || ref?.uid !== claim.metadata.uid) {
    const message = `persistent Volume is not bound to PVC being updated : ${claim.metadata.namespace}/${claim.metadata.name}`
    return { kind: 'fail', message }
  }
  const request = claim.spec.resources?.requests?.['storage']
  const shown = claim.status.capacity?.['storage']
  const half = annotation(volume, annotations.preResizeCapacity) !== undefined
  if (compareQuantities(request, shown) <= 0 && !half) return { kind: 'leave' }
  if (migrated !== undefined) return { kind: 'handOver', ...migrated }
  if (!expandable) {
    // An expansion that only the node has to finish is announced, too: the resizer tidies up behind it.
    return { kind: 'external' }
  }
  const size = volume.spec.capacity?.['storage']
  if (compareQuantities(shown, request) >= 0 && compareQuantities(shown, size) >= 0) return { kind: 'tidy' }
  return planSize(claim, size, request ?? '0')
}

/** Table 13.4, the controller's column. */
function planSize(claim: PersistentVolumeClaim, size: string | undefined, request: string): ExpansionPlan {
  const allocated = claim.status?.allocatedResources?.['storage']
  const status = claim.status?.allocatedResourceStatuses?.['storage'] as ResizeStatus | undefined
  const expand = (to: string): ExpansionPlan => ({ kind: 'expand', size: to })
  const isSmaller = compareQuantities(size, request) < 0
  switch (status) {
    case undefined:
      return expand(isSmaller ? request : (allocated ?? request))
    case 'ControllerResizeInfeasible':
      return expand(isSmaller ? request : (allocated ?? request))
    case 'ControllerResizeInProgress':
      return expand(allocated ?? request)
    case 'NodeResizePending':
    case 'NodeResizeInProgress':
      return isSmaller ? expand(allocated ?? request) : { kind: 'leave' }
    case 'NodeResizeInfeasible':
      return isSmaller ? expand(allocated ?? request) : { kind: 'rearmNode' }
    default:
      return status satisfies never
  }
}

/** The claim while the storage grows: by whom, the size promised, status and condition; old conditions go (WC-32). */
export function claimGrowing(
  claim: PersistentVolumeClaim,
  size: string,
  resizer: string,
  now: string,
): PersistentVolumeClaim {
  const same =
    claim.status?.allocatedResources?.['storage'] === size &&
    claim.status?.allocatedResourceStatuses?.['storage'] === 'ControllerResizeInProgress'
  if (same) return claim
  return {
    ...withAnnotations(claim, { [annotations.storageResizer]: resizer }),
    status: {
      ...claim.status,
      allocatedResources: { ...claim.status?.allocatedResources, storage: size },
      allocatedResourceStatuses: { ...claim.status?.allocatedResourceStatuses, storage: 'ControllerResizeInProgress' },
      conditions: withCondition(otherConditions(claim), { type: 'Resizing', status: 'True', lastTransitionTime: now }),
    },
  }
}

/** The node's turn. */
export function claimHandedToNode(claim: PersistentVolumeClaim, now: string): PersistentVolumeClaim {
  return {
    ...claim,
    status: {
      ...claim.status,
      allocatedResourceStatuses: { ...claim.status?.allocatedResourceStatuses, storage: 'NodeResizePending' },
      conditions: withCondition(claim.status?.conditions, {
        type: 'FileSystemResizePending',
        status: 'True',
        lastTransitionTime: now,
        message: 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.',
      }),
    },
  }
}

/** EXP-6: allocatedResources stays; the status entry and the four conditions go. */
export function claimGrown(claim: PersistentVolumeClaim, size: string): PersistentVolumeClaim {
  const { storage: _done, ...statuses } = claim.status?.allocatedResourceStatuses ?? {}
  const { allocatedResourceStatuses: _old, conditions: _before, ...status } = claim.status ?? {}
  const conditions = otherConditions(claim)
  return {
    ...claim,
    status: {
      ...status,
      capacity: { ...claim.status?.capacity, storage: size },
      ...(Object.keys(statuses).length === 0 ? {} : { allocatedResourceStatuses: statuses }),
      ...(conditions.length === 0 ? {} : { conditions }),
    },
  }
}

function otherConditions(claim: PersistentVolumeClaim): readonly PersistentVolumeClaimCondition[] {
  const resizing: readonly string[] = resizeConditions
  return (claim.status?.conditions ?? []).filter(({ type }) => !resizing.includes(type))
}
