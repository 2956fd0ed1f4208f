// What does every job of a driver need, and how does it write? Shared deps, retry rates, and the one way in which
// these jobs change objects: from the newest version, again on conflict.
import type { KindMap, KindName } from '../../api/kinds.ts'
import { hasFinalizer, isDeleting, refOf, withFinalizer, withoutFinalizer } from '../../api/meta.ts'
import { secretTexts } from '../../api/secret-data.ts'
import { isConflict, isForbidden, isNotFound } from '../../api/status-error.ts'
import type { PersistentVolumeClaim, SecretReference } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { History } from '../../client/history.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { BackoffShape } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import { VolumeError, asVolumeError } from '../../volume/effect.ts'
import type { Driver } from '../drivers.ts'
import type { Caches } from './fresh-view.ts'
import type { Ownership } from './ownership.ts'
import type { ControllerCapabilityName, NodeCapabilityName, PluginCapabilityName, Strings } from '../values.ts'

export interface JobDeps {
  readonly client: Client
  /** Our own writes are in them at once. */
  readonly informers: Caches
  readonly clock: Clock
  readonly log: Log
  readonly recorder: Recorder
  readonly driver: Driver
  /** Where the story of every object is kept, for `hawser why`. */
  readonly history?: History | undefined
  readonly plugin: ReadonlySet<PluginCapabilityName>
  readonly controller: ReadonlySet<ControllerCapabilityName>
  readonly node: ReadonlySet<NodeCapabilityName>
  /** Which claims, volumes and snapshots are this instance's; asked anew for each decision. */
  owns(): Ownership
  /** Set when this instance works for its own node only. */
  readonly ownNode?: string | undefined
  /** False while upstream's sidecar holds the lease of this job: then it is left alone. */
  active(): boolean
}

/** How failed syncs come back (SIDE-3). */
export const jobBackoff: BackoffShape = { firstMs: 1_000, capMs: 300_000 }
export const slowRetryMs = 300_000
export const workers = 32

const conflictTries = 8

/** Applies `change` to the newest version; undefined means nothing to change, the same object likewise. */
export async function change<K extends KindName>(
  client: Client,
  kind: K,
  known: KindMap[K],
  apply: (object: KindMap[K]) => KindMap[K] | undefined,
  options: { readonly subresource?: string },
  signal: AbortSignal,
): Promise<KindMap[K] | undefined> {
  let object: KindMap[K] = known
  for (let attempt = 1; ; attempt++) {
    const next = apply(object)
    if (next === undefined || next === object) return object
    try {
      return await client.update(kind, next, options, signal)
    } catch (error) {
      if (isNotFound(error)) return undefined
      if (!isConflict(error) || attempt >= conflictTries) throw error
      const fresh = await getIfExists(client, kind, refOf(object), signal)
      if (fresh === undefined || fresh.metadata.uid !== object.metadata.uid) return undefined
      object = fresh
    }
  }
}

/** A finalizer cannot be added to an object that is going away: answers false then. */
export async function addFinalizer<K extends KindName>(
  client: Client,
  kind: K,
  object: KindMap[K],
  finalizer: string,
  signal: AbortSignal,
): Promise<boolean> {
  const add = (each: KindMap[K]) => (isDeleting(each) ? undefined : withFinalizer(each, finalizer))
  const written = await change(client, kind, object, add, {}, signal)
  return written !== undefined && hasFinalizer(written, finalizer)
}

export async function dropFinalizer<K extends KindName>(
  client: Client,
  kind: K,
  object: KindMap[K],
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  await change(client, kind, object, (each) => withoutFinalizer(each, finalizer), {}, signal)
}

/** The values of a secret as strings (SIDE-5). `effect`: unknown where an earlier try may have reached the driver. */
export async function readSecret(
  client: Client,
  ref: SecretReference | undefined,
  signal: AbortSignal,
  effect: 'unknown' | 'untried' = 'unknown',
): Promise<Strings> {
  if (!ref?.name) return {}
  const secret = await client
    .get('Secret', { name: ref.name, namespace: ref.namespace ?? '' }, signal)
    .catch((cause: unknown) => {
      if (!isNotFound(cause) && !isForbidden(cause)) throw cause
      // The words stay those of the server.
      throw new VolumeError('SecretUnread', asVolumeError(cause).message, { effect, cause })
    })
  return secretTexts(secret)
}

export function recordOnClaim(
  { recorder }: Pick<JobDeps, 'recorder'>,
  claim: PersistentVolumeClaim,
  type: 'Normal' | 'Warning',
  reason: string,
  text: string,
): void {
  recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, type, reason, text)
}
