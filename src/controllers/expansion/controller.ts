// Who answers when a claim asks for more space? A loop over bound claims: read the pair, plan, carry out.
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { annotation, keyOf, refKey } from '../../api/meta.ts'
import { compareQuantities } from '../../api/quantity.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { Informer } from '../../client/informer.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { expanderOf } from '../../volume/expander.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import { createControllerLoop } from '../shared/controller-loop.ts'
import type { ControllerLoop } from '../shared/controller-loop.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import { createEventThrottle } from '../shared/event-throttle.ts'
import { migratedPlugin } from '../shared/migration.ts'
import type { Waiting } from '../shared/waiting.ts'
import { carryOut } from './carry-out.ts'
import type { CarryOutDeps } from './carry-out.ts'
import { planExpansion } from './plan.ts'
import type { ExpansionPlan } from './plan.ts'

export interface ExpansionDeps extends ControllerDeps {
  readonly plugins: Registry<ClusterPlugin>
  readonly options?: { readonly workers?: number }
}

type ClaimKey = ObjectKey<'PersistentVolumeClaim'>

export function createExpansionController(deps: ExpansionDeps): Controller {
  const { informers, clock } = deps
  const stack = new AsyncDisposableStack()
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const volumes = informers.of('PersistentVolume')
  const events = createEventThrottle(deps.recorder('volume_expand'), clock)
  const parts: CarryOutDeps = { ...deps, claims, events }
  /** Claims whose request or shown size grew; a volume that grows alone is announced to nobody (EXP-1). */
  const grown = new Set<string>()
  const loop = createControllerLoop<ClaimKey>(deps, {
    name: 'expansion',
    workers: deps.options?.workers ?? 10,
    exists: (key) => claims.get(refKey(key)) !== undefined,
    async sync(key, signal) {
      const claim = claims.get(refKey(key))
      const announce = grown.delete(refKey(key))
      try {
        return claim === undefined ? [] : await sync(parts, volumes, claim, announce, signal)
      } catch (error) {
        if (announce) grown.add(refKey(key))
        throw error
      }
    },
  })
  subscribe(stack, loop, claims, volumes, {
    onGrown: (key) => void grown.add(key),
    onGone(claim) {
      grown.delete(keyOf(claim))
      events.forget(claim.metadata.uid)
    },
  })
  return loop.start({
    stack,
    synced: Promise.all([claims.synced, volumes.synced]),
    begin() {
      for (const claim of claims.items.values()) wake(loop, claim)
    },
  })
}

async function sync(
  parts: CarryOutDeps,
  volumes: Informer<PersistentVolume>,
  claim: PersistentVolumeClaim,
  announce: boolean,
  signal: AbortSignal,
): Promise<readonly Waiting[]> {
  const name = claim.spec.volumeName
  if (claim.status?.phase !== 'Bound' || !name) return []
  const cached = volumes.get(name)
  // The cache is enough to see that there is nothing to do, which is nearly always.
  if (cached !== undefined && planFor(parts.plugins, claim, cached).kind === 'leave') return []
  const volume = await getIfExists(parts.client, 'PersistentVolume', { name }, signal) // a live read (EXP-1)
  if (volume === undefined) throw new Error(`persistentvolumes "${name}" not found`)
  return carryOut(parts, { claim, volume, announce }, planFor(parts.plugins, claim, volume), signal)
}

function planFor(
  plugins: Registry<ClusterPlugin>,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
): ExpansionPlan {
  return planExpansion({
    claim,
    volume,
    migrated: migratedPlugin(volume),
    get expandable() {
      return expanderOf(plugins, specOfPersistentVolume(volume, false)) !== undefined
    },
  })
}

/** What wakes whom. A volume's change counts as much as its claim's (WC-33). */
function subscribe(
  stack: AsyncDisposableStack,
  loop: ControllerLoop<ClaimKey>,
  claims: FreshCache<PersistentVolumeClaim>,
  volumes: Informer<PersistentVolume>,
  hooks: { onGrown(key: string): void; onGone(claim: PersistentVolumeClaim): void },
): void {
  stack.use(
    claims.subscribe(({ key, object, previous }) => {
      if (object === undefined) {
        hooks.onGone(previous)
        loop.forget(objectKey('PersistentVolumeClaim', previous))
        return
      }
      if (hasGrown(object, previous)) hooks.onGrown(key)
      if (!claims.isOwnWrite && needsSync(object, previous)) wake(loop, object)
    }),
  )
  const claimsByVolume = claims.index((claim) => (claim.spec.volumeName ? [claim.spec.volumeName] : []))
  stack.use(
    volumes.subscribe(({ key, object, previous }) => {
      if (object === undefined || sameSize(object, previous)) return
      for (const claim of claimsByVolume.get(key)) wake(loop, claim)
    }),
  )
}

function wake(loop: ControllerLoop<ClaimKey>, claim: PersistentVolumeClaim): void {
  if (claim.status?.phase === 'Bound') loop.wake(objectKey('PersistentVolumeClaim', claim))
}

function hasGrown(claim: PersistentVolumeClaim, previous: PersistentVolumeClaim | undefined): boolean {
  if (previous === undefined) return true
  const asks = ({ spec }: PersistentVolumeClaim) => spec.resources?.requests?.['storage']
  const shows = ({ status }: PersistentVolumeClaim) => status?.capacity?.['storage']
  return isMore(asks(claim), asks(previous)) || isMore(shows(claim), shows(previous))
}

/** Every change of every claim asks, and sizes hardly ever change: equal texts need no arithmetic. */
function isMore(size: string | undefined, before: string | undefined): boolean {
  return size !== before && compareQuantities(size, before) > 0
}

/** Sizes or their statuses changed, or the claim became bound (EXP-1). */
function needsSync(claim: PersistentVolumeClaim, previous: PersistentVolumeClaim | undefined): boolean {
  if (previous === undefined || previous.status?.phase !== 'Bound') return true
  const facts = ({ spec, status }: PersistentVolumeClaim) =>
    JSON.stringify([spec.resources, status?.capacity, status?.allocatedResources, status?.allocatedResourceStatuses])
  return facts(claim) !== facts(previous)
}

function sameSize(volume: PersistentVolume, previous: PersistentVolume | undefined): boolean {
  return (
    previous !== undefined &&
    volume.spec.capacity?.['storage'] === previous.spec.capacity?.['storage'] &&
    annotation(volume, annotations.preResizeCapacity) === annotation(previous, annotations.preResizeCapacity)
  )
}
