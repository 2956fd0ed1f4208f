// How does a cache follow one kind? List, then watch from there; resume after a cut, list again when told "too old".
// The reflector owns no objects: it tells its target what it heard, in order.
import { isNotFound, isTooOld } from '../api/status-error.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import { backoff } from '../clock/backoff.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Log } from '../telemetry/log.ts'
import type { Client } from './client.ts'
import type { WatchEvent } from '../api/verbs.ts'

export interface ReflectorTarget<T> {
  /** The whole truth at this version. */
  replace(items: readonly T[], resourceVersion: string): void
  apply(event: WatchEvent<T>): void
}

export interface ReflectorDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export interface ReflectorRequest<K extends KindName> {
  readonly kind: K
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

const pageSize = 1_000
/** A watch that lived this long was a good one. */
const settledMs = 10_000
const retryShape = { firstMs: 200, capMs: 30_000 }

/**
 * What a Kubernetes server may lack: kinds that came late, and those that somebody has to install. That a server does not
 * know any other kind is a mistake, and must never look as if all its objects were gone.
 */
const laterKinds: ReadonlySet<KindName> = new Set<KindName>([
  'VolumeAttributesClass',
  'VolumeSnapshot',
  'VolumeSnapshotClass',
  'VolumeSnapshotContent',
])

/** Runs until the signal aborts; a lost connection, a refusal or a restart of the server only delays it. */
export async function reflect<K extends KindName>(
  deps: ReflectorDeps,
  request: ReflectorRequest<K>,
  target: ReflectorTarget<KindMap[K]>,
  signal: AbortSignal,
): Promise<void> {
  let version: string | undefined
  let listed = false
  let failures = 0
  const heard = (newer: string) => {
    version = newer
    failures = 0
  }
  while (!signal.aborted) {
    let openedAt = deps.clock.now()
    try {
      if (version === undefined) {
        const { items, resourceVersion } = await listAll(deps.client, request, signal)
        target.replace(items, resourceVersion)
        heard(resourceVersion)
        listed = true
      }
      openedAt = deps.clock.now()
      await follow(deps.client, request, target, version!, heard, signal)
      // The server closed the watch in good order; the version is kept, so nothing is missed.
    } catch (error) {
      if (signal.aborted) return
      if (isTooOld(error)) version = undefined
      else if (!listed && isNotFound(error) && laterKinds.has(request.kind)) {
        // The server does not know this kind: the cache is synced and empty. We ask again now and then.
        if (failures === 0) deps.log.info('the server does not know this kind', { kind: request.kind })
        target.replace([], '0')
      } else deps.log.warn('watch interrupted', { kind: request.kind, failures: failures + 1, error: String(error) })
    }
    // A watch that lived for a while and then ended is resumed at once; one that ends again and again is not.
    failures = deps.clock.now() - openedAt >= settledMs ? 0 : failures + 1
    await pause(deps, failures, signal)
  }
}

async function listAll<K extends KindName>(
  client: Client,
  request: ReflectorRequest<K>,
  signal: AbortSignal,
): Promise<{ readonly items: readonly KindMap[K][]; readonly resourceVersion: string }> {
  const { kind, ...scope } = request
  const items: KindMap[K][] = []
  let more: string | undefined
  for (;;) {
    const page = await client.list(
      kind,
      { ...scope, limit: pageSize, ...(more === undefined ? {} : { continue: more }) },
      signal,
    )
    items.push(...page.items)
    more = page.continue
    if (more === undefined) return { items, resourceVersion: page.resourceVersion }
  }
}

async function follow<K extends KindName>(
  client: Client,
  request: ReflectorRequest<K>,
  target: ReflectorTarget<KindMap[K]>,
  from: string,
  heard: (version: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { kind, ...scope } = request
  const options = { ...scope, resourceVersion: from, allowBookmarks: true }
  for await (const event of client.watch(kind, options, signal)) {
    target.apply(event)
    heard(event.type === 'bookmark' ? event.resourceVersion : (event.object.metadata.resourceVersion ?? from))
  }
}

async function pause(deps: ReflectorDeps, failures: number, signal: AbortSignal): Promise<void> {
  const waitMs = failures === 0 ? 0 : backoff(failures, retryShape) * (0.75 + deps.random.next() / 2)
  try {
    await deps.clock.sleep(waitMs, signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
