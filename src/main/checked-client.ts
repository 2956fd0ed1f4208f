// Is this call of the client right? Programs without types use the library, too: a wrong kind, a missing namespace, a field or an option
// that does not exist are told in a sentence, before the server is asked. The server itself drops unknown fields, as Kubernetes does.
import { isJsonObject } from '../api/json.ts'
import { kinds } from '../api/kinds.ts'
import type { KindName } from '../api/kinds.ts'
import { readPartial } from '../api/schema/check.ts'
import type { ListOptions, RemoveOptions, WatchOptions, WriteOptions } from '../api/verbs.ts'
import type { Client } from '../client/client.ts'
import { createHttpClient } from '../client/http.ts'
import type { HttpClient, HttpConfig } from '../client/http.ts'
import { UsageError } from '../installation/config.ts'
import { nearWords } from '../telemetry/near-words.ts'

export function createCheckedHttpClient(config: HttpConfig): HttpClient {
  const client = createHttpClient(config)
  return { ...checkedClient(client), [Symbol.dispose]: () => client[Symbol.dispose]() }
}

export function checkedClient(client: Client): Client {
  return {
    get(kind, ref, signal) {
      requireRef(kind, ref)
      return client.get(kind, ref, signal)
    },
    list(kind, options, signal) {
      requireKind(kind)
      requireOptions('list', options, listOptions)
      return client.list(kind, options, signal)
    },
    create(kind, object, options, signal) {
      requireObject(kind, object)
      requireOptions('create', options, writeOptions)
      return client.create(kind, object, options, signal)
    },
    update(kind, object, options, signal) {
      requireObject(kind, object)
      requireOptions('update', options, { ...writeOptions, subresource: true })
      return client.update(kind, object, options, signal)
    },
    patch(kind, ref, patch, options, signal) {
      requireRef(kind, ref)
      if (patch.type !== 'json' && isJsonObject(patch.body)) requireFields(kind, ref.name, patch.body)
      requireOptions('patch', options, { ...writeOptions, subresource: true, force: true })
      return client.patch(kind, ref, patch, options, signal)
    },
    remove(kind, ref, options, signal) {
      requireRef(kind, ref)
      requireOptions('remove', options, removeOptions)
      return client.remove(kind, ref, options, signal)
    },
    post(kind, ref, subresource, body, signal) {
      requireRef(kind, ref)
      return client.post(kind, ref, subresource, body, signal)
    },
    watch(kind, options, signal) {
      requireKind(kind)
      requireOptions('watch', options, watchOptions)
      return client.watch(kind, options, signal)
    },
  }
}

/** The records make the compiler name an option that is forgotten here. */
type Names<T> = { readonly [Name in keyof Required<T>]: true }

const writeOptions: Names<WriteOptions> = { fieldManager: true, dryRun: true }
const watchOptions: Names<WatchOptions> = {
  namespace: true,
  labelSelector: true,
  fieldSelector: true,
  resourceVersion: true,
  allowBookmarks: true,
}
const listOptions: Names<ListOptions> = {
  namespace: true,
  labelSelector: true,
  fieldSelector: true,
  limit: true,
  continue: true,
  resourceVersion: true,
  resourceVersionMatch: true,
}
const removeOptions: Names<RemoveOptions> = {
  uid: true,
  resourceVersion: true,
  gracePeriodSeconds: true,
  propagation: true,
  dryRun: true,
}

function requireKind(kind: unknown): asserts kind is KindName {
  if (typeof kind === 'string' && Object.hasOwn(kinds, kind)) return
  throw new UsageError(`there is no kind "${String(kind)}"`, `kinds are: ${Object.keys(kinds).join(', ')}`)
}

export function requireRef(kind: unknown, ref: unknown): void {
  requireKind(kind)
  const { name, namespace } = isJsonObject(ref) ? ref : {}
  if (typeof name !== 'string' || name === '')
    throw new UsageError(`a ${kind} is named by a text, not ${shown(name)}`, `{ name: 'NAME' }`)
  requireNamespace(kind, name, namespace)
}

export function requireOptions(caller: string, options: unknown, known: Readonly<Record<string, true>>): void {
  if (options === undefined) return
  if (!isJsonObject(options)) throw new UsageError(`${caller} takes an object of options, not ${shown(options)}`)
  const names = Object.keys(known)
  const wrong = Object.keys(options).find((name) => !names.includes(name))
  if (wrong === undefined) return
  const [near] = nearWords(wrong, names)
  const hint = near === undefined ? `options are: ${names.join(', ')}` : `did you mean ${near}?`
  throw new UsageError(`${caller} has no option "${wrong}"`, hint)
}

export const shown = (value: unknown) =>
  typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? String(value))

function requireObject(kind: KindName, object: unknown): void {
  requireKind(kind)
  if (!isJsonObject(object)) throw new UsageError(`a ${kind} is an object, not ${shown(object)}`)
  const { name, generateName, namespace } = isJsonObject(object['metadata']) ? object['metadata'] : {}
  const called = String(name ?? generateName ?? 'without a name')
  requireNamespace(kind, called, namespace)
  requireFields(kind, called, object)
}

function requireNamespace(kind: KindName, name: string, namespace: unknown): void {
  if (!kinds[kind].namespaced || (typeof namespace === 'string' && namespace !== '')) return
  throw new UsageError(`${kind} ${name} is in a namespace, and none is named`, `add namespace: 'default'`)
}

/** Only the names: whether the values are right, the server says. */
function requireFields(kind: KindName, name: string, object: object): void {
  const unknown = unknownFieldsOf(kind, object)
  if (unknown.length > 0) throw new UsageError(`${kind} ${name} has no field ${unknown.join(', ')}`)
}

function unknownFieldsOf(kind: KindName, object: object): readonly string[] {
  try {
    // Directives of a strategic merge patch, such as $patch, are no fields.
    return readPartial(kind, object).unknown.filter((path) => !/(^|\.)\$/.test(path))
  } catch {
    return [] // of a wrong type; the server names it
  }
}
