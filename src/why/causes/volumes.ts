// Why does a volume stand where it stands? Causes in the life of a PersistentVolume after (or without) its claim.
import type { CauseTable } from './cause.ts'

export const volumeCauses = {
  reserved: {
    title: 'The volume is reserved for a claim that does not exist',
    sentence: 'volume {volume} is reserved for claim {claim}, which does not exist yet',
    meaning: 'A claimRef without a uid reserves the volume. No other claim gets it.',
    ends: 'A claim with that name is created.',
    hints: [['hawser describe pv/{volume}', 'see claimRef']],
  },
  reservedUnfit: {
    title: 'The volume is reserved for a claim that it does not fit',
    sentence: 'volume {volume} is reserved for claim {claim}, but does not fit: it {detail}',
    meaning:
      'With a claimRef, class and labels need not match, but size, volume mode, access modes and attributes class must. A driver that created a volume smaller than requested looks the same.',
    ends: 'The volume or the claim is created again so that they fit.',
    hints: [
      ['hawser describe pv/{volume}', 'compare capacity, modes and claimRef'],
      ['hawser describe pvc/{claim}', 'with what the claim requests'],
    ],
  },
  retained: {
    title: 'The volume is Released and kept',
    sentence: 'the claim of volume {volume} was deleted; the reclaim policy is Retain, so an administrator must decide',
    meaning:
      'The reclaim policy Retain keeps storage and object when the claim is deleted. The data may be confidential, so no other claim gets the volume.',
    ends: 'Nothing. Delete the object (the storage stays), or remove its claimRef to make it available again.',
    hints: [
      ['hawser describe pv/{volume}', 'see the storage behind it'],
      ['hawser delete pv {volume}', 'delete the object; the storage itself stays'],
    ],
  },
  askedDeleter: {
    title: 'The driver must delete the storage',
    sentence: 'volume {volume} is Released; driver {driver} must delete its storage',
    meaning: 'Reclaim policy Delete: the object is removed when the driver has deleted the storage.',
    ends: 'The driver answers DeleteVolume.',
    hints: [
      ['hawser events --for pv/{volume}', 'the answers of the driver'],
      ['hawser get csinode -o yaml', 'see whether the driver is registered'],
    ],
  },
  reclaiming: {
    title: 'The storage is being deleted or recycled',
    sentence: 'the storage of volume {volume} is being reclaimed right now',
    meaning: 'A delete or recycle operation is running.',
    ends: 'The operation ends.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  reclaimFailed: {
    title: 'Deleting the storage failed',
    sentence: 'the storage of volume {volume} could not be deleted',
    meaning: 'The driver or plugin refused. The volume object stays, so that the storage is not forgotten.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser events --for pv/{volume}', 'all errors so far'],
      ['hawser get volumeattachment', 'see whether it is still attached'],
    ],
  },
  storageShared: {
    title: 'The storage is not deleted because another volume has the same handle',
    sentence: 'volume {volume} is to be deleted, but another PersistentVolume has the same handle',
    meaning:
      'Two PersistentVolumes with one driver and one handle are the same data. Deleting one of them would delete the data of the other.',
    ends: 'The other PersistentVolume is deleted, or this one gets the reclaim policy Retain.',
    hints: [
      ['hawser events --for pv/{volume}', 'see which volume it is'],
      ['hawser get pv -o yaml', 'compare the handles (spec.csi.volumeHandle)'],
    ],
  },
  stillAttached: {
    title: 'The storage cannot be deleted while it is attached',
    sentence: 'volume {volume} is to be deleted, but is still attached to a node',
    meaning:
      'Storage is deleted only after it is detached from the last node. This usually takes a moment after the last pod has ended.',
    ends: 'The volume is detached.',
    hints: [
      ['hawser get volumeattachment', 'see to which node'],
      ['hawser why volumeattachment/NAME', 'see why it is not detached'],
    ],
  },
  usedByPods: {
    title: 'The volume is Released, but pods still use its claim',
    sentence: 'volume {volume} is Released, but pods still use it',
    meaning: 'Nothing is recycled or deleted while a pod uses it.',
    ends: 'The pods end.',
    hints: [['hawser get pods -A', 'list the pods']],
  },
  volumeProtected: {
    title: 'The volume is not deleted because it is bound',
    sentence: 'volume {volume} is being deleted, but is still bound to claim {claim}',
    meaning: 'The finalizer kubernetes.io/pv-protection keeps a volume while it is bound.',
    ends: 'The claim is deleted.',
    hints: [
      ['hawser describe pv/{volume}', 'see its claim'],
      ['hawser delete pvc {claim}', 'if data and claim are no longer needed'],
    ],
  },
  classProtected: {
    title: 'The class is not deleted because it is in use',
    sentence: 'class {class} is being deleted, but is still used by {detail}',
    meaning: 'A VolumeAttributesClass stays while a claim or volume uses it.',
    ends: 'The last claim or volume that uses it is deleted.',
    hints: [['hawser get pvc,pv -A', 'see which claims and volumes use it']],
  },
  volumeIll: {
    title: 'The driver reports that the volume is unhealthy',
    sentence: 'driver {driver} reports that the volume of claim {claim} is unhealthy: {detail}',
    meaning:
      'Drivers may report the health of their volumes (VolumeCondition). The volume may still work; only the driver knows what the report means.',
    ends: 'The driver reports that the volume is healthy again.',
    hints: [
      ['hawser events --for pvc/{claim}', 'see since when, and earlier reports'],
      ['hawser volume snapshot {claim}', 'save the data while it can be read'],
    ],
  },
  volumeFailed: {
    title: 'The volume has failed',
    sentence: 'volume {volume} is in phase Failed: reclaiming it failed permanently',
    meaning: 'Reclaiming failed with an error that a retry cannot repair.',
    ends: 'Nothing. Clean up the storage by hand, then delete the object.',
    hints: [
      ['hawser describe pv/{volume}', 'status.message says what happened'],
      ['hawser delete pv {volume}', 'after the storage was cleaned up by hand'],
    ],
  },
} as const satisfies CauseTable
