// What should happen to this volume next? Every branch of volume sync (VOL-1 … VOL-13) and of reclaiming
// (RCL-1 … RCL-8) as total, pure functions.
import { annotations, finalizers } from '../../api/annotations.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import type { PlannedEvent } from '../shared/event-throttle.ts'
import { isRecyclable } from './recycle.ts'
import type { Waiting } from '../shared/waiting.ts'

type VolumeAction =
  | { readonly kind: 'markAvailable' | 'markBound' | 'leave' }
  /** The claim's own plan binds the pair. */
  | { readonly kind: 'wakeClaim'; readonly claim: PersistentVolumeClaim }
  /** The claim is gone as far as the cache knows; ask the server before believing it (VOL-4, VOL-5). */
  | { readonly kind: 'askServer' }
  | { readonly kind: 'unbind' }
  /** Phase Released (unless it already says Released or Failed), then reclaim. */
  | { readonly kind: 'release' }

export interface VolumePlan {
  readonly action: VolumeAction
  readonly events: readonly {
    readonly on: 'volume' | 'claim'
    readonly event: PlannedEvent
  }[]
  readonly waiting: readonly Waiting[]
}

export interface VolumeFacts {
  readonly volume: PersistentVolume
  /** The claim of the name in claimRef, if there is one. */
  readonly claim: PersistentVolumeClaim | undefined
  /** True when `claim` is the server's own answer, not the cache's. */
  readonly live: boolean
}

export function planVolume(facts: VolumeFacts): VolumePlan {
  const { volume, claim, live } = facts
  const ref = volume.spec.claimRef
  if (ref === undefined) return simply('markAvailable')
  if (!ref.uid) return { ...simply('markAvailable'), waiting: [{ reason: 'reserved' }] }
  const mine = claim !== undefined && claim.metadata.uid === ref.uid
  if (!mine) {
    // WC-5: a volume that is already Released or Failed costs no live read here; reclaim makes its own.
    if (!live && !isLetGo(volume)) return simply('askServer')
    return simply('release')
  }
  if (!claim.spec.volumeName) return planUnboundClaim(volume, claim)
  if (claim.spec.volumeName === volume.metadata.name) return simply('markBound')
  const loser =
    annotation(volume, annotations.provisionedBy) !== undefined &&
    volume.spec.persistentVolumeReclaimPolicy === 'Delete'
  return loser ? simply('release') : simply('unbind')
}

export function isLetGo(volume: PersistentVolume): boolean {
  return volume.status?.phase === 'Released' || volume.status?.phase === 'Failed'
}

function planUnboundClaim(volume: PersistentVolume, claim: PersistentVolumeClaim): VolumePlan {
  const modeOf = (object: PersistentVolume | PersistentVolumeClaim) => object.spec.volumeMode ?? 'Filesystem'
  if (modeOf(volume) === modeOf(claim)) return { ...simply('leave'), action: { kind: 'wakeClaim', claim } }
  const warn = (message: string): PlannedEvent => ({ type: 'Warning', reason: 'VolumeMismatch', message })
  const onVolume = `Cannot bind PersistentVolume to requested PersistentVolumeClaim "${claim.metadata.name}" due to incompatible volumeMode.`
  const onClaim = `Cannot bind PersistentVolume "${volume.metadata.name}" to requested PersistentVolumeClaim due to incompatible volumeMode.`
  return {
    ...simply('leave'),
    events: [
      { on: 'volume', event: warn(onVolume) },
      { on: 'claim', event: warn(onClaim) },
    ],
    waiting: [{ reason: 'namedVolumeUnfit', message: onVolume }],
  }
}

function simply(kind: 'markAvailable' | 'markBound' | 'leave' | 'askServer' | 'unbind' | 'release'): VolumePlan {
  return { action: { kind }, events: [], waiting: [] }
}

export type ReclaimAction =
  | { readonly kind: 'keep'; readonly waiting: readonly Waiting[] }
  | { readonly kind: 'delete'; readonly plugin: string }
  | { readonly kind: 'recycle' }
  /** Phase Failed with this message, and this warning. */
  | { readonly kind: 'fail'; readonly event: PlannedEvent }

export interface ReclaimFacts {
  readonly volume: PersistentVolume
  /** The name of our plugin that can delete this volume: by name, or by the volume's source. */
  deleterByName(name: string): string | undefined
  deleterBySource(volume: PersistentVolume): string | undefined
}

/** What becomes of a released volume. */
export function planReclaim(facts: ReclaimFacts): ReclaimAction {
  const { volume } = facts
  const keep = (...waiting: Waiting[]): ReclaimAction => ({ kind: 'keep', waiting })
  if (annotation(volume, annotations.migratedTo)) return keep({ reason: 'externalDeleter' })
  switch (volume.spec.persistentVolumeReclaimPolicy) {
    case 'Retain':
      return keep({ reason: 'retained' })
    case 'Recycle':
      return { kind: 'recycle' }
    case 'Delete':
      return planDelete(facts)
    default: {
      const message = 'Volume has unrecognized PersistentVolumeReclaimPolicy'
      return { kind: 'fail', event: { type: 'Warning', reason: 'VolumeUnknownReclaimPolicy', message } }
    }
  }
}

/** Who deletes: one of our plugins, an external deleter, or nobody (RCL-5). */
function planDelete({ volume, deleterByName, deleterBySource }: ReclaimFacts): ReclaimAction {
  const { name } = volume.metadata
  const external: ReclaimAction = {
    kind: 'keep',
    waiting: [{ reason: 'externalDeleter' }],
  }
  const failedWith = (message: string): ReclaimAction => ({
    kind: 'fail',
    event: { type: 'Warning', reason: 'VolumeFailedDelete', message },
  })
  const provisioner = annotation(volume, annotations.provisionedBy)
  if (provisioner) {
    const plugin = deleterByName(provisioner)
    // Going away without our finalizer: we took it off when the storage was gone; only the object is left.
    const isDone = isDeleting(volume) && !hasFinalizer(volume, finalizers.volumeController)
    if (plugin !== undefined && isDone) return { kind: 'keep', waiting: [] }
    if (plugin !== undefined) return { kind: 'delete', plugin }
    if (!provisioner.startsWith('kubernetes.io/')) return external
    return failedWith(`no volume plugin matched name: ${provisioner}`)
  }
  if (annotation(volume, annotations.migratedTo) !== undefined || volume.spec.csi !== undefined) return external
  const plugin = deleterBySource(volume)
  if (plugin !== undefined) return { kind: 'delete', plugin }
  // A type that can be wiped has a plugin here; it only cannot delete.
  const missing = isRecyclable(volume) ? 'no deletable volume plugin matched' : 'no volume plugin matched'
  return failedWith(`error getting deleter volume plugin for volume "${name}": ${missing}`)
}
