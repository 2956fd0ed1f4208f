// What is done with the storage of a released volume? Deleting and wiping run outside the key loop, under the volume's
// uid, with back-off. Before anything destructive the server itself is asked once more: is the claim really gone (W-14)?
import { finalizers } from '../../api/annotations.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { withoutFinalizer } from '../../api/meta.ts'
import { pluginName } from '../../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/types.ts'
import type { Client } from '../../client/client.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Pending } from '../../loop/pending.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { specOfPersistentVolume } from '../../volume/spec.ts'
import type { CarryOut } from './carry-out.ts'
import type { PlannedEvent } from './claim-plan.ts'
import type { BindingMetrics } from './metrics.ts'
import { isRecyclable, recycle, textOf } from './recycle.ts'
import type { Teller } from './teller.ts'
import { claimKeyOf } from './volume-index.ts'
import { planReclaim } from './volume-plan.ts'
import type { Waiting } from './waiting.ts'

export interface ReclaimDeps {
  readonly client: Client
  readonly clock: Clock
  readonly plugins: Registry<ClusterPlugin>
  readonly volumes: FreshCache<PersistentVolume>
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly carryOut: CarryOut
  readonly teller: Teller
  readonly pending: Pending
  readonly metrics: BindingMetrics
  /** Pods that name this claim and are not over. */
  usersOf(claimKey: string): readonly Pod[]
}

export interface Reclaim {
  /** Decides and starts; answers why the volume still waits. Never throws for what the storage says. */
  look(volume: PersistentVolume, signal: AbortSignal): Promise<readonly Waiting[]>
}

export function createReclaim(deps: ReclaimDeps): Reclaim {
  const { plugins, pending } = deps
  const start = (volume: PersistentVolume, operation: 'delete' | 'recycle', run: () => Promise<void>): Waiting[] => {
    const begun = pending.start([`volume ${volume.metadata.uid}`], `volume_${operation}`, run)
    if (begun.kind === 'started' || begun.kind === 'busy') return [{ reason: 'reclaiming', rule: 'CTL-9' }]
    return [{ reason: 'reclaimFailed', rule: 'CTL-9', message: begun.error, until: begun.until }]
  }
  return {
    async look(volume, signal) {
      const plan = planReclaim({
        volume,
        deleterByName: (name) => deleterNamed(plugins, name),
        deleterBySource: (object) => deleterFor(plugins, object),
      })
      switch (plan.kind) {
        case 'keep':
          return plan.waiting
        case 'fail': {
          await fail(deps, volume, plan.event, plan.rule, signal)
          return [{ reason: 'reclaimFailed', rule: plan.rule, message: plan.event.message }]
        }
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
    },
  }
}

/** REC-6, with W-14: the answer that counts is the server's, by name and uid. */
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
    const inUse = (error as { code?: unknown }).code === 'DeletedVolumeInUse'
    const message = textOf(error)
    if (inUse) deps.teller.tell('PersistentVolume', volume, { type: 'Normal', reason: 'VolumeDelete', message })
    else await fail(deps, volume, { type: 'Warning', reason: 'VolumeFailedDelete', message }, 'REC-6', signal)
    throw error
  }
  await removeObject(deps, volume, signal)
}

async function removeObject({ client, carryOut }: ReclaimDeps, volume: PersistentVolume, signal: AbortSignal) {
  const { name, uid } = volume.metadata
  try {
    const current = await client.get('PersistentVolume', { name }, signal)
    if (current.metadata.uid !== uid) return
    const write = { rule: 'REC-6', what: 'storage deleted' }
    await carryOut.putVolume(current, withoutFinalizer(current, finalizers.volumeController), write, signal)
    await client.remove('PersistentVolume', { name }, uid === undefined ? {} : { uid }, signal)
  } catch (error) {
    // Gone already, or replaced: there is nothing left to remove. Anything else comes back; deleting is idempotent.
    if (!isNotFound(error) && !(isConflict(error) && (await isGone(client, name, uid, signal)))) throw error
  }
}

async function isGone(client: Client, name: string, uid: string | undefined, signal: AbortSignal): Promise<boolean> {
  const current = await readVolume(client, name, signal)
  return current === undefined || current.metadata.uid !== uid
}

/** REC-7, REC-8 */
async function recycleStorage(deps: ReclaimDeps, seen: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { carryOut, teller } = deps
  const volume = await stillReleased(deps, seen, 'Recycle', signal)
  if (volume === undefined) return
  const users = usersBlocking(deps, volume)
  if (users !== undefined) return void blocked(deps, volume, users)
  const failed = (message: string) =>
    fail(deps, volume, { type: 'Warning', reason: 'VolumeFailedRecycle', message }, 'REC-8', signal)
  if (!isRecyclable(volume)) return failed('No recycler plugin found for the volume!')
  try {
    await recycle(
      deps,
      {
        volume,
        onPodEvent: (type, message) =>
          teller.tell('PersistentVolume', volume, { type, reason: 'RecyclerPod', message }),
      },
      signal,
    )
  } catch (error) {
    if (signal.aborted) throw error
    await failed(`Recycle failed: ${textOf(error)}`)
    throw error
  }
  const event = { type: 'Normal', reason: 'VolumeRecycled', message: 'Volume recycled' } as const
  teller.tell('PersistentVolume', volume, event)
  const current = await readVolume(deps.client, volume.metadata.name, signal)
  if (current?.metadata.uid === volume.metadata.uid && current !== undefined)
    await carryOut.unbind(current, 'REC-8', signal)
}

/** REC-7: pods that still name the claim. A claim of that name in the cache is another one; its pods do not count. */
function usersBlocking(deps: ReclaimDeps, volume: PersistentVolume): string | undefined {
  const claimKey = claimKeyOf(volume) ?? ''
  const users = deps.claims.get(claimKey) === undefined ? deps.usersOf(claimKey) : []
  if (users.length === 0) return undefined
  return users
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    .sort()
    .join(',')
}

function blocked({ teller }: ReclaimDeps, volume: PersistentVolume, users: string): Waiting {
  const message = `Volume is used by pods: ${users}`
  teller.tell('PersistentVolume', volume, { type: 'Normal', reason: 'VolumeFailedRecycle', message })
  return { reason: 'usedByPods', rule: 'REC-7', message }
}

/** The volume as the server has it now, if it may be reclaimed under this policy; undefined if not (any more). */
async function stillReleased(
  { client }: ReclaimDeps,
  seen: PersistentVolume,
  policy: 'Delete' | 'Recycle',
  signal: AbortSignal,
): Promise<PersistentVolume | undefined> {
  const volume = await readVolume(client, seen.metadata.name, signal)
  if (volume === undefined || volume.metadata.uid !== seen.metadata.uid) return undefined
  const ref = volume.spec.claimRef
  if (!ref?.uid || volume.spec.persistentVolumeReclaimPolicy !== policy) return undefined
  const claim = await readClaim(client, ref, signal)
  const inUse =
    claim?.metadata.uid === ref.uid && (!claim?.spec.volumeName || claim.spec.volumeName === volume.metadata.name)
  return inUse ? undefined : volume
}

async function fail(
  { carryOut, teller }: ReclaimDeps,
  volume: PersistentVolume,
  event: PlannedEvent,
  rule: string,
  signal: AbortSignal,
): Promise<void> {
  const { message } = event
  const { changed } = await carryOut.setPhase({ volume, phase: 'Failed', message }, rule, signal)
  if (changed) teller.tell('PersistentVolume', volume, event)
}

export async function readVolume(
  client: Client,
  name: string,
  signal: AbortSignal,
): Promise<PersistentVolume | undefined> {
  try {
    return await client.get('PersistentVolume', { name }, signal)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

export async function readClaim(
  client: Client,
  ref: { readonly namespace?: string; readonly name?: string },
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const { namespace, name = '' } = ref
  try {
    return await client.get('PersistentVolumeClaim', namespace === undefined ? { name } : { namespace, name }, signal)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
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
