// How do parts in the same process use the API? The same verbs as HTTP, on parsed objects, without text in between.
import type { KindMap, KindName } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { badRequest } from '../../api/status-error.ts'
import type { Tokens } from '../access/tokens.ts'
import type { Call, User } from '../request/call.ts'
import type { ListOptions, ObjectApi, WatchEvent, WatchOptions } from '../../api/verbs.ts'
import type { ServerContext } from './context.ts'
import { readStored } from './context.ts'
import type { StoredObjects } from './stored-objects.ts'
import { withoutManagedFields } from './stored-objects.ts'
import { readObject } from './rules.ts'
import { postSubresource } from '../verbs/subresources.ts'
import type { Written } from '../verbs/create.ts'
import { createObject } from '../verbs/create.ts'
import { deleteObject } from '../verbs/delete.ts'
import { listEntries } from '../verbs/list.ts'
import { patchObject } from '../verbs/patch.ts'
import { changeObject } from '../verbs/update.ts'
import type { EntryEvent } from '../verbs/watch.ts'
import { watchEntries } from '../verbs/watch.ts'

export interface ObjectApiDeps {
  readonly context: ServerContext
  readonly tokens: Tokens
}

/** Trusted: whoever holds this object acts as the user, without asking the roles. */
export function createObjectApi(deps: ObjectApiDeps, user: User): ObjectApi {
  const { context } = deps
  const call = (signal: AbortSignal | undefined): Call => ({ user, signal: signal ?? never, warn: () => {} })
  const writer = (options: { readonly fieldManager?: string; readonly dryRun?: boolean } | undefined) => ({
    fieldManager: options?.fieldManager ?? user.name,
    dryRun: options?.dryRun ?? false,
  })

  return {
    async get(kind, ref) {
      const { info, entry } = await readStored(context, kinds[kind], ref)
      return typed(kind, context.objects.lean(info, entry))
    },
    async list<K extends KindName>(kind: K, options: ListOptions = {}) {
      const found = await listEntries(context, { info: kinds[kind], ...options })
      return {
        items: found.entries.map((entry) => typed(kind, context.objects.lean(kinds[kind], entry))),
        resourceVersion: String(found.revision),
        ...(found.continue === undefined ? {} : { continue: found.continue }),
      }
    },
    async create(kind, object, options, signal) {
      const info = kinds[kind]
      const copy = readObject(info, object, 'Ignore', () => {})
      const namespace = info.namespaced ? object.metadata.namespace : undefined
      const request = { info, namespace, object: copy, ...writer(options) }
      return shown(context.objects, kind, await createObject(context, request, call(signal)))
    },
    async update(kind, object, options, signal) {
      const info = kinds[kind]
      const request = {
        info,
        ref: refFor(kind, object),
        subresource: options?.subresource,
        // Our own parts change few fields of what they were given; only those are read.
        change: (current: KubeObject) => readObject(info, object, 'Ignore', () => {}, { known: current }),
        ...writer(options),
      }
      if (!object.metadata.name) throw badRequest('name must be provided')
      return shown(context.objects, kind, await changeObject(context, request, call(signal)))
    },
    async patch(kind, ref, patch, options, signal) {
      const info = kinds[kind]
      const written = await patchObject(
        context,
        {
          info,
          ref,
          patch,
          subresource: options?.subresource,
          force: options?.force ?? false,
          read: (value, current) =>
            readObject(info, value, 'Ignore', () => {}, { partial: patch.type === 'apply', known: current }),
          ...writer(options),
        },
        call(signal),
      )
      return shown(context.objects, kind, written)
    },
    async remove(kind, ref, options = {}) {
      const outcome = await deleteObject(context, kinds[kind], ref, options)
      return outcome.kind === 'gone' ? undefined : shown(context.objects, kind, outcome)
    },
    post: (kind, ref, subresource, body, signal) =>
      postSubresource(context, deps.tokens, { kind, ref, subresource, body, dryRun: false }, call(signal)),
    watch: (kind, options, signal) => objectEvents(context, kind, options, signal),
  }
}

const never = new AbortController().signal

const eventTypes = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const

/** Not a generator: every event of every kind passes here, and a generator would let each wait for several turns. */
function objectEvents<K extends KindName>(
  context: ServerContext,
  kind: K,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncIterable<WatchEvent<KindMap[K]>> {
  return {
    [Symbol.asyncIterator]() {
      const entries = watchEntries(context, { info: kinds[kind], ...options }, signal)
      const shownAs = (step: IteratorResult<EntryEvent, void>): IteratorResult<WatchEvent<KindMap[K]>, void> =>
        step.done === true ? step : { done: false, value: eventOf(context.objects, kind, step.value) }
      return {
        next: () => entries.next().then(shownAs),
        return: () => entries.return().then(shownAs),
      }
    },
  }
}

function eventOf<K extends KindName>(objects: StoredObjects, kind: K, event: EntryEvent): WatchEvent<KindMap[K]> {
  if (event.type === 'BOOKMARK') return { type: 'bookmark', resourceVersion: String(event.revision) }
  const { type, entry } = event
  const object = type === 'DELETED' ? objects.lean(kinds[kind], entry) : objects.keptLean(kinds[kind], entry)
  return { type: eventTypes[event.type], object: typed(kind, object) }
}

function shown<K extends KindName>(objects: StoredObjects, kind: K, written: Written): KindMap[K] {
  const { entry, object } = written
  return typed(kind, entry === undefined ? withoutManagedFields(object) : objects.lean(kinds[kind], entry))
}

/** The store under a kind's prefix holds objects of that kind only. */
function typed<K extends KindName>(_kind: K, object: KubeObject): KindMap[K] {
  return object as KindMap[K]
}

function refFor(kind: KindName, object: KubeObject): ObjectRef {
  const { namespace, name } = object.metadata
  return kinds[kind].namespaced && namespace ? { namespace, name } : { name }
}
