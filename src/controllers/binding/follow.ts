// What wakes whom? Changes of volumes, claims, classes and pods, and operations that ended, become keys to sync.
// Our own writes wake only objects other than the pair that is being written: that sync is still running.
import type { PersistentVolume, Pod, StorageClass } from '../../api/generated/types.ts'
import { isDeleting, keyOf, refKey } from '../../api/meta.ts'
import { claimKeysOf } from '../../api/pod-claims.ts'
import { isDefaultClass } from '../../api/storage-class.ts'
import type { Pending } from '../../loop/pending.ts'
import type { ControllerLoop } from '../shared/controller-loop.ts'
import type { EventThrottle } from '../shared/event-throttle.ts'
import { claimKeyOf, isFree } from '../shared/volume-index.ts'
import type { Waiting } from '../shared/waiting.ts'
import type { BindingMetrics } from './metrics.ts'
import type { Offers } from './offers.ts'
import { operationName } from './operations.ts'
import type { Operations } from './operations.ts'
import { claimKey, volumeKey } from './state.ts'
import type { BindingKey, BindingState } from './state.ts'

export interface FollowDeps {
  readonly state: BindingState
  readonly loop: ControllerLoop<BindingKey>
  readonly offers: Offers
  readonly metrics: BindingMetrics
  readonly events: EventThrottle
  readonly pending: Pending
  readonly operations: Operations
}

export function follow(deps: FollowDeps, stack: AsyncDisposableStack): void {
  const { state } = deps
  stack.use(state.volumes.subscribe(({ object, previous }) => volumeChanged(deps, object, previous)))
  followClaims(deps, stack)
  stack.use(
    state.classes.subscribe(({ key: name, object, previous }) => {
      for (const claim of state.unbound.ofClass(name)) wakeClaim(deps, claim)
      if (isDefault(object) || isDefault(previous))
        for (const claim of state.unbound.withoutClass()) wakeClaim(deps, claim)
    }),
  )
  stack.use(
    state.pods.subscribe(({ object, previous }) => {
      for (const claim of new Set([...claimsIn(object), ...claimsIn(previous)])) podOfClaimChanged(deps, claim)
    }),
  )
  stack.use(deps.pending.onRelease(([name], retryAt, error) => operationEnded(deps, name, retryAt, error)))
}

/** Wakes a claim (`namespace/name`) that exists. */
export function wakeClaim({ state, loop }: Pick<FollowDeps, 'state' | 'loop'>, name: string | undefined): void {
  const claim = name === undefined ? undefined : state.claims.get(name)
  if (claim !== undefined) loop.wake(claimKey(claim))
}

export function wakeVolume({ state, loop }: Pick<FollowDeps, 'state' | 'loop'>, name: string): void {
  if (state.volumes.get(name) !== undefined) loop.wake(volumeKey(name))
}

function volumeChanged(
  deps: FollowDeps,
  object: PersistentVolume | undefined,
  previous: PersistentVolume | undefined,
): void {
  const { state, offers } = deps
  const { name } = (object ?? previous)!.metadata
  if (object === undefined) forgetVolume(deps, previous!)
  else state.index.put(object)
  const isOwnWrite = state.volumes.isOwnWrite
  const partner = object && claimKeyOf(object)
  // Claims that name this volume are woken, except the one for which we are writing it. A volume that begins to be
  // deleted wakes nobody: it is gone in a moment, or kept by a finalizer, and neither can be acted on.
  const isLeaving = object !== undefined && previous !== undefined && isDeleting(object) && !isDeleting(previous)
  for (const claim of isLeaving ? [] : state.claimsByVolume.get(name))
    if (!isOwnWrite || keyOf(claim) !== partner) wakeClaim(deps, keyOf(claim))
  if (!isOwnWrite) {
    wakeVolume(deps, name)
    for (const each of [object, previous]) if (each) wakeClaim(deps, claimKeyOf(each))
  }
  if (object !== undefined && isFree(object) && !(previous && isFree(previous))) offers.offer(name)
}

function forgetVolume({ state, loop, metrics, events, pending }: FollowDeps, volume: PersistentVolume): void {
  const { name, uid } = volume.metadata
  state.index.remove(name)
  metrics.volumeGone(volume)
  events.forget(uid)
  pending.forget(operationName('volume', uid))
  loop.forget(volumeKey(name))
}

function followClaims(deps: FollowDeps, stack: AsyncDisposableStack): void {
  const { state, loop, metrics, events, pending } = deps
  const { claims, unbound, index } = state
  stack.use(
    claims.subscribe(({ key, object, previous }) => {
      if (object === undefined) {
        unbound.remove(key)
        metrics.claimGone(previous)
        events.forget(previous.metadata.uid)
        pending.forget(operationName('claim', previous.metadata.uid))
        loop.forget(claimKey(previous))
      } else unbound.put(object)
      if (!claims.isOwnWrite) wakeClaim(deps, key)
      const isNewPointer = object?.spec.volumeName !== previous?.spec.volumeName
      if (object !== undefined && previous !== undefined && !isNewPointer) return
      // Added, gone, or it points elsewhere now: every volume that names this claim is planned again (VOL-9 … VOL-11).
      for (const volume of index.namedFor(key)) {
        const isPartner = volume.metadata.name === object?.spec.volumeName
        if (!isPartner || !claims.isOwnWrite) wakeVolume(deps, volume.metadata.name)
      }
      if (previous?.spec.volumeName) wakeVolume(deps, previous.spec.volumeName)
    }),
  )
}

function podOfClaimChanged(deps: FollowDeps, claim: string): void {
  const { unbound, index } = deps.state
  if (unbound.has(claim)) wakeClaim(deps, claim)
  // A volume to be recycled waits until its pods are gone (RCL-7).
  for (const volume of index.namedFor(claim))
    if (volume.spec.persistentVolumeReclaimPolicy === 'Recycle') wakeVolume(deps, volume.metadata.name)
}

function operationEnded(
  { state, loop, operations }: FollowDeps,
  name: string,
  retryAt: number | undefined,
  message: string | undefined,
): void {
  const ended = operations.ended(name)
  if (ended === undefined) return
  const { key, askedAgain } = ended
  const isClaim = key.kind === 'PersistentVolumeClaim'
  const isGone = (isClaim ? state.claims : state.volumes).get(refKey(key)) === undefined
  const reason = isClaim ? 'provisioningFailed' : 'reclaimFailed'
  const waiting: readonly Waiting[] =
    retryAt === undefined || isGone ? [] : [{ reason, ...(message === undefined ? {} : { message }), until: retryAt }]
  loop.setWaiting(key, waiting)
  if (retryAt !== undefined) loop.wakeAt(key, retryAt)
  // The new volume of a claim is our own write and wakes nobody, so its claim is woken here.
  else if (askedAgain || isClaim) loop.wake(key)
}

function claimsIn(pod: Pod | undefined): readonly string[] {
  return pod === undefined ? [] : claimKeysOf(pod)
}

function isDefault(storageClass: StorageClass | undefined): boolean {
  return storageClass !== undefined && isDefaultClass(storageClass)
}
