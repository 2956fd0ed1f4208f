// Which storage class does a claim or a volume have, and which would it get by default (MAT-1, API-8, CLM-9)?
import { annotations } from './annotations.ts'
import { annotation } from './meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './generated/types.ts'

/** MAT-1: the beta annotation counts when its key exists, even empty; nil and "" are the same here. */
export function classOf(object: PersistentVolume | PersistentVolumeClaim): string {
  return annotation(object, annotations.betaStorageClass) ?? object.spec.storageClassName ?? ''
}

/** CLM-9: "" is a decision; only silence may be filled in. Also asked before validation: there may be no spec. */
export function hasNoClassDecision(claim: PersistentVolumeClaim): boolean {
  return annotation(claim, annotations.betaStorageClass) === undefined && claim.spec?.storageClassName === undefined
}

export function isDefaultClass(storageClass: StorageClass): boolean {
  return (
    annotation(storageClass, annotations.isDefaultClass) === 'true' ||
    annotation(storageClass, annotations.betaIsDefaultClass) === 'true'
  )
}

/** API-8: the newest of the default classes; among equally old ones the first by name. */
export function chooseDefaultClass(classes: Iterable<StorageClass>): StorageClass | undefined {
  let best: StorageClass | undefined
  for (const candidate of classes) {
    if (!isDefaultClass(candidate)) continue
    if (best === undefined || isPreferred(candidate, best)) best = candidate
  }
  return best
}

function isPreferred(candidate: StorageClass, best: StorageClass): boolean {
  const [born, bestBorn] = [candidate.metadata.creationTimestamp ?? '', best.metadata.creationTimestamp ?? '']
  if (born !== bestBorn) return born > bestBorn
  return candidate.metadata.name < best.metadata.name
}
