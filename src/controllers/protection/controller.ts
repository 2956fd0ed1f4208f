// Who keeps objects alive while they are in use? One loop over claims, volumes and volume attributes classes.
import { finalizers } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttributesClass } from '../../api/generated/types.ts'
import { refKey } from '../../api/meta.ts'
import { claimKeysOf } from '../../api/pod-claims.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Index, Informer } from '../../client/informer.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { createControllerLoop } from '../shared/controller-loop.ts'
import type { ControllerLoop } from '../shared/controller-loop.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import type { Waiting } from '../shared/waiting.ts'
import { createCarryOut } from './carry-out.ts'
import type { CarryOut } from './carry-out.ts'
import { classesNamedBy, planClaimProtection, planClassProtection, planVolumeProtection } from './plan.ts'

export interface ProtectionDeps extends ControllerDeps {
  readonly options?: {
    readonly workers?: number
    /** The `Unused` condition of newer releases (PCP-5); off for the reference behaviour of 1.35. */
    readonly unusedCondition?: boolean
  }
}

type ProtectionKey = ObjectKey<'PersistentVolumeClaim' | 'PersistentVolume' | 'VolumeAttributesClass'>

interface Caches {
  readonly claims: Informer<PersistentVolumeClaim>
  readonly volumes: Informer<PersistentVolume>
  readonly classes: Informer<VolumeAttributesClass>
  readonly pods: Informer<Pod>
  readonly claimsByClass: Index<PersistentVolumeClaim>
  readonly volumesByClass: Index<PersistentVolume>
}

export function createProtectionController(deps: ProtectionDeps): Controller {
  const { informers } = deps
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const classes = informers.of('VolumeAttributesClass')
  const pods = informers.of('Pod')
  const caches: Caches = {
    ...{ claims, volumes, classes, pods },
    claimsByClass: claims.index(classesNamedBy),
    volumesByClass: volumes.index(classesNamedBy),
  }
  const showUnused = deps.options?.unusedCondition === true
  const carryOut = createCarryOut(deps, pods)
  const loop = createControllerLoop<ProtectionKey>(deps, {
    name: 'protection',
    workers: deps.options?.workers ?? 16,
    exists: (key) => informers.of(key.kind).get(refKey(key)) !== undefined,
    async sync(key, signal) {
      try {
        return await sync(caches, carryOut, key, showUnused, signal)
      } catch (error) {
        if (!isNotFound(error)) throw error
        return [] // gone meanwhile: nothing to protect
      }
    },
  })
  return loop.start({
    stack: subscribe(caches, loop, showUnused),
    synced: Promise.all([claims.synced, volumes.synced, classes.synced, pods.synced]),
    begin() {
      for (const claim of claims.items.values()) loop.wake(objectKey('PersistentVolumeClaim', claim))
      for (const volume of volumes.items.values()) loop.wake(objectKey('PersistentVolume', volume))
      for (const each of classes.items.values()) loop.wake(objectKey('VolumeAttributesClass', each))
    },
  })
}

async function sync(
  { claims, volumes, classes, claimsByClass, volumesByClass }: Caches,
  carryOut: CarryOut,
  key: ProtectionKey,
  showUnused: boolean,
  signal: AbortSignal,
): Promise<readonly Waiting[]> {
  const name = refKey(key)
  switch (key.kind) {
    case 'PersistentVolumeClaim': {
      const known = claims.get(name)
      if (known === undefined) return []
      const claim = showUnused ? await carryOut.writeUnused(known, signal) : known // an error here stops the sync (PCP-6)
      return carryOut.claim(claim, planClaimProtection(claim), signal)
    }
    case 'PersistentVolume': {
      const volume = volumes.get(name)
      return volume === undefined ? [] : carryOut.volume(volume, planVolumeProtection(volume), signal)
    }
    case 'VolumeAttributesClass': {
      const attributes = classes.get(name)
      if (attributes === undefined) return []
      const isUsed = claimsByClass.has(name) || volumesByClass.has(name)
      return carryOut.attributesClass(attributes, planClassProtection(attributes, isUsed), signal)
    }
    default:
      return key.kind satisfies never
  }
}

/** What wakes whom. */
function subscribe(caches: Caches, loop: ControllerLoop<ProtectionKey>, showUnused: boolean): AsyncDisposableStack {
  const { claims, volumes, classes, pods } = caches
  const stack = new AsyncDisposableStack()
  const wakeClaim = (claim: PersistentVolumeClaim) => {
    if (showUnused || needsSync(claim, finalizers.claimProtection)) loop.wake(objectKey('PersistentVolumeClaim', claim))
  }
  /** A reference that disappeared may have been the last (VCP-2). */
  const wakeDropped = (
    before: PersistentVolume | PersistentVolumeClaim,
    after: PersistentVolume | PersistentVolumeClaim | undefined,
  ) => {
    const still = after === undefined ? [] : classesNamedBy(after)
    for (const name of classesNamedBy(before))
      if (!still.includes(name)) loop.wake({ kind: 'VolumeAttributesClass', name })
  }
  stack.use(
    claims.subscribe(({ object, previous }) => {
      if (object === undefined) loop.forget(objectKey('PersistentVolumeClaim', previous))
      else wakeClaim(object)
      if (previous !== undefined) wakeDropped(previous, object)
    }),
  )
  stack.use(
    volumes.subscribe(({ object, previous }) => {
      if (object === undefined) loop.forget(objectKey('PersistentVolume', previous))
      else if (needsSync(object, finalizers.volumeProtection)) loop.wake(objectKey('PersistentVolume', object))
      if (previous !== undefined) wakeDropped(previous, object)
    }),
  )
  stack.use(
    classes.subscribe(({ object, previous }) => loop.wake(objectKey('VolumeAttributesClass', object ?? previous))),
  )
  stack.use(
    pods.subscribe(({ object, previous }) => {
      for (const pod of [object, previous]) {
        for (const key of pod === undefined ? [] : claimKeysOf(pod)) {
          const claim = claims.get(key)
          if (claim !== undefined) wakeClaim(claim)
        }
      }
    }),
  )
  return stack
}

/** Only an unprotected object, or a protected one that is being deleted, needs a sync. */
function needsSync(object: PersistentVolume | PersistentVolumeClaim, guard: string): boolean {
  const isProtected = object.metadata.finalizers?.includes(guard) === true
  return (object.metadata.deletionTimestamp !== undefined) === isProtected
}
