// Why does a volume stand where it stands? Causes in the life of a PersistentVolume after (or without) its claim.
import type { CauseTable } from './cause.ts'

export const volumeCauses = {
  reserved: {
    title: 'The volume is reserved for a claim that does not exist',
    sentence: 'volume {volume} is reserved for claim {claim}, which does not exist yet',
    meaning: 'spec.claimRef without a uid reserves a volume. Nobody else gets it.',
    ends: 'A claim of that name appears.',
    hints: [['hawser describe pv/{volume}', 'see claimRef']],
  },
  reservedUnfit: {
    title: 'The volume is reserved for a claim that cannot have it',
    sentence: 'volume {volume} is reserved for claim {claim}, which cannot have it: it {detail}',
    meaning:
      'A claimRef sets class and labels aside, but not size, volume mode, access modes and attributes class. A driver that made a volume smaller than asked for looks the same.',
    ends: 'Volume or claim are made anew so that they fit.',
    hints: [
      ['hawser describe pv/{volume}', 'compare capacity, modes and claimRef'],
      ['hawser describe pvc/{claim}', 'with what the claim wants'],
    ],
  },
  retained: {
    title: 'The volume is released and kept',
    sentence: 'the claim of volume {volume} is gone; its policy is Retain, so an administrator decides',
    meaning:
      'Policy Retain keeps storage and object when the claim goes. The data may be sensitive, so the volume is not given to anybody else.',
    ends: 'Nothing. Delete the object (the storage stays), or remove claimRef to offer it again.',
    hints: [
      ['hawser describe pv/{volume}', 'see the storage behind it'],
      ['hawser delete pv {volume}', 'forget the object; the storage itself stays'],
    ],
  },
  askedDeleter: {
    title: 'The driver must delete the storage',
    sentence: 'volume {volume} is released; driver {driver} must delete its storage',
    meaning: 'Policy Delete: the object goes when the driver has deleted the storage.',
    ends: 'The driver answers DeleteVolume.',
    hints: [
      ['hawser events --for pv/{volume}', 'what the driver said'],
      ['hawser get csinode -o yaml', 'whether the driver is registered'],
    ],
  },
  reclaiming: {
    title: 'The storage is being deleted or scrubbed',
    sentence: 'the storage of volume {volume} is being reclaimed right now',
    meaning: 'A delete or recycle operation runs.',
    ends: 'The operation ends.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  reclaimFailed: {
    title: 'Deleting the storage failed',
    sentence: 'the storage of volume {volume} could not be deleted',
    meaning: 'The driver or plugin said no; the volume object stays so that nothing is forgotten.',
    ends: 'A later try succeeds.',
    hints: [
      ['hawser events --for pv/{volume}', 'all answers so far'],
      ['hawser get volumeattachment', 'whether it is still attached somewhere'],
    ],
  },
  stillAttached: {
    title: 'The storage cannot be deleted while it is attached',
    sentence: 'volume {volume} is to be deleted and is still attached to a node',
    meaning:
      'Storage is deleted only after the last node let it go. Usually this takes a moment after the last pod ended.',
    ends: 'The volume is detached.',
    hints: [
      ['hawser get volumeattachment', 'to which node'],
      ['hawser why volumeattachment/NAME', 'why it is not detached'],
    ],
  },
  usedByPods: {
    title: 'The volume is released but pods still name its claim',
    sentence: 'volume {volume} is released, and pods still use it',
    meaning: 'Nothing is scrubbed or deleted under a running pod.',
    ends: 'The pods end.',
    hints: [['hawser get pods -A', 'see which pods run']],
  },
  volumeProtected: {
    title: 'The volume is kept because it is bound',
    sentence: 'volume {volume} is being deleted and is still bound to claim {claim}',
    meaning: 'The finalizer kubernetes.io/pv-protection keeps a volume as long as a claim has it.',
    ends: 'The claim is deleted.',
    hints: [
      ['hawser describe pv/{volume}', 'see its claim'],
      ['hawser delete pvc {claim}', 'if data and claim are no longer needed'],
    ],
  },
  classProtected: {
    title: 'The class is kept because it is named',
    sentence: 'class {class} is being deleted, and is still named by {detail}',
    meaning: 'A class that is still named stays until nothing needs it.',
    ends: 'The last claim or volume that names it goes.',
    hints: [['hawser get pvc,pv -A', 'see who names it']],
  },
  volumeIll: {
    title: 'The driver says that the volume is not well',
    sentence: 'driver {driver} says that the volume of claim {claim} is not well: {detail}',
    meaning:
      'Drivers may watch the health of their volumes (VolumeCondition). The volume may still work; what is meant, only the driver knows.',
    ends: 'The driver says that it is well again.',
    hints: [
      ['hawser events --for pvc/{claim}', 'since when, and what it said before'],
      ['hawser volume snapshot {claim}', 'keep the data while it can be read'],
    ],
  },
  volumeFailed: {
    title: 'The volume has failed',
    sentence: 'volume {volume} is in phase Failed: reclaiming it went wrong for good',
    meaning: 'Automatic reclaiming ended with an error that a retry does not mend.',
    ends: 'Nothing. Clean up the storage by hand, then delete the object.',
    hints: [
      ['hawser describe pv/{volume}', 'status.message says what happened'],
      ['hawser delete pv {volume}', 'after the storage was cleaned up by hand'],
    ],
  },
} as const satisfies CauseTable
