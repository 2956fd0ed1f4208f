// How do tests watch what controllers write? An in-process API server that lists every write, shows what is stored without
// a request, and tells of each change before it is stored.
import { AsyncLocalStorage } from 'node:async_hooks'
import { kinds } from '../../src/api/kinds.ts'
import type { KindMap, KindName } from '../../src/api/kinds.ts'
import { keyOf, refKey, refOf } from '../../src/api/meta.ts'
import type { KubeObject } from '../../src/api/meta.ts'
import type { WriteOptions } from '../../src/api/verbs.ts'
import type { StoredObjects } from '../../src/apiserver/objects/stored-objects.ts'
import { createStoredObjects, prefixOf } from '../../src/apiserver/objects/stored-objects.ts'
import type { Client } from '../../src/client/client.ts'
import { waitsOver } from '../../src/clock/clock.ts'
import type { Clock } from '../../src/clock/clock.ts'
import type { Random } from '../../src/clock/random.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import type { Entry, Store } from '../../src/store/store.ts'
import { createTestApi } from './api.ts'
import { withoutServerFields } from './objects.ts'

export type Stored = KubeObject & { readonly spec?: unknown; readonly status?: unknown }

type Writer = 'test' | 'controllers' | 'server'

interface ObservedChange {
  readonly by: Writer
  readonly kind: KindName
  readonly old: Stored | undefined
  /** Undefined when the object is removed. */
  readonly next: Stored | undefined
}

type OnChange = (change: ObservedChange) => void

export interface ObservedApi extends Client {
  /** What is stored, without a request. */
  all<K extends KindName>(kind: K): KindMap[K][]
  peek<K extends KindName>(kind: K, key: string): KindMap[K] | undefined
  /** Every write that was accepted: verb, kind, key and subresource. */
  readonly writes: string[]
  /** For the controllers under test: their writes are told from those of the test. */
  readonly forControllers: Client
  /** Called before a change is stored. May throw. */
  setObserver(onChange: OnChange): void
}

/** Objects may lie in the namespaces `default` and `ns`. */
export async function createObservedApi({ clock, random }: { clock: Clock; random: Random }): Promise<ObservedApi> {
  const contents: Contents = new Map()
  const writes: string[] = []
  let observer: OnChange = () => {}
  const writer = new AsyncLocalStorage<Writer>()
  const objects = createStoredObjects()
  const store = observedStore(contents, objects, (kind, old, next) => {
    observer({ by: writer.getStore() ?? 'server', kind, old, next })
  })
  const { client } = await createTestApi({ clock: withoutTimers(clock), random, store })
  await client.create('Namespace', { metadata: { name: 'ns' } })
  const [byTest, byControllers] = (['test', 'controllers'] as const).map((name) =>
    listWrites(client, writes, (write) => writer.run(name, write)),
  ) as [Client, Client]
  const entriesOf = (kind: KindName) => contents.get(prefixOf(kinds[kind], undefined)) ?? new Map<string, Entry>()
  // The types are the caller's: what goes in under a kind comes out under it.
  const typed = (value: unknown) => value as never
  return {
    ...byTest,
    forControllers: byControllers,
    create: (kind, object, ...rest) => createStored(byTest, client, kind, object, ...rest),
    writes,
    all: (kind) => typed([...entriesOf(kind).values()].map((entry) => objects.decode(kinds[kind], entry))),
    peek(kind, key) {
      const entry = entriesOf(kind).get(key)
      return entry && typed(objects.decode(kinds[kind], entry))
    },
    setObserver: (onChange) => void (observer = onChange),
  }
}

/** The server's own timers (events expire) would count among those of the controllers under test, which tests ask for. */
function withoutTimers({ now, steady }: Clock): Clock {
  const at: Clock['at'] = () => ({ [Symbol.dispose]() {} })
  return { now, steady, at, ...waitsOver(at, now) }
}

/**
 * Builders give objects as they are stored: what only the server sets is left out, a status is written after, and what is
 * terminating is deleted after. */
async function createStored<K extends KindName>(
  listed: Client,
  client: Client,
  kind: K,
  object: KindMap[K],
  ...rest: [WriteOptions?, AbortSignal?]
): Promise<KindMap[K]> {
  const { deletionTimestamp } = object.metadata
  let made = await listed.create(kind, withoutServerFields(object), ...rest)
  const { status = {} } = object as { readonly status?: object }
  const isSetByControllers = kind === 'PersistentVolume' || kind === 'PersistentVolumeClaim'
  if (!isSetByControllers && Object.keys(status).length > 0)
    made = await client.update(kind, { ...made, status } as KindMap[K], { subresource: 'status' })
  return (deletionTimestamp && (await client.remove(kind, refOf(made)))) || made
}

function listWrites(client: Client, writes: string[], run: <T>(write: () => Promise<T>) => Promise<T>): Client {
  const listed = async <T>(words: string, write: () => Promise<T>): Promise<T> => {
    const answer = await run(write)
    writes.push(words)
    return answer
  }
  const part = (options?: { readonly subresource?: string }) => (options?.subresource ? `/${options.subresource}` : '')
  return {
    ...client,
    create: (kind, object, ...rest) =>
      listed(`create ${kind}/${keyOf(object)}`, () => client.create(kind, object, ...rest)),
    update: (kind, object, options, signal) =>
      listed(`update ${kind}/${keyOf(object)}${part(options)}`, () => client.update(kind, object, options, signal)),
    patch: (kind, ref, patch, options, signal) =>
      listed(`patch ${kind}/${refKey(ref)}${part(options)}`, () => client.patch(kind, ref, patch, options, signal)),
    remove: (kind, ref, ...rest) => listed(`remove ${kind}/${refKey(ref)}`, () => client.remove(kind, ref, ...rest)),
    post: (kind, ref, subresource, ...rest) =>
      listed(`post ${kind}/${refKey(ref)}/${subresource}`, () => client.post(kind, ref, subresource, ...rest)),
  }
}

/** By the prefix of a kind, then by namespace and name. */
type Contents = Map<string, Map<string, Entry>>

/** A memory store whose contents can be read without waiting. */
function observedStore(
  contents: Contents,
  objects: StoredObjects,
  onChange: (kind: KindName, old: Stored | undefined, next: Stored | undefined) => void,
): Store {
  const store = createMemoryStore()
  const tell = (key: string, value: string | undefined, expected?: number) => {
    const { kind, old } = find(contents, key)
    if (kind === undefined || (expected !== undefined && old?.revision !== expected)) return
    const before = old && (objects.decode(kinds[kind], old) as Stored)
    onChange(kind, before, value === undefined ? undefined : (JSON.parse(value) as Stored))
  }
  const keep = (entry: Entry) => {
    const { entries, rest } = find(contents, entry.key)
    entries.set(rest, entry)
    return entry
  }
  return {
    ...store,
    async create(key, value) {
      if (find(contents, key).old === undefined) tell(key, value)
      return keep(await store.create(key, value))
    },
    async update(key, value, expected) {
      tell(key, value, expected)
      return keep(await store.update(key, value, expected))
    },
    async remove(key, expected) {
      tell(key, undefined, expected)
      const entry = await store.remove(key, expected)
      const { entries, rest } = find(contents, key)
      entries.delete(rest)
      return entry
    },
  }
}

const kindsByPrefix: ReadonlyMap<string, string> = new Map(
  Object.values(kinds)
    .filter(({ name }) => name !== 'EventsEvent') // another view of Event
    .map((info) => [prefixOf(info, undefined), info.name]),
)

/** `/core/persistentvolumes/v` → the entries of that kind, and `v` among them. */
function find(contents: Contents, key: string) {
  const end = key.indexOf('/', key.indexOf('/', 1) + 1) + 1
  const [prefix, rest] = [key.slice(0, end), key.slice(end)]
  const entries = contents.getOrInsertComputed(prefix, () => new Map<string, Entry>())
  return { entries, rest, old: entries.get(rest), kind: kindsByPrefix.get(prefix) as KindName | undefined }
}
