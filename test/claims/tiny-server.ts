// A server of a hundred lines for the claim tests: stores, versions, conflicts, finalizers, status apart from spec, watch.
// The real server takes the same stories in test/claims/stories.test.ts; this one makes ten thousand steps affordable.
import { annotations, finalizers } from '../../src/api/annotations.ts'
import { keyOf, refKey } from '../../src/api/meta.ts'
import type { KubeObject } from '../../src/api/meta.ts'
import { kinds } from '../../src/api/kinds.ts'
import type { KindMap, KindName } from '../../src/api/kinds.ts'
import { alreadyExists, conflict, invalid, notFound } from '../../src/api/status-error.ts'
import type { PersistentVolumeClaim } from '../../src/api/types.ts'
import { timestamp } from '../../src/clock/clock.ts'
import type { Clock } from '../../src/clock/clock.ts'
import type { Random } from '../../src/clock/random.ts'
import type { Client } from '../../src/client/client.ts'
import type { WatchEvent } from '../../src/api/verbs.ts'

type Stored = KubeObject & { spec?: unknown; status?: unknown }
interface Logged {
  readonly version: number
  readonly kind: KindName
  readonly event: WatchEvent<Stored>
}

export type { Stored }

export interface TinyServer extends Client {
  /** What is stored, without a call. */
  all<K extends KindName>(kind: K): KindMap[K][]
  peek<K extends KindName>(kind: K, key: string): KindMap[K] | undefined
  /** Every write: verb, kind, key and subresource. */
  readonly writes: string[]
  /** Hears of every change before it is stored; `next` is undefined for removals. May throw. */
  onChange: ((kind: KindName, old: Stored | undefined, next: Stored | undefined) => void) | undefined
}

export function createTinyServer({ clock, random }: { clock: Clock; random: Random }): TinyServer {
  const stores = new Map<KindName, Map<string, Stored>>()
  const log: Logged[] = []
  const listeners = new Set<() => void>()
  const writes: string[] = []
  let version = 1
  const storeOf = (kind: KindName) => stores.getOrInsertComputed(kind, () => new Map())

  const put = (kind: KindName, type: 'added' | 'modified' | 'deleted', object: Stored) => {
    self.onChange?.(kind, storeOf(kind).get(keyOf(object)), type === 'deleted' ? undefined : object)
    version++
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    if (type === 'deleted') storeOf(kind).delete(keyOf(stored))
    else storeOf(kind).set(keyOf(stored), stored)
    log.push({ version, kind, event: { type, object: stored } })
    if (log.length > 5_000) log.splice(0, 2_000)
    for (const listener of [...listeners]) listener()
    return stored
  }
  const find = (kind: KindName, key: string) => {
    const found = storeOf(kind).get(key)
    if (found === undefined) throw notFound(kinds[kind], key.slice(key.indexOf('/') + 1))
    return found
  }
  const replace = (kind: KindName, old: Stored, next: Stored) => {
    if (JSON.stringify(old) === JSON.stringify(next)) return old
    const over = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0
    return put(kind, over ? 'deleted' : 'modified', next)
  }
  // The types are the caller's: what goes in under a kind comes out under it.
  const typed = (value: unknown) => value as never

  const self: TinyServer = {
    onChange: undefined,
    writes,
    all: (kind) => typed([...storeOf(kind).values()]),
    peek: (kind, key) => typed(storeOf(kind).get(key)),
    get: async (kind, ref) => typed(find(kind, refKey(ref))),
    async list(kind, options = {}) {
      const all = [...storeOf(kind).values()]
      const items = all.filter((each) => !options.namespace || each.metadata.namespace === options.namespace)
      return { items: typed(items), resourceVersion: String(version) }
    },
    async create(kind, object) {
      if (storeOf(kind).has(keyOf(object))) throw alreadyExists(kinds[kind], object.metadata.name)
      writes.push(`create ${kind}/${keyOf(object)}`)
      const metadata = { ...object.metadata, uid: random.uid(), creationTimestamp: timestamp(clock.now()) }
      const guard = { PersistentVolume: finalizers.volumeProtection, PersistentVolumeClaim: finalizers.claimProtection }
      if (kind === 'PersistentVolume' || kind === 'PersistentVolumeClaim') {
        const guarded = { ...metadata, finalizers: [...(metadata.finalizers ?? []), guard[kind as keyof typeof guard]] }
        return typed(put(kind, 'added', { ...object, metadata: guarded, status: { phase: 'Pending' } } as Stored))
      }
      return typed(put(kind, 'added', { ...object, metadata } as Stored))
    },
    async update(kind, object, options = {}) {
      const old = find(kind, keyOf(object))
      const given = object.metadata.resourceVersion
      if (given !== undefined && given !== old.metadata.resourceVersion) throw conflict(kinds[kind], old.metadata.name)
      writes.push(`update ${kind}/${keyOf(object)}${options.subresource ? `/${options.subresource}` : ''}`)
      // An Operation is written as a whole, by the one who tells it.
      const otherPart = options.subresource === 'status' ? { spec: old.spec } : { status: old.status }
      const part = kind === 'Operation' ? {} : otherPart
      const metadata = { ...object.metadata, resourceVersion: old.metadata.resourceVersion! }
      const next = { ...object, ...part, metadata } as Stored
      if (kind === 'PersistentVolumeClaim') mustKeepPointer(old as PersistentVolumeClaim, next as PersistentVolumeClaim)
      return typed(replace(kind, old, next))
    },
    async patch(kind, ref, patch, options = {}) {
      const old = find(kind, refKey(ref))
      writes.push(`patch ${kind}/${keyOf(old)}${options.subresource ? `/${options.subresource}` : ''}`)
      return typed(replace(kind, old, mergePatched(old, patch.body) as Stored))
    },
    async remove(kind, ref, options = {}) {
      const old = find(kind, refKey(ref))
      if (options.uid !== undefined && options.uid !== old.metadata.uid) throw conflict(kinds[kind], ref.name)
      writes.push(`remove ${kind}/${keyOf(old)}`)
      if ((old.metadata.finalizers ?? []).length === 0) return void put(kind, 'deleted', old)
      if (old.metadata.deletionTimestamp !== undefined) return typed(old)
      const metadata = { ...old.metadata, deletionTimestamp: timestamp(clock.now()) }
      return typed(put(kind, 'modified', { ...old, metadata }))
    },
    async post(kind, ref, subresource, body) {
      const old = find(kind, refKey(ref)) as Stored & { spec: object }
      writes.push(`post ${kind}/${keyOf(old)}/${subresource}`)
      const { target } = body as { target: { name: string } }
      return replace(kind, old, { ...old, spec: { ...old.spec, nodeName: target.name } } as Stored)
    },
    async *watch(kind, options, signal) {
      let seen = Number(options.resourceVersion)
      for (;;) {
        for (const { version: at, kind: which, event } of log.slice(firstAfter(log, seen))) {
          seen = at
          if (signal.aborted) return
          if (which === kind) yield typed(event)
        }
        if (signal.aborted) return
        if ((log.at(-1)?.version ?? 0) > seen) continue
        await new Promise<void>((resolve) => {
          const wake = () => {
            listeners.delete(wake)
            signal.removeEventListener('abort', wake)
            resolve()
          }
          listeners.add(wake)
          signal.addEventListener('abort', wake, { once: true })
        })
      }
    },
  }
  return self
}

function firstAfter(log: readonly Logged[], version: number): number {
  let at = log.length
  while (at > 0 && log[at - 1]!.version > version) at--
  return at
}

/** API-5, I-3, I-4: a pointer is written once, and the mark stays. */
function mustKeepPointer(old: PersistentVolumeClaim, next: PersistentVolumeClaim): void {
  const refuse = (why: string) => invalid(kinds.PersistentVolumeClaim, old.metadata.name, [], why)
  if (old.spec.volumeName && old.spec.volumeName !== next.spec.volumeName) throw refuse('spec is immutable')
  const mark = annotations.bindCompleted
  if (old.metadata.annotations?.[mark] && !next.metadata.annotations?.[mark]) throw refuse('mark lost')
}

function mergePatched(target: unknown, patch: unknown): unknown {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch
  const base = target !== null && typeof target === 'object' && !Array.isArray(target) ? { ...target } : {}
  const result = base as Record<string, unknown>
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergePatched(result[key], value)
  }
  return result
}
