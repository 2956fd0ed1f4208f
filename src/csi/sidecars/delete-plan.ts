// What must be done for a volume of this driver? It is deleted when it is released and its policy says Delete. Pure.
import { annotations, finalizers } from '../../api/annotations.ts'
import type { PersistentVolume } from '../../api/generated/types.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'

export interface DeleteFacts {
  readonly volume: PersistentVolume
  readonly driver: string
  /** Whether the volume is this instance's. */
  readonly owned: boolean
  /** The node that an attachment of this volume names, if the driver attaches volumes at all. */
  readonly attachedTo: string | undefined
  /** Another PersistentVolume with the same handle: what it stands for is the same data. */
  readonly sharedWith: string | undefined
}

export type DeletePlan =
  | { readonly kind: 'nothing' | 'addFinalizer' | 'dropFinalizer' | 'delete' }
  | { readonly kind: 'waitForDetach'; readonly node: string }
  | { readonly kind: 'shared'; readonly with: string }

export function planDelete(facts: DeleteFacts): DeletePlan {
  const { volume } = facts
  if (!isOurs(facts)) return { kind: 'nothing' }
  const isHeld = hasFinalizer(volume, finalizers.externalProvisioner)
  if (volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return { kind: isHeld ? 'dropFinalizer' : 'nothing' }
  const phase = volume.status?.phase
  // A bound volume is held before it is released, so that its storage is never forgotten (SIDE-20).
  if (phase === 'Bound' && !isDeleting(volume)) return { kind: isHeld ? 'nothing' : 'addFinalizer' }
  if (phase !== 'Released' || (isDeleting(volume) && !isHeld)) return { kind: 'nothing' }
  if (facts.sharedWith !== undefined) return { kind: 'shared', with: facts.sharedWith }
  return facts.attachedTo === undefined ? { kind: 'delete' } : { kind: 'waitForDetach', node: facts.attachedTo }
}

function isOurs({ volume, driver, owned }: DeleteFacts): boolean {
  const provisioner = annotation(volume, annotations.migratedTo) ?? annotation(volume, annotations.provisionedBy)
  const source = volume.spec?.csi?.driver
  if ((provisioner ?? source) !== driver || source !== driver) return false
  return owned
}
