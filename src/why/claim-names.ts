// How is a claim named in records, sentences and commands, and which driver serves it?
import { annotations } from '../api/annotations.ts'
import type { PersistentVolumeClaim } from '../api/generated/types.ts'
import { classOf } from '../api/storage-class.ts'
import type { CauseNames } from './causes.ts'
import type { Facts } from './facts.ts'
import { classNamed, volumeOf } from './facts.ts'

export const claimTarget = ({ metadata }: PersistentVolumeClaim) => ({
  kind: 'PersistentVolumeClaim',
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
})

export function claimNames(facts: Facts, claim: PersistentVolumeClaim): CauseNames {
  const className = classOf(claim)
  const driver = driverOf(facts, claim)
  const volume = claim.spec?.volumeName
  return {
    claim: claim.metadata.name ?? '',
    ...(claim.metadata.namespace === undefined ? {} : { namespace: claim.metadata.namespace }),
    ...(className ? { class: className } : {}),
    ...(driver ? { driver } : {}),
    ...(volume ? { volume } : {}),
  }
}

export function driverOf(facts: Facts, claim: PersistentVolumeClaim): string | undefined {
  return (
    volumeOf(facts, claim.spec?.volumeName)?.spec?.csi?.driver ??
    claim.metadata.annotations?.[annotations.storageProvisioner] ??
    classNamed(facts, classOf(claim))?.provisioner
  )
}
