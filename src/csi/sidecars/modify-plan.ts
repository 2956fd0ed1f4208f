// What must be done for a claim whose VolumeAttributesClass differs from its volume's? Pure (MOD-1 … MOD-4).
//
// A change in progress is finished before another is begun, unless the driver's last answer to it was final: the claim's
// status says what is in progress, so a restart changes nothing (MOD-3).
import type { PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass } from '../../api/generated/types.ts'
import type { Strings } from '../values.ts'

export interface ModifyFacts {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume | undefined
  readonly driver: string
  /** The driver refused the last change for good: nothing is in progress. */
  readonly wasRefused: boolean
  attributesClass(name: string): VolumeAttributesClass | undefined
}

export type ModifyPlan =
  | { readonly kind: 'nothing' | 'cancel' }
  /** The class does not exist yet; its creation wakes the claim (MOD-1). */
  | { readonly kind: 'postpone'; readonly target: string; readonly message: string }
  /**
   * The class is for another driver. Upstream sends its parameters all the same and hopes that the driver refuses them; one that
   * knows a parameter of the same name would change the volume by mistake. The claim is told what upstream tells it, without asking.
   */
  | { readonly kind: 'refuse'; readonly target: string; readonly message: string }
  | {
      readonly kind: 'modify'
      readonly target: string
      readonly parameters: Strings
      readonly volume: PersistentVolume
    }

export function planModify(facts: ModifyFacts): ModifyPlan {
  const { claim, volume, driver } = facts
  if (claim.status?.phase !== 'Bound' || volume?.spec?.csi?.driver !== driver) return { kind: 'nothing' }
  const wanted = claim.spec?.volumeAttributesClassName ?? ''
  const current = claim.status.currentVolumeAttributesClassName ?? ''
  const begun = claim.status.modifyVolumeStatus
  if (begun === undefined && wanted === current) return { kind: 'nothing' }
  if (wanted === '' && begun?.status !== 'InProgress') {
    const isShown = claim.status.conditions?.some(({ type }) => type === 'ModifyingVolume')
    return { kind: isShown ? 'cancel' : 'nothing' }
  }
  const isInProgress = begun?.status === 'InProgress' && !facts.wasRefused
  const unfinished = isInProgress ? begun.targetVolumeAttributesClassName : undefined
  const target = unfinished ?? (wanted === '' ? (begun?.targetVolumeAttributesClassName ?? '') : wanted)
  const attributes = facts.attributesClass(target)
  if (!attributes) return { kind: 'postpone', target, message: `VAC "${target}" does not exist.` }
  if (attributes.driverName !== driver)
    return { kind: 'refuse', target, message: `VAC "${target}" is for driver ${attributes.driverName}.` }
  return { kind: 'modify', target, parameters: attributes.parameters ?? {}, volume }
}
