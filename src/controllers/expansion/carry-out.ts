// How is an expansion plan carried out? The volume is announced to an external resizer, or grown by one of our plugins.
// The volume's capacity is written before the claim's status: a crash in between leaves work that resumes.
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { annotation, keyOf, withAnnotations } from '../../api/meta.ts'
import { bytesOfQuantity, quantityOfBytes } from '../../api/quantity.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import { objectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { expanderOf } from '../../volume/expander.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { ControllerDeps } from '../shared/controller.ts'
import type { EventThrottle } from '../shared/event-throttle.ts'
import type { Waiting } from '../shared/waiting.ts'
import { claimGrowing, claimGrown, claimHandedToNode } from './plan.ts'
import type { ExpansionPlan } from './plan.ts'

export interface CarryOutDeps extends Pick<ControllerDeps, 'client' | 'clock' | 'onTransition'> {
  readonly plugins: Registry<ClusterPlugin>
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly events: EventThrottle
}

export interface Pair {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume
  /** The claim asks anew, so its user is told who answers. */
  readonly announce: boolean
}

/** Answers what the claim waits for. */
export async function carryOut(
  deps: CarryOutDeps,
  pair: Pair,
  plan: ExpansionPlan,
  signal: AbortSignal,
): Promise<readonly Waiting[]> {
  const { claim, volume } = pair
  switch (plan.kind) {
    case 'leave':
      return []
    case 'fail':
      throw new Error(plan.message)
    case 'external':
      return announced(deps, pair, 'waiting for an external controller to expand this PVC')
    case 'handOver': {
      const message = `CSI migration enabled for ${plan.plugin}; waiting for external resizer to expand the pvc`
      const waiting = announced(deps, pair, message)
      await nameResizer(deps, claim, plan.driver, signal)
      return waiting
    }
    case 'tidy':
      await patchVolume(deps, volume, { annotations: { [annotations.preResizeCapacity]: null } }, undefined, signal)
      return []
    case 'rearmNode':
      await putStatus(deps, claimHandedToNode(claim, timestamp(deps.clock.now())), signal)
      return []
    case 'expand':
      await expand(deps, pair, plan.size, signal)
      return []
    default:
      return plan satisfies never
  }
}

function announced({ events }: CarryOutDeps, { claim, announce }: Pair, message: string): readonly Waiting[] {
  if (announce) events.record('PersistentVolumeClaim', claim, { type: 'Normal', reason: 'ExternalExpanding', message })
  return [{ reason: 'externalResizer', message }]
}

async function nameResizer(
  deps: CarryOutDeps,
  claim: PersistentVolumeClaim,
  driver: string,
  signal: AbortSignal,
): Promise<void> {
  if (annotation(claim, annotations.storageResizer) === driver) return
  const named = withAnnotations(claim, { [annotations.storageResizer]: driver })
  deps.claims.wrote(await deps.client.update('PersistentVolumeClaim', named, {}, signal))
  onTransition(deps, claim, `resizer ${driver}`)
}

/** The claim's status says the size under way before the plugin is asked (EXP-5). */
async function expand(deps: CarryOutDeps, { claim, volume }: Pair, size: string, signal: AbortSignal): Promise<void> {
  const { clock, events } = deps
  const spec = specOfPersistentVolume(volume, false)
  const expander = expanderOf(deps.plugins, spec)
  if (!expander) throw new Error('no expandable volume plugin found')
  const growing = claimGrowing(claim, size, expander.name, timestamp(clock.now()))
  const marked = growing === claim ? claim : await putStatus(deps, growing, signal)
  try {
    const before = volume.spec.capacity?.['storage'] ?? '0'
    const request = { spec, oldBytes: bytesOfQuantity(before), newBytes: bytesOfQuantity(size) }
    const reached = quantityOfBytes(await expander.expand(request, signal))
    const needsNode = spec.mode === 'Filesystem' && (expander.requiresResize?.(spec) ?? true)
    const shown = needsNode ? (claim.status?.capacity?.['storage'] ?? before) : undefined
    await growVolume(deps, volume, reached, shown, signal)
    if (needsNode) await putStatus(deps, claimHandedToNode(marked, timestamp(clock.now())), signal)
    else {
      await putStatus(deps, claimGrown(marked, reached), signal)
      // Only now the volume has its size; when the node must act, the node tells (EXC-1).
      const message = `ExpandVolume succeeded for volume ${keyOf(claim)}`
      events.record('PersistentVolumeClaim', claim, { type: 'Normal', reason: 'VolumeResizeSuccessful', message })
    }
  } catch (error) {
    const event = { type: 'Warning', reason: 'VolumeResizeFailed', message: errorText(error) } as const
    if (!signal.aborted) events.record('PersistentVolumeClaim', claim, event)
    throw error
  }
  onTransition(deps, claim, `grown to ${size}`)
}

/** The capacity, and what the claim showed before if a node must finish. */
async function growVolume(
  deps: CarryOutDeps,
  volume: PersistentVolume,
  size: string,
  shown: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const keep = shown === undefined || annotation(volume, annotations.preResizeCapacity) !== undefined
  const metadata = keep ? {} : { annotations: { [annotations.preResizeCapacity]: shown } }
  await patchVolume(deps, volume, metadata, { capacity: { storage: size } }, signal)
}

/** One PATCH, guarded by the version that was judged. */
async function patchVolume(
  { client }: CarryOutDeps,
  volume: PersistentVolume,
  metadata: object,
  spec: object | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = volume.metadata
  const body = { metadata: { resourceVersion, ...metadata }, ...(spec && { spec }) }
  await client.patch('PersistentVolume', { name }, { type: 'merge', body }, {}, signal)
}

async function putStatus(
  { client, claims }: CarryOutDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const written = await client.update('PersistentVolumeClaim', claim, { subresource: 'status' }, signal)
  claims.wrote(written)
  return written
}

function onTransition(deps: CarryOutDeps, claim: PersistentVolumeClaim, what: string): void {
  const object = objectKey('PersistentVolumeClaim', claim)
  deps.onTransition?.({ controller: 'expansion', object, uid: claim.metadata.uid, what })
}
