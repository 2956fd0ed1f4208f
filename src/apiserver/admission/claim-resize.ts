// May a claim ask for more? Only a bound claim whose class allows expansion (API-9).
import { kinds } from '../../api/kinds.ts'
import { compareAmounts, parseQuantity } from '../../api/quantity.ts'
import { forbidden } from '../../api/status-error.ts'
import { classOf } from '../../api/storage-class.ts'
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import { findObject } from '../objects/context.ts'
import type { UpdateAttempt } from './chain.ts'

export async function claimResize({ context, info, object, current, subresource }: UpdateAttempt): Promise<void> {
  if (info.name !== 'PersistentVolumeClaim' || subresource !== undefined) return
  const [next, before] = [object as PersistentVolumeClaim, current as PersistentVolumeClaim]
  if (!grows(next, before)) return
  if (before.status?.phase !== 'Bound') {
    throw forbidden(info, before.metadata.name, 'Only bound persistent volume claims can be expanded')
  }
  const className = classOf(next)
  const sameClass = className !== '' && className === classOf(before)
  const found = sameClass ? await findObject(context, kinds.StorageClass, { name: className }) : undefined
  if ((found as StorageClass | undefined)?.allowVolumeExpansion === true) return
  const why =
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'
  throw forbidden(info, before.metadata.name, why)
}

function grows(next: PersistentVolumeClaim, before: PersistentVolumeClaim): boolean {
  const [asked, had] = [requestOf(next), requestOf(before)]
  if (asked === undefined || had === undefined) return false
  try {
    return compareAmounts(parseQuantity(asked), parseQuantity(had)) > 0
  } catch {
    // Validation refuses what is no quantity, with a better text than ours.
    return false
  }
}

function requestOf(claim: PersistentVolumeClaim): string | undefined {
  return claim.spec?.resources?.requests?.['storage']
}
