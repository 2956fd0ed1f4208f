// Which storage class does a claim or a volume have, and which would it get by default (MAT-1, API-8, CLM-9)?
import { annotations } from './annotations.ts'
import { annotation } from './meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './generated/types.ts'

/**
 * The class that somebody decided on; undefined when nobody did. The beta annotation counts when its key exists, even
 * empty (MAT-1). Also asked before validation: there may be no spec.
 */
export function classDecisionOf(object: PersistentVolume | PersistentVolumeClaim): string | undefined {
  return annotation(object, annotations.betaStorageClass) ?? object.spec?.storageClassName
}

/** No class and the class "" are the same here. */
export function classOf(object: PersistentVolume | PersistentVolumeClaim): string {
  return classDecisionOf(object) ?? ''
}

/** "" is a decision; only silence may be filled in (CLM-9). */
export function hasNoClassDecision(claim: PersistentVolumeClaim): boolean {
  return classDecisionOf(claim) === undefined
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
