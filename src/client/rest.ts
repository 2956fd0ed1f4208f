// Which path, query and body does each call of the client become? The Kubernetes REST conventions, once.
// A transport that sends requests and reads streams (http.ts, a test's own) is all that a client needs.
import { kinds } from '../api/kinds.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import { omit } from '../api/members.ts'
import { refOf } from '../api/meta.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import type { Client } from './client.ts'
import type {
  ListOptions,
  ObjectList,
  Patch,
  RemoveOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../api/verbs.ts'
import { errorFromStatus } from './http-errors.ts'

export interface RestRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query, already escaped. */
  readonly path: string
  readonly body?: string
  readonly contentType?: string
  /** Another form of the answer, such as a Table. */
  readonly accept?: string
}

export interface RestTransport {
  /** The parsed answer; a status of 300 or more is thrown as StatusError. */
  request(request: RestRequest, signal: AbortSignal): Promise<unknown>
  /** The parsed values of a watch, in order, until the other side or the signal ends it. */
  stream(request: RestRequest, signal: AbortSignal): AsyncIterable<unknown>
}

const never = new AbortController().signal

const patchTypes: Readonly<Record<Patch['type'], string>> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
}

export function createRestClient(transport: RestTransport): Client {
  return {
    async get(kind, ref, signal = never) {
      return objectOf(kind, await transport.request({ method: 'GET', path: objectPath(kind, ref) }, signal))
    },
    async list(kind, options = {}, signal = never) {
      const path = collectionPath(kind, options.namespace) + query(listQuery(options))
      return listOf(kind, await transport.request({ method: 'GET', path }, signal))
    },
    async create(kind, object, options = {}, signal = never) {
      const path = collectionPath(kind, object.metadata.namespace) + query(writeQuery(options))
      return objectOf(kind, await transport.request({ method: 'POST', path, body: text(kind, object) }, signal))
    },
    async update(kind, object, options = {}, signal = never) {
      const path = objectPath(kind, refOf(object), options.subresource) + query(writeQuery(options))
      return objectOf(kind, await transport.request({ method: 'PUT', path, body: text(kind, object) }, signal))
    },
    async patch(kind, ref, patch, options = {}, signal = never) {
      const force = options.force === true ? { force: 'true' } : {}
      const path = objectPath(kind, ref, options.subresource) + query({ ...writeQuery(options), ...force })
      const request = {
        method: 'PATCH' as const,
        path,
        body: JSON.stringify(patch.body),
        contentType: patchTypes[patch.type],
      }
      return objectOf(kind, await transport.request(request, signal))
    },
    async remove(kind, ref, options = {}, signal = never) {
      const request = {
        method: 'DELETE' as const,
        path: objectPath(kind, ref),
        body: JSON.stringify(removeBody(options)),
      }
      return stillThere(kind, await transport.request(request, signal))
    },
    async post(kind, ref, subresource, body, signal = never) {
      const path = objectPath(kind, ref, subresource)
      return transport.request({ method: 'POST', path, body: JSON.stringify(body) }, signal)
    },
    watch: (kind, options, signal) => watchEvents(kind, transport, options, signal),
  }
}

/** Only main and cli know where a server lives; the path below it is the same everywhere. */
export function collectionPath(kind: KindName, namespace?: string): string {
  const { group, version, plural, namespaced } = kinds[kind]
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const scope =
    namespaced && namespace !== undefined && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${plural}`
}

export function objectPath(kind: KindName, ref: ObjectRef, subresource?: string): string {
  const path = `${collectionPath(kind, ref.namespace)}/${encodeURIComponent(ref.name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}

async function* watchEvents<K extends KindName>(
  kind: K,
  transport: RestTransport,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<KindMap[K]>> {
  const path = collectionPath(kind, options.namespace) + query({ watch: 'true', ...watchQuery(options) })
  const stream = transport.stream({ method: 'GET', path }, signal)
  for await (const value of untilAborted(stream, signal)) {
    const { type, object } = value as { type: string; object: KindMap[K] }
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        yield { type: watchTypes[type], object: objectOf(kind, object) }
        break
      case 'BOOKMARK':
        yield { type: 'bookmark', resourceVersion: object.metadata.resourceVersion ?? '' }
        break
      case 'ERROR':
        throw errorFromStatus(object)
      default:
        throw new Error(`unknown watch event type ${type}`)
    }
  }
}

const watchTypes = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const

/** A watch that is told to stop ends; it does not fail. */
async function* untilAborted<T>(stream: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  try {
    for await (const value of stream) {
      if (signal.aborted) return
      yield value
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

function text(kind: KindName, object: object): string {
  return JSON.stringify({ apiVersion: apiVersionOf(kind), kind: kinds[kind].kind, ...object })
}

function apiVersionOf(kind: KindName): string {
  const { group, version } = kinds[kind]
  return group === '' ? version : `${group}/${version}`
}

/**
 * The wire is trusted to send what its path promises; the type is claimed here and nowhere else. The record of who owns
 * the fields is left out, as it is in the same process: our parts never read it, it is often half of the object, and a
 * write that brings none leaves the stored one as it is.
 */
function objectOf<K extends KindName>(_kind: K, value: unknown): KindMap[K] {
  const object = value as KindMap[K]
  if (object.metadata?.managedFields === undefined) return object
  return { ...object, metadata: omit(object.metadata, ['managedFields']) }
}

function listOf<K extends KindName>(kind: K, value: unknown): ObjectList<KindMap[K]> {
  const list = value as {
    items?: readonly KindMap[K][] | null
    metadata?: { resourceVersion?: string; continue?: string }
  }
  const typed = { apiVersion: apiVersionOf(kind), kind: kinds[kind].kind }
  const more = list.metadata?.continue ?? ''
  return {
    // Items of a list come without kind and apiVersion; every object in our caches has them.
    items: (list.items ?? []).map((item) => ({ ...typed, ...objectOf(kind, item) })),
    resourceVersion: list.metadata?.resourceVersion ?? '',
    ...(more === '' ? {} : { continue: more }),
  }
}

function stillThere<K extends KindName>(kind: K, value: unknown): KindMap[K] | undefined {
  const object = value as KubeObject & { kind?: string }
  if (value === undefined || object.kind === 'Status') return undefined
  const held = (object.metadata.finalizers?.length ?? 0) > 0 || (object.metadata.deletionGracePeriodSeconds ?? 0) > 0
  return object.metadata.deletionTimestamp !== undefined && held ? objectOf(kind, value) : undefined
}

type Query = Record<string, string>

function listQuery(options: ListOptions): Query {
  return {
    ...watchQuery(options),
    ...(options.limit === undefined ? {} : { limit: String(options.limit) }),
    ...(options.continue === undefined ? {} : { continue: options.continue }),
    ...(options.resourceVersionMatch === undefined ? {} : { resourceVersionMatch: options.resourceVersionMatch }),
  }
}

function watchQuery(options: WatchOptions & ListOptions): Query {
  return {
    ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
    ...(options.fieldSelector === undefined ? {} : { fieldSelector: options.fieldSelector }),
    ...(options.resourceVersion === undefined ? {} : { resourceVersion: options.resourceVersion }),
    ...(options.allowBookmarks === true ? { allowWatchBookmarks: 'true' } : {}),
  }
}

function writeQuery(options: WriteOptions): Query {
  return {
    ...(options.fieldManager === undefined ? {} : { fieldManager: options.fieldManager }),
    ...(options.dryRun === true ? { dryRun: 'All' } : {}),
  }
}

function removeBody(options: RemoveOptions): object {
  const preconditions = {
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.resourceVersion === undefined ? {} : { resourceVersion: options.resourceVersion }),
  }
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    ...(options.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: options.gracePeriodSeconds }),
    ...(options.dryRun === true ? { dryRun: ['All'] } : {}),
    ...(options.propagation === undefined ? {} : { propagationPolicy: options.propagation }),
  }
}

function query(parameters: Query): string {
  const text = new URLSearchParams(parameters).toString()
  return text === '' ? '' : `?${text}`
}
