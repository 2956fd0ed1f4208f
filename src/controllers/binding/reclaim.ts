// What is done with the storage of a released volume? Deleting and wiping run outside the key loop, under the volume's
// uid, with back-off. Before anything destructive the server itself is asked once more: is the claim really gone (WC-14)?
import { finalizers } from '../../api/annotations.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { withoutFinalizer } from '../../api/meta.ts'
import { pluginName } from '../../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Pending } from '../../loop/pending.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { Writer } from './writer.ts'
import type { PlannedEvent } from '../shared/event-throttle.ts'
import type { BindingMetrics } from './metrics.ts'
import { operationName } from './operations.ts'
import { isRecyclable, recycle } from './recycle.ts'
import type { EventThrottle } from '../shared/event-throttle.ts'
import { claimKeyOf } from '../shared/volume-index.ts'
import { planReclaim } from './volume-plan.ts'
import type { Waiting } from '../shared/waiting.ts'

export interface ReclaimDeps {
  readonly client: Client
  readonly clock: Clock
  readonly plugins: Registry<ClusterPlugin>
  readonly volumes: FreshCache<PersistentVolume>
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly writer: Writer
  readonly events: EventThrottle
  readonly pending: Pending
  readonly metrics: BindingMetrics
  /** Pods that name this claim and have not ended. */
  usersOf(claimKey: string): readonly Pod[]
}

/** Decides and starts; answers why the volume still waits. Never throws for what the storage says. */
export type Reclaim = (volume: PersistentVolume, signal: AbortSignal) => Promise<readonly Waiting[]>

export function createReclaim(deps: ReclaimDeps): Reclaim {
  const { plugins, pending } = deps
  const start = (volume: PersistentVolume, operation: 'delete' | 'recycle', run: () => Promise<void>): Waiting[] => {
    const begun = pending.start([operationName('volume', volume.metadata.uid)], `volume_${operation}`, run)
    if (begun.kind === 'started' || begun.kind === 'busy') return [{ reason: 'reclaiming' }]
    return [{ reason: 'reclaimFailed', message: begun.error, until: begun.until }]
  }
  return async (volume, signal) => {
    const plan = planReclaim({
      volume,
      deleterByName: (name) => deleterNamed(plugins, name),
      deleterBySource: (object) => deleterFor(plugins, object),
    })
    switch (plan.kind) {
      case 'keep':
        return plan.waiting
      case 'fail':
        await fail(deps, volume, plan.event, signal)
        return [{ reason: 'reclaimFailed', message: plan.event.message }]
      case 'delete':
        deps.metrics.deleteStarted(volume, plan.plugin)
        return start(volume, 'delete', () => deleteStorage(deps, volume, plan.plugin, signal))
      case 'recycle': {
        const users = usersBlocking(deps, volume)
        if (users !== undefined) return [blocked(deps, volume, users)]
        return start(volume, 'recycle', () => recycleStorage(deps, volume, signal))
      }
      default:
        return plan satisfies never
    }
  }
}

/** The storage, then the object. The answer that counts is the server's, by name and uid (RCL-6, WC-14). */
async function deleteStorage(deps: ReclaimDeps, seen: PersistentVolume, plugin: string, signal: AbortSignal) {
  const volume = await stillReleased(deps, seen, 'Delete', signal)
  if (volume === undefined) return
  try {
    const { remove } = deps.plugins.byName(pluginName(plugin)).plugin
    if (remove === undefined) throw new Error(`failed to create deleter for volume "${volume.metadata.name}"`)
    await remove(specOfPersistentVolume(volume, false), signal)
  } catch (error) {
    if (signal.aborted) throw error
    deps.metrics.failed('delete', plugin)
    const inUse = error instanceof VolumeError && error.code === 'DeletedVolumeInUse'
    const message = errorText(error)
    if (inUse) deps.events.record('PersistentVolume', volume, { type: 'Normal', reason: 'VolumeDelete', message })
    else await fail(deps, volume, { type: 'Warning', reason: 'VolumeFailedDelete', message }, signal)
    throw error
  }
  await removeObject(deps, volume, signal)
}

async function removeObject({ client, writer }: ReclaimDeps, volume: PersistentVolume, signal: AbortSignal) {
  const { name, uid } = volume.metadata
  try {
    const current = await client.get('PersistentVolume', { name }, signal)
    if (current.metadata.uid !== uid) return
    const write = { what: 'storage deleted' }
    await writer.putVolume(current, withoutFinalizer(current, finalizers.volumeController), write, signal)
    await client.remove('PersistentVolume', { name }, uid === undefined ? {} : { uid }, signal)
  } catch (error) {
    // Gone already, or replaced: there is nothing left to remove. Anything else comes back; deleting is idempotent.
    if (!isNotFound(error) && !(isConflict(error) && (await isGone(client, name, uid, signal)))) throw error
  }
}

async function isGone(client: Client, name: string, uid: string | undefined, signal: AbortSignal): Promise<boolean> {
  const current = await getIfExists(client, 'PersistentVolume', { name }, signal)
  return current === undefined || current.metadata.uid !== uid
}

/** Wiped by a pod once no pod uses the claim, then Available again (RCL-7, RCL-8). */
async function recycleStorage(deps: ReclaimDeps, seen: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { writer, events } = deps
  const volume = await stillReleased(deps, seen, 'Recycle', signal)
  if (volume === undefined) return
  const users = usersBlocking(deps, volume)
  if (users !== undefined) return void blocked(deps, volume, users)
  const failed = (message: string) =>
    fail(deps, volume, { type: 'Warning', reason: 'VolumeFailedRecycle', message }, signal)
  if (!isRecyclable(volume)) return failed('No recycler plugin found for the volume!')
  try {
    await recycle(
      deps,
      {
        volume,
        onPodEvent: (type, message) =>
          events.record('PersistentVolume', volume, { type, reason: 'RecyclerPod', message }),
      },
      signal,
    )
  } catch (error) {
    if (signal.aborted) throw error
    await failed(`Recycle failed: ${errorText(error)}`)
    throw error
  }
  const event = { type: 'Normal', reason: 'VolumeRecycled', message: 'Volume recycled' } as const
  events.record('PersistentVolume', volume, event)
  const current = await getIfExists(deps.client, 'PersistentVolume', { name: volume.metadata.name }, signal)
  if (current?.metadata.uid === volume.metadata.uid && current !== undefined) await writer.unbind(current, signal)
}

/** RCL-7: pods that still name the claim. A claim of that name in the cache is another one; its pods do not count. */
function usersBlocking(deps: ReclaimDeps, volume: PersistentVolume): string | undefined {
  const claimKey = claimKeyOf(volume) ?? ''
  const users = deps.claims.get(claimKey) === undefined ? deps.usersOf(claimKey) : []
  if (users.length === 0) return undefined
  return users
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    .sort()
    .join(',')
}

function blocked({ events }: ReclaimDeps, volume: PersistentVolume, users: string): Waiting {
  const message = `Volume is used by pods: ${users}`
  events.record('PersistentVolume', volume, { type: 'Normal', reason: 'VolumeFailedRecycle', message })
  return { reason: 'usedByPods', message }
}

/** The volume as the server has it now, if it may be reclaimed under this policy; undefined if not (any more). */
async function stillReleased(
  { client }: ReclaimDeps,
  seen: PersistentVolume,
  policy: 'Delete' | 'Recycle',
  signal: AbortSignal,
): Promise<PersistentVolume | undefined> {
  const volume = await getIfExists(client, 'PersistentVolume', { name: seen.metadata.name }, signal)
  if (volume === undefined || volume.metadata.uid !== seen.metadata.uid) return undefined
  const ref = volume.spec.claimRef
  if (!ref?.uid || volume.spec.persistentVolumeReclaimPolicy !== policy) return undefined
  const claim = await readClaim(client, ref, signal)
  const inUse =
    claim?.metadata.uid === ref.uid && (!claim?.spec.volumeName || claim.spec.volumeName === volume.metadata.name)
  return inUse ? undefined : volume
}

async function fail(
  { writer, events }: ReclaimDeps,
  volume: PersistentVolume,
  event: PlannedEvent,
  signal: AbortSignal,
): Promise<void> {
  const { message } = event
  const { changed } = await writer.setPhase({ volume, phase: 'Failed', message }, signal)
  if (changed) events.record('PersistentVolume', volume, event)
}

export function readClaim(
  client: Client,
  ref: { readonly namespace?: string; readonly name?: string },
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const { namespace, name = '' } = ref
  return getIfExists(client, 'PersistentVolumeClaim', namespace === undefined ? { name } : { namespace, name }, signal)
}

function deleterNamed(plugins: Registry<ClusterPlugin>, name: string): string | undefined {
  const found = plugins.all().find((each) => each.name === name)
  return found?.plugin.remove === undefined ? undefined : found.name
}

function deleterFor(plugins: Registry<ClusterPlugin>, volume: PersistentVolume): string | undefined {
  const spec = specOfPersistentVolume(volume, false)
  const found = plugins.all().find((each) => each.supports(spec))
  return found?.plugin.remove === undefined ? undefined : found.name
}
