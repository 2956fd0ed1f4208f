// What does each write of a bind, an unbind or a phase change put into the object? Pure: the object as it should be,
// or the very same object when nothing has to be written.
import { annotations } from '../../api/annotations.ts'
import { annotation, withAnnotations } from '../../api/meta.ts'
import { compareQuantities, tryParseQuantity } from '../../api/quantity.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { belongsTo } from './match.ts'

export type VolumePhase = 'Pending' | 'Available' | 'Bound' | 'Released' | 'Failed'
type ClaimPhase = 'Pending' | 'Bound' | 'Lost'

/** BND-1 write 1: the volume points to the claim; marked as ours unless it was reserved for this claim before. */
export function volumeTaken(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume {
  const { namespace, name, uid, resourceVersion } = claim.metadata
  const reserved = belongsTo(volume, claim)
  if (reserved && volume.spec.claimRef?.uid === uid) return volume
  const claimRef = {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  }
  const taken = { ...volume, spec: { ...volume.spec, claimRef } }
  return reserved ? taken : withAnnotations(taken, { [annotations.boundByController]: 'yes' })
}

/** BND-1 write 2 and all other phase changes. BND-6 compares the phase; WC-19: a new message is written too. */
export function volumeInPhase(volume: PersistentVolume, phase: VolumePhase, message = ''): PersistentVolume {
  // A message of somebody else stays while the phase does.
  if (volume.status?.phase === phase && (message === '' || volume.status.message === message)) return volume
  const { message: _old, ...status } = volume.status ?? {}
  return { ...volume, status: { ...status, phase, ...(message === '' ? {} : { message }) } }
}

/** BND-1 write 3: the claim points to the volume and is marked as bound for ever (I-4: both in one write). */
export function claimPointed(claim: PersistentVolumeClaim, volume: PersistentVolume): PersistentVolumeClaim {
  const { name } = volume.metadata
  const named = claim.spec.volumeName === name
  if (named && annotation(claim, annotations.bindCompleted) !== undefined) return claim
  return withAnnotations(named ? claim : { ...claim, spec: { ...claim.spec, volumeName: name } }, {
    ...(named ? {} : { [annotations.boundByController]: 'yes' }),
    [annotations.bindCompleted]: 'yes',
  })
}

/** BND-1 write 4 with BND-5. */
export function claimBound(claim: PersistentVolumeClaim, volume: PersistentVolume): PersistentVolumeClaim {
  const status = claim.status ?? {}
  const modes = volume.spec.accessModes ?? []
  const sameModes = (status.accessModes ?? []).join() === modes.join()
  if (status.phase === 'Bound' && sameModes) return claim
  if (status.phase === 'Bound') return { ...claim, status: { ...status, accessModes: modes } }
  const attributesClass = volume.spec.volumeAttributesClassName
  // WC-20: a claim that lost its volume and found it again gets the class of the volume back, too.
  const restore = attributesClass !== undefined && status.currentVolumeAttributesClassName === undefined
  return {
    ...claim,
    status: {
      ...status,
      phase: 'Bound',
      accessModes: modes,
      capacity: capacityShown(volume),
      ...(restore ? { currentVolumeAttributesClassName: attributesClass } : {}),
    },
  }
}

/** BND-5, NEX-5: a file system not yet grown shows its old size; WC-21: never more than the volume has. */
function capacityShown(volume: PersistentVolume): Readonly<Record<string, string>> {
  const capacity = volume.spec.capacity
  const storage = capacity?.['storage']
  if (capacity === undefined || storage === undefined)
    throw new Error(`PersistentVolume "${volume.metadata.name}" is without a storage capacity`)
  const before = annotation(volume, annotations.preResizeCapacity)
  if (before === undefined || tryParseQuantity(before) === undefined) return capacity
  return compareQuantities(before, storage) <= 0 ? { ...capacity, storage: before } : capacity
}

/** Status `Pending`, whatever it said before (TC-2 [1-3], TC-13); what only a volume can give goes with it. */
export function claimPending(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return withoutVolume(claim, 'Pending')
}

/** CLM-21: what the volume gave is taken back, once: a claim that is Lost already is left as it is. */
export function claimLost(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return claim.status?.phase === 'Lost' ? claim : withoutVolume(claim, 'Lost')
}

/** Access modes, capacity and attributes class come from a volume; conditions stay. */
function withoutVolume(claim: PersistentVolumeClaim, phase: ClaimPhase): PersistentVolumeClaim {
  const { accessModes, capacity, currentVolumeAttributesClassName, ...rest } = claim.status ?? {}
  const nothingToClear = !accessModes && !capacity && currentVolumeAttributesClassName === undefined
  if (claim.status?.phase === phase && nothingToClear) return claim
  return { ...claim, status: { ...rest, phase } }
}

/** BND-7: what we wrote is undone; what a user reserved stays reserved, only the uid goes (I-3). */
export function volumeUnbound(volume: PersistentVolume): PersistentVolume {
  const ref = volume.spec.claimRef
  if (ref === undefined) return volume
  if (annotation(volume, annotations.boundByController) !== undefined) {
    const { claimRef: _gone, ...spec } = volume.spec
    return withAnnotations({ ...volume, spec }, { [annotations.boundByController]: undefined })
  }
  const { uid: _uid, ...reserved } = ref
  return { ...volume, spec: { ...volume.spec, claimRef: reserved } }
}

/** PRV-4: both keys, unless the GA key says it already. */
export function claimAskedFor(claim: PersistentVolumeClaim, provisioner: string): PersistentVolumeClaim {
  if (annotation(claim, annotations.storageProvisioner) === provisioner) return claim
  return withAnnotations(claim, {
    [annotations.storageProvisioner]: provisioner,
    [annotations.betaStorageProvisioner]: provisioner,
  })
}
