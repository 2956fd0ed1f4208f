// What does the API hold right now, as far as we have heard? One cache per kind, shared by all who ask.
// Every change is told once, with the last known object for removals, even when the watch missed the removal (WC-29).
import type { KindMap, KindName } from '../api/kinds.ts'
import { keyOf } from '../api/meta.ts'
import type { KubeObject } from '../api/meta.ts'
import type { WatchEvent } from '../api/verbs.ts'
import { reflect } from './reflector.ts'
import type { ReflectorDeps, ReflectorRequest, ReflectorTarget } from './reflector.ts'
import { versionNumber, versionOf } from './versions.ts'
import { createListeners } from '../loop/listeners.ts'

export type Change<T> =
  | { readonly kind: 'added'; readonly key: string; readonly object: T; readonly previous?: undefined }
  | { readonly kind: 'changed'; readonly key: string; readonly object: T; readonly previous: T }
  | { readonly kind: 'removed'; readonly key: string; readonly object?: undefined; readonly previous: T }

type ChangeListener<T> = (change: Change<T>) => void

/** Objects by a value computed from them, kept up to date with the cache. */
export interface Index<T> {
  get(value: string): Iterable<T>
  has(value: string): boolean
}

export interface Cache<T> {
  readonly items: ReadonlyMap<string, T>
  get(key: string): T | undefined
  index(valuesOf: (object: T) => readonly string[]): Index<T>
  /** Present objects are told as `added` before this returns; later changes as they come, in order. */
  subscribe(listener: ChangeListener<T>): Disposable
}

export interface Informer<T> extends Cache<T> {
  /** Resolves when the first list is in the cache. */
  readonly synced: Promise<void>
  readonly isSynced: boolean
  /** Everything up to this version has been heard. */
  readonly version: number
  /** Resolves once everything up to this version has been heard. */
  reached(version: number, signal: AbortSignal): Promise<void>
}

export interface Informers extends AsyncDisposable {
  /** The shared informer of a kind (and scope); it starts when first asked for. */
  of<K extends KindName>(kind: K, scope?: Omit<ReflectorRequest<K>, 'kind'>): Informer<KindMap[K]>
  /** Resolves when every informer asked for so far is synced. */
  synced(): Promise<void>
}

export function createInformers(deps: ReflectorDeps): Informers {
  const stopping = new AbortController()
  const started = new Map<string, { readonly informer: Informer<KubeObject>; readonly done: Promise<void> }>()
  return {
    of<K extends KindName>(kind: K, scope: Omit<ReflectorRequest<K>, 'kind'> = {}) {
      const name = JSON.stringify([kind, scope.namespace, scope.labelSelector, scope.fieldSelector])
      let entry = started.get(name)
      if (entry === undefined) {
        const informer = createInformer<KindMap[K]>()
        const done = reflect(deps, { kind, ...scope }, informer, stopping.signal)
        entry = { informer: informer as unknown as Informer<KubeObject>, done }
        started.set(name, entry)
      }
      // The map's key holds the kind, so the cache under it holds that kind's objects.
      return entry.informer as unknown as Informer<KindMap[K]>
    },
    async synced() {
      await Promise.all(Array.from(started.values(), ({ informer }) => informer.synced))
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('informers are stopping'))
      await Promise.all(Array.from(started.values(), ({ done }) => done))
    },
  }
}

/** A cache that a reflector (or a test) feeds. */
export function createInformer<T extends KubeObject>(): Informer<T> & ReflectorTarget<T> {
  const cache = createCache<T>()
  const { promise: synced, resolve: markSynced } = Promise.withResolvers<void>()
  const versions = createVersions()
  let isSynced = false
  return {
    items: cache.items,
    get: cache.get,
    index: cache.index,
    subscribe: cache.subscribe,
    synced,
    get isSynced() {
      return isSynced
    },
    get version() {
      return versions.latest()
    },
    reached: versions.reached,
    replace(items, resourceVersion) {
      const present = new Set<string>()
      for (const object of items) {
        present.add(keyOf(object))
        cache.put(object)
      }
      for (const key of [...cache.items.keys()]) if (!present.has(key)) cache.remove(key)
      versions.advance(versionNumber(resourceVersion))
      isSynced = true
      markSynced()
    },
    apply(event: WatchEvent<T>) {
      switch (event.type) {
        case 'added':
        case 'modified':
          cache.put(event.object)
          versions.advance(versionOf(event.object))
          break
        case 'deleted':
          cache.remove(keyOf(event.object), event.object)
          versions.advance(versionOf(event.object))
          break
        case 'bookmark':
          versions.advance(versionNumber(event.resourceVersion))
          break
        default:
          event satisfies never
      }
    },
  }
}

/** The newest version that was seen, and those who wait for one. */
function createVersions() {
  const waiters = new Set<{ readonly version: number; readonly resolve: () => void }>()
  let latest = 0
  return {
    latest: () => latest,
    advance(version: number): void {
      latest = Math.max(latest, version)
      for (const waiter of waiters) {
        if (waiter.version > latest) continue
        waiters.delete(waiter)
        waiter.resolve()
      }
    },
    reached(version: number, signal: AbortSignal): Promise<void> {
      if (latest >= version) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const waiter = { version, resolve: () => (signal.removeEventListener('abort', onAbort), resolve()) }
        const onAbort = () => {
          waiters.delete(waiter)
          reject(signal.reason)
        }
        if (signal.aborted) return reject(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
        waiters.add(waiter)
      })
    },
  }
}

export interface WritableCache<T> extends Cache<T> {
  put(object: T): void
  remove(key: string, last?: T): void
}

export function createCache<T extends KubeObject>(): WritableCache<T> {
  const items = new Map<string, T>()
  const listeners = createListeners<[Change<T>]>()
  const indexes: WritableIndex<T>[] = []
  const tell = (change: Change<T>) => {
    for (const index of indexes) index.apply(change)
    listeners.tell(change)
  }
  const remove = (key: string, last?: T) => {
    const previous = items.get(key)
    if (previous === undefined) return
    items.delete(key)
    // Indexes drop the object they hold; listeners get its last state.
    for (const index of indexes) index.apply({ kind: 'removed', key, previous })
    listeners.tell({ kind: 'removed', key, previous: last ?? previous })
  }
  return {
    items,
    get: (key) => items.get(key),
    put(object) {
      const key = keyOf(object)
      const previous = items.get(key)
      if (previous !== undefined && previous.metadata.uid === object.metadata.uid) {
        if (previous.metadata.resourceVersion === object.metadata.resourceVersion) return
        items.set(key, object)
        tell({ kind: 'changed', key, object, previous })
        return
      }
      // Same name, other uid: the old object is gone, whatever the watch said (WC-15, PCP-4).
      if (previous !== undefined) remove(key)
      items.set(key, object)
      tell({ kind: 'added', key, object })
    },
    remove,
    index(valuesOf) {
      const index = createIndex(valuesOf)
      for (const [key, object] of items) index.apply({ kind: 'added', key, object })
      indexes.push(index)
      return index
    },
    subscribe(listener) {
      const subscription = listeners.listen(listener)
      for (const [key, object] of items) listener({ kind: 'added', key, object })
      return subscription
    },
  }
}

interface WritableIndex<T> extends Index<T> {
  apply(change: Change<T>): void
}

/** Most values name one object: it needs no map of its own. */
type Bucket<T> = { readonly key: string; readonly object: T } | Map<string, T>

function createIndex<T>(valuesOf: (object: T) => readonly string[]): WritableIndex<T> {
  const byValue = new Map<string, Bucket<T>>()
  const drop = (key: string, object: T) => {
    for (const value of valuesOf(object)) {
      const bucket = byValue.get(value)
      if (bucket instanceof Map) {
        bucket.delete(key)
        if (bucket.size === 0) byValue.delete(value)
      } else if (bucket?.key === key) byValue.delete(value)
    }
  }
  const add = (key: string, object: T) => {
    for (const value of valuesOf(object)) {
      const bucket = byValue.get(value)
      if (bucket instanceof Map) bucket.set(key, object)
      else if (bucket === undefined || bucket.key === key) byValue.set(value, { key, object })
      else byValue.set(value, new Map([[bucket.key, bucket.object] as const, [key, object] as const]))
    }
  }
  return {
    get(value) {
      const bucket = byValue.get(value)
      if (bucket === undefined) return []
      return bucket instanceof Map ? bucket.values() : [bucket.object]
    },
    has: (value) => byValue.has(value),
    apply(change) {
      if (change.previous !== undefined) drop(change.key, change.previous)
      if (change.object !== undefined) add(change.key, change.object)
    },
  }
}
