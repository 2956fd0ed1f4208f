// Who answers when a claim asks for more space? A key loop over bound claims: announce it to the external resizer, or
// let one of our own plugins grow the volume. The volume's capacity is written before the claim's status (13.1).
import { annotations } from '../../api/annotations.ts'
import { annotation, keyOf, withAnnotations } from '../../api/meta.ts'
import { bytesOfQuantity, compareQuantities, quantityOfBytes } from '../../api/quantity.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { expanderOf } from '../../volume/expander.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import { migratedPlugin } from '../binding/migration.ts'
import type { Waiting } from '../binding/waiting.ts'
import { createWaitingList } from '../binding/waiting.ts'
import { createTeller } from '../binding/teller.ts'
import { oneLoopController } from '../controller.ts'
import type { Controller, ControllerDeps } from '../controller.ts'
import { claimGrowing, claimGrown, claimHandedToNode, planExpansion } from './plan.ts'

export interface ExpansionDeps extends ControllerDeps {
  readonly plugins: Registry<ClusterPlugin>
  readonly options?: { readonly workers?: number }
}

export function createExpansionController(deps: ExpansionDeps): Controller {
  const { client, informers, clock, plugins } = deps
  const stack = new AsyncDisposableStack()
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const volumes = informers.of('PersistentVolume')
  const teller = createTeller(deps.recorder('volume_expand'), clock)
  const waiting = createWaitingList((key, list) => deps.onWaiting?.('expansion', key, list))

  const putStatus = async (claim: PersistentVolumeClaim, signal: AbortSignal) => {
    const written = await client.update('PersistentVolumeClaim', claim, { subresource: 'status' }, signal)
    claims.wrote(written)
    return written
  }
  const told = (claim: PersistentVolumeClaim, rule: string, what: string) =>
    deps.onTransition?.({ controller: 'expansion', object: `PersistentVolumeClaim/${keyOf(claim)}`, rule, what })

  /** EXP-5 */
  const expand = async (claim: PersistentVolumeClaim, volume: PersistentVolume, size: string, signal: AbortSignal) => {
    const spec = specOfPersistentVolume(volume, false)
    const expander = expanderOf(plugins, spec)
    if (!expander) throw new Error('no expandable volume plugin found')
    const growing = claimGrowing(claim, size, expander.name, timestamp(clock.now()))
    const marked = growing === claim ? claim : await putStatus(growing, signal)
    try {
      const before = volume.spec.capacity?.['storage'] ?? '0'
      const request = { spec, oldBytes: bytesOfQuantity(before), newBytes: bytesOfQuantity(size) }
      const reached = quantityOfBytes(await expander.expand(request, signal))
      const needsNode = spec.mode === 'Filesystem' && (expander.requiresResize?.(spec) ?? true)
      await growVolume(volume, reached, needsNode ? (claim.status?.capacity?.['storage'] ?? before) : undefined, signal)
      if (needsNode) await putStatus(claimHandedToNode(marked, timestamp(clock.now())), signal)
      else {
        await putStatus(claimGrown(marked, reached), signal)
        // Only now it has its size; otherwise the node tells (EXC-1).
        const message = `ExpandVolume succeeded for volume ${keyOf(claim)}`
        teller.tell('PersistentVolumeClaim', claim, { type: 'Normal', reason: 'VolumeResizeSuccessful', message })
      }
    } catch (error) {
      if (!signal.aborted)
        teller.tell('PersistentVolumeClaim', claim, {
          type: 'Warning',
          reason: 'VolumeResizeFailed',
          message: error instanceof Error ? error.message : String(error),
        })
      throw error
    }
    told(claim, 'EXP-5', `grown to ${size}`)
  }
  /** The capacity, and what the claim had before if a node must finish; one PATCH, guarded by the version. */
  const growVolume = async (
    volume: PersistentVolume,
    size: string,
    before: string | undefined,
    signal: AbortSignal,
  ) => {
    const keep = before === undefined || annotation(volume, annotations.preResizeCapacity) !== undefined
    const body = {
      metadata: {
        resourceVersion: volume.metadata.resourceVersion,
        ...(keep ? {} : { annotations: { [annotations.preResizeCapacity]: before } }),
      },
      spec: { capacity: { storage: size } },
    }
    await client.patch('PersistentVolume', { name: volume.metadata.name }, { type: 'merge', body }, {}, signal)
  }
  const readVolume = async (name: string, signal: AbortSignal) => {
    try {
      return await client.get('PersistentVolume', { name }, signal) // EXP-1: a live read
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
  /** EXP-1: claims whose request or shown size grew; a volume that grows alone announces nothing to anybody. */
  const grown = new Set<string>()
  const look = async (
    claim: PersistentVolumeClaim,
    isNews: boolean,
    signal: AbortSignal,
  ): Promise<readonly Waiting[]> => {
    const announce = (message: string) => {
      if (isNews) teller.tell('PersistentVolumeClaim', claim, { type: 'Normal', reason: 'ExternalExpanding', message })
    }
    if (claim.status?.phase !== 'Bound' || !claim.spec.volumeName) return []
    const cached = volumes.get(claim.spec.volumeName)
    // The cache is enough to see that there is nothing to do, which is nearly always.
    if (cached !== undefined && planFor(plugins, claim, cached).kind === 'leave') return []
    const volume = await readVolume(claim.spec.volumeName, signal)
    if (volume === undefined) throw new Error(`persistentvolumes "${claim.spec.volumeName}" not found`)
    const plan = planFor(plugins, claim, volume)
    switch (plan.kind) {
      case 'leave':
        return []
      case 'fail':
        throw new Error(plan.message)
      case 'external': {
        const message = 'waiting for an external controller to expand this PVC'
        announce(message)
        return [{ reason: 'externalResizer', rule: 'EXP-4', message }]
      }
      case 'handOver': {
        const message = `CSI migration enabled for ${plan.plugin}; waiting for external resizer to expand the pvc`
        announce(message)
        if (annotation(claim, annotations.storageResizer) !== plan.driver) {
          const named = withAnnotations(claim, { [annotations.storageResizer]: plan.driver })
          claims.wrote(await client.update('PersistentVolumeClaim', named, {}, signal))
          told(claim, 'EXP-3', `resizer ${plan.driver}`)
        }
        return [{ reason: 'externalResizer', rule: 'EXP-3', message }]
      }
      case 'tidy': {
        const body = {
          metadata: {
            resourceVersion: volume.metadata.resourceVersion,
            annotations: { [annotations.preResizeCapacity]: null },
          },
        }
        await client.patch('PersistentVolume', { name: volume.metadata.name }, { type: 'merge', body }, {}, signal)
        return []
      }
      case 'rearmNode':
        await putStatus(claimHandedToNode(claim, timestamp(clock.now())), signal)
        return []
      case 'expand':
        await expand(claim, volume, plan.size, signal)
        return []
      default:
        return plan satisfies never
    }
  }
  const gate = { isOpen: false }
  const loop = createKeyLoop<string>({
    name: 'expansion',
    clock,
    workers: deps.options?.workers ?? 10,
    async look(key, signal) {
      const claim = claims.get(key)
      const isNews = grown.delete(key)
      try {
        waiting.set(`PersistentVolumeClaim/${key}`, claim === undefined ? [] : await look(claim, isNews, signal))
      } catch (error) {
        if (isNews) grown.add(key)
        throw error
      }
    },
    onError: (key, error, until) =>
      waiting.set(`PersistentVolumeClaim/${key}`, [
        { reason: 'retrying', rule: 'EXP-2', message: String(error), until },
      ]),
  })
  const wake = (key: string | undefined) => {
    const claim = key === undefined ? undefined : claims.get(key)
    if (gate.isOpen && claim?.status?.phase === 'Bound') loop.wake(keyOf(claim))
  }
  stack.use(
    claims.subscribe(({ key, object, previous }) => {
      if (object !== undefined) {
        if (hasGrown(object, previous)) grown.add(key)
        if (!claims.isOwnWrite && wantsLook(object, previous)) wake(key)
        return
      }
      grown.delete(key)
      teller.forget(previous?.metadata.uid)
      waiting.set(`PersistentVolumeClaim/${key}`, [])
      loop.forget(key)
    }),
  )
  // W-33: level-triggered, so a volume's change counts as much as its claim's.
  const claimsByVolume = claims.index((claim) => (claim.spec.volumeName ? [claim.spec.volumeName] : []))
  stack.use(
    volumes.subscribe(({ key, object, previous }) => {
      if (object === undefined || sameSize(object, previous)) return
      for (const claim of claimsByVolume.get(key)) wake(keyOf(claim))
    }),
  )
  return oneLoopController({
    name: 'expansion',
    gate,
    loop,
    waiting,
    subscriptions: stack,
    synced: Promise.all([claims.synced, volumes.synced]),
    begin() {
      for (const key of claims.items.keys()) wake(key)
    },
  })
}

function planFor(plugins: Registry<ClusterPlugin>, claim: PersistentVolumeClaim, volume: PersistentVolume) {
  const expandable = () => expanderOf(plugins, specOfPersistentVolume(volume, false)) !== undefined
  return planExpansion({
    claim,
    volume,
    migrated: migratedPlugin(volume),
    get expandable() {
      return expandable()
    },
  })
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

/** EXP-1 */
function wantsLook(claim: PersistentVolumeClaim, previous: PersistentVolumeClaim | undefined): boolean {
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
