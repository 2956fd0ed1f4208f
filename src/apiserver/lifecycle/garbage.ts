// What goes when its owner goes? Dependents whose every owner is gone are deleted; foreground deletion waits for those
// that block it; orphaning lets them live on without the reference. Driven by the changes of the store, never by polling.
import type { KindInfo } from '../../api/kinds.ts'
import { kindByType } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { OwnerReference } from '../../api/generated/types.ts'
import type { Change, Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Call } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject } from '../objects/context.ts'
import { metadataText } from '../objects/stored-objects.ts'
import { deleteObject, foregroundFinalizer, orphanFinalizer } from '../verbs/delete.ts'
import { changeObject } from '../verbs/update.ts'
import type { Dependent, OwnerGraph } from './owners.ts'
import { createOwnerGraph, kindOfKey } from './owners.ts'
import type { Retries } from './retries.ts'
import { createRetries } from './retries.ts'

export interface LifecycleDeps {
  readonly context: ServerContext
  readonly log: Log
  /** What every namespace gets as ConfigMap `kube-root-ca.crt`. */
  readonly rootCertificate?: string | undefined
}

/** How long to leave a store alone that cannot answer. */
export const unavailableMs = 1_000

/** Runs until the signal aborts. A change is looked at once; what fails is tried again a little later. */
export async function collectGarbage(deps: LifecycleDeps, signal: AbortSignal): Promise<void> {
  const { context, log } = deps
  const retries = createRetries(context.clock, signal)
  while (!signal.aborted) {
    try {
      const graph = createOwnerGraph()
      const { entries, revision } = await context.store.list('/', {})
      const start = entries.filter(mayMatter).map(asCreated)
      for (const change of start) note(context, graph, change)
      for (const change of start) await attend(deps, graph, change, retries)
      const watch = context.store.watch('/', revision, signal)
      for await (const first of watch) {
        // What was written together is gone through in one stretch: nearly always there is nothing to wait for.
        for (let change: Change | undefined = first; change !== undefined; change = watch.take()) {
          note(context, graph, change)
          if (concerns(context, graph, change)) await attend(deps, graph, change, retries)
          else retries.succeeded(change.entry.key)
        }
      }
    } catch (error) {
      if (signal.aborted) return
      if (isStoreError(error, 'tooOld')) continue
      log.warn('garbage collection starts over', { error })
      // A store that cannot answer now may answer later.
      if (isStoreError(error, 'unavailable')) await context.clock.sleep(unavailableMs, signal).catch(() => {})
    }
  }
}

/** Most objects have neither owners nor dependents: their texts are searched before they are parsed. */
const ownerMark = '"ownerReferences":'
const deletionMark = '"deletionTimestamp":'

function mayMatter(entry: Entry): boolean {
  const text = metadataText(entry)
  return text.includes(ownerMark) || text.includes(deletionMark)
}

function mayHaveOwners({ objects }: ServerContext, entry: Entry): boolean {
  const known = objects.recent(entry)
  return known === undefined ? metadataText(entry).includes(ownerMark) : known.metadata.ownerReferences !== undefined
}

function mayBeDeleting({ objects }: ServerContext, entry: Entry): boolean {
  const known = objects.recent(entry)
  return known === undefined
    ? metadataText(entry).includes(deletionMark)
    : known.metadata.deletionTimestamp !== undefined
}

function asCreated(entry: Entry): Change {
  return { type: 'created', revision: entry.revision, entry, previous: undefined }
}

function note(context: ServerContext, graph: OwnerGraph, { type, entry }: Change): void {
  const info = kindOfKey(entry.key)
  if (info === undefined) return
  if (type === 'removed') graph.drop(entry.key)
  else if (mayHaveOwners(context, entry)) graph.put(entry.key, info, context.objects.decode(info, entry))
  else graph.drop(entry.key)
}

/** Nearly all changes concern nobody but the object itself. */
function concerns(context: ServerContext, graph: OwnerGraph, { type, entry }: Change): boolean {
  return type === 'removed' || graph.get(entry.key) !== undefined || mayBeDeleting(context, entry)
}

async function attend(deps: LifecycleDeps, graph: OwnerGraph, change: Change, retries: Retries): Promise<void> {
  const { key } = change.entry
  try {
    await settle(deps, graph, change)
    retries.succeeded(key)
  } catch (error) {
    deps.log.warn('garbage collection of an object failed, will retry', { key, error })
    retries.later(key, () => void attend(deps, graph, change, retries))
  }
}

async function settle({ context }: LifecycleDeps, graph: OwnerGraph, { type, entry, previous }: Change): Promise<void> {
  const info = kindOfKey(entry.key)
  if (info === undefined) return
  if (type === 'removed') {
    const last = context.objects.decode(info, previous ?? entry)
    for (const dependent of graph.dependentsOf(last.metadata.uid ?? '')) await judge(context, graph, dependent)
    for (const owner of last.metadata.ownerReferences ?? []) await finishOwner(context, graph, last, owner)
    return
  }
  const dependent = graph.get(entry.key)
  if (dependent !== undefined) await judge(context, graph, dependent)
  if (mayBeDeleting(context, entry)) await settleDeletion(context, graph, info, context.objects.decode(info, entry))
}

/** Foreground: dependents first. Orphan: cut the references, then let go. */
async function settleDeletion(
  context: ServerContext,
  graph: OwnerGraph,
  info: KindInfo,
  object: KubeObject,
): Promise<void> {
  const { finalizers = [], uid = '', deletionTimestamp } = object.metadata
  if (deletionTimestamp === undefined) return
  const ref = refOf(object)
  if (finalizers.includes(orphanFinalizer)) {
    for (const dependent of graph.dependentsOf(uid)) await cutReferences(context, dependent, new Set([uid]))
    await dropFinalizer(context, info, ref, orphanFinalizer)
  } else if (finalizers.includes(foregroundFinalizer)) {
    const dependents = graph.dependentsOf(uid)
    const blocking = dependents.filter(({ owners }) =>
      owners.some((owner) => owner.uid === uid && owner.blockOwnerDeletion),
    )
    for (const dependent of dependents) await judge(context, graph, dependent)
    if (blocking.length === 0) await dropFinalizer(context, info, ref, foregroundFinalizer)
  }
}

/** A dependent is gone: an owner that waited for it in the foreground may go on. */
async function finishOwner(
  context: ServerContext,
  graph: OwnerGraph,
  dependent: KubeObject,
  owner: OwnerReference,
): Promise<void> {
  const info = kindByType(owner.apiVersion, owner.kind)
  if (info === undefined) return
  const found = await findObject(context, info, ownerRef(info, dependent.metadata.namespace, owner.name))
  if (found?.metadata.uid === owner.uid) await settleDeletion(context, graph, info, found)
}

type OwnerState = 'alive' | 'gone' | 'waiting'

async function ownerState(
  context: ServerContext,
  namespace: string | undefined,
  owner: OwnerReference,
): Promise<OwnerState> {
  const info = kindByType(owner.apiVersion, owner.kind)
  // Owners of kinds that we do not serve cannot be checked, so nothing is deleted on their account.
  if (info === undefined) return 'alive'
  const found = await findObject(context, info, ownerRef(info, namespace, owner.name))
  if (found === undefined || found.metadata.uid !== owner.uid) return 'gone'
  const waits = found.metadata.deletionTimestamp && found.metadata.finalizers?.includes(foregroundFinalizer)
  return waits ? 'waiting' : 'alive'
}

/** Deletes a dependent without living owners; with some, cuts only the references to those that are gone. */
async function judge(context: ServerContext, graph: OwnerGraph, dependent: Dependent): Promise<void> {
  const { info, ref, owners } = dependent
  const states: { readonly owner: OwnerReference; readonly state: OwnerState }[] = []
  for (const owner of owners) states.push({ owner, state: await ownerState(context, ref.namespace, owner) })
  if (states.every(({ state }) => state === 'alive')) return
  if (states.some(({ state }) => state === 'alive')) {
    const lost = states.filter(({ state }) => state !== 'alive').map(({ owner }) => owner.uid)
    await cutReferences(context, dependent, new Set(lost))
    return
  }
  const current = await findObject(context, info, ref)
  if (current === undefined || current.metadata.deletionTimestamp !== undefined) return
  const now = (current.metadata.ownerReferences ?? []).map(({ uid }) => uid)
  if (now.length !== owners.length || !owners.every(({ uid }) => now.includes(uid))) return
  const foreground =
    states.some(({ state }) => state === 'waiting') && graph.dependentsOf(current.metadata.uid ?? '').length > 0
  const propagation = foreground ? { propagation: 'Foreground' as const } : {}
  await quietly(() =>
    deleteObject(context, info, ref, {
      ...(current.metadata.uid === undefined ? {} : { uid: current.metadata.uid }),
      ...(current.metadata.resourceVersion === undefined ? {} : { resourceVersion: current.metadata.resourceVersion }),
      ...propagation,
    }),
  )
}

const collector: Call = {
  user: { name: 'system:serviceaccount:kube-system:generic-garbage-collector', groups: ['system:masters'] },
  signal: new AbortController().signal,
  warn: () => {},
}

async function cutReferences(context: ServerContext, dependent: Dependent, uids: ReadonlySet<string>): Promise<void> {
  const change = (current: KubeObject): KubeObject => {
    const ownerReferences = (current.metadata.ownerReferences ?? []).filter(({ uid }) => !uids.has(uid))
    return { ...current, metadata: { ...current.metadata, ownerReferences } }
  }
  await quietly(() => changeBy(context, dependent.info, dependent.ref, change))
}

async function dropFinalizer(context: ServerContext, info: KindInfo, ref: ObjectRef, finalizer: string): Promise<void> {
  const change = (current: KubeObject): KubeObject => {
    const finalizers = (current.metadata.finalizers ?? []).filter((each) => each !== finalizer)
    return { ...current, metadata: { ...current.metadata, finalizers } }
  }
  await quietly(() => changeBy(context, info, ref, change))
}

function changeBy(
  context: ServerContext,
  info: KindInfo,
  ref: ObjectRef,
  change: (current: KubeObject) => KubeObject,
): Promise<unknown> {
  const fieldManager = 'garbage-collector'
  return changeObject(context, { info, ref, subresource: undefined, fieldManager, dryRun: false, change }, collector)
}

/** Somebody else was faster: the change they made wakes us again. */
async function quietly(act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

function ownerRef(info: KindInfo, namespace: string | undefined, name: string): ObjectRef {
  return info.namespaced && namespace ? { namespace, name } : { name }
}

function refOf({ metadata }: KubeObject): ObjectRef {
  return metadata.namespace ? { namespace: metadata.namespace, name: metadata.name } : { name: metadata.name }
}
