// What can be asked of the API? The verbs on parsed objects: the server offers them, clients and parts use them,
// in process or over HTTP.
import type { KindMap, KindName } from './kinds.ts'
import type { ObjectRef } from './meta.ts'

/** Objects that come back are frozen and shared; objects that go in are copied. Errors are StatusErrors. */
export interface ObjectApi {
  get<K extends KindName>(kind: K, ref: ObjectRef, signal?: AbortSignal): Promise<KindMap[K]>
  list<K extends KindName>(kind: K, options?: ListOptions, signal?: AbortSignal): Promise<ObjectList<KindMap[K]>>
  create<K extends KindName>(
    kind: K,
    object: KindMap[K],
    options?: WriteOptions,
    signal?: AbortSignal,
  ): Promise<KindMap[K]>
  /** PUT. With metadata.resourceVersion set, a stale version is a conflict. */
  update<K extends KindName>(
    kind: K,
    object: KindMap[K],
    options?: WriteOptions & { readonly subresource?: string },
    signal?: AbortSignal,
  ): Promise<KindMap[K]>
  patch<K extends KindName>(
    kind: K,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions & { readonly subresource?: string; readonly force?: boolean },
    signal?: AbortSignal,
  ): Promise<KindMap[K]>
  /** Answers the object while finalizers or a grace period hold it, undefined when it is gone. */
  remove<K extends KindName>(
    kind: K,
    ref: ObjectRef,
    options?: RemoveOptions,
    signal?: AbortSignal,
  ): Promise<KindMap[K] | undefined>
  /** POST to a subresource that takes and gives other kinds: pods/binding, pods/eviction, serviceaccounts/token. */
  post<K extends KindName>(
    kind: K,
    ref: ObjectRef,
    subresource: string,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<unknown>
  /** Events after `resourceVersion`. Ends when the signal aborts or the server closes; throws StatusError 410 when too old. */
  watch<K extends KindName>(kind: K, options: WatchOptions, signal: AbortSignal): AsyncIterable<WatchEvent<KindMap[K]>>
}

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly limit?: number
  readonly continue?: string
  readonly resourceVersion?: string
  readonly resourceVersionMatch?: string
}

export interface WatchOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly resourceVersion?: string
  readonly allowBookmarks?: boolean
}

export interface WriteOptions {
  readonly fieldManager?: string
  readonly dryRun?: boolean
}

export interface RemoveOptions {
  readonly uid?: string
  readonly resourceVersion?: string
  readonly gracePeriodSeconds?: number
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan'
  readonly dryRun?: boolean
}

export type Patch =
  | { readonly type: 'merge' | 'strategic' | 'apply'; readonly body: unknown }
  | { readonly type: 'json'; readonly body: readonly unknown[] }

export interface ObjectList<T> {
  readonly items: readonly T[]
  readonly resourceVersion: string
  readonly continue?: string
}

export type WatchEvent<T> =
  | { readonly type: 'added' | 'modified' | 'deleted'; readonly object: T }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
