// How does an object go? At once, after its finalizers, or after a pod's grace period; with or without its dependents.
import type { KindInfo } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { conflict, notFound } from '../../api/status-error.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import { admitDelete } from '../admission/chain.ts'
import type { RemoveOptions } from '../../api/verbs.ts'
import type { ServerContext } from '../context.ts'
import { readStored, storeFailure } from '../context.ts'
import type { Loose } from '../objects.ts'
import { decodeObject, encodeObject, letGo, remember, storeKey } from '../objects.ts'

export type DeleteOutcome =
  | { readonly kind: 'gone'; readonly object: KubeObject }
  | { readonly kind: 'held'; readonly object: KubeObject; readonly entry: Entry | undefined }

export const foregroundFinalizer = 'foregroundDeletion'
export const orphanFinalizer = 'orphan'

export async function deleteObject(
  context: ServerContext,
  info: KindInfo,
  ref: ObjectRef,
  options: RemoveOptions,
): Promise<DeleteOutcome> {
  for (;;) {
    const { entry } = await readStored(context, info, ref)
    const current = decodeObject(info, entry)
    checkPreconditions(info, current, options)
    admitDelete(info, current)
    const next = marked(info, current, options, context.clock.now())
    try {
      if (next === undefined) {
        if (!options.dryRun) {
          await context.store.remove(storeKey(info, ref), entry.revision)
          letGo(entry)
        }
        return { kind: 'gone', object: lastSeen(info, current, context.clock.now()) }
      }
      if (options.dryRun || next === current)
        return { kind: 'held', object: next, entry: options.dryRun ? undefined : entry }
      const written = await context.store.update(storeKey(info, ref), encodeObject(info, next), entry.revision)
      letGo(entry)
      return { kind: 'held', object: remember(info, written, next), entry: written }
    } catch (error) {
      if (isStoreError(error, 'missing')) throw notFound(info, ref.name)
      if (!isStoreError(error, 'conflict')) throw storeFailure(error)
    }
  }
}

/** A pod that goes at once is shown as one that was given no time. */
function lastSeen(info: KindInfo, current: KubeObject, now: number): KubeObject {
  if (info.name !== 'Pod' || current.metadata.deletionGracePeriodSeconds === 0) return current
  return withDeletion(info, current, [], now, 0)
}

/** The object as deletion leaves it: gone (undefined), unchanged, or marked and waiting. */
function marked(info: KindInfo, current: KubeObject, options: RemoveOptions, now: number): KubeObject | undefined {
  const finalizers = finalizersAfter(current, options.propagation)
  const grace = graceOf(info, current, options)
  const { deletionTimestamp, deletionGracePeriodSeconds } = current.metadata
  const held = finalizers.length > 0 || holdsNamespace(info, current)
  if (deletionTimestamp !== undefined) {
    const shorter = grace < (deletionGracePeriodSeconds ?? 0)
    if (!held && (grace === 0 || (deletionGracePeriodSeconds ?? 0) === 0)) return undefined
    if (!shorter && sameList(finalizers, current.metadata.finalizers ?? [])) return current
    const since = Date.parse(deletionTimestamp) - (deletionGracePeriodSeconds ?? 0) * 1000
    const left = shorter ? grace : (deletionGracePeriodSeconds ?? 0)
    return withDeletion(info, current, finalizers, since + left * 1000, left)
  }
  if (!held && grace === 0) return undefined
  return withDeletion(info, current, finalizers, now + grace * 1000, grace)
}

function withDeletion(
  info: KindInfo,
  current: KubeObject,
  finalizers: readonly string[],
  at: number,
  graceSeconds: number,
): KubeObject {
  const { finalizers: _finalizers, ...rest } = current.metadata
  const metadata = {
    ...rest,
    ...(finalizers.length > 0 ? { finalizers } : {}),
    deletionTimestamp: timestamp(at),
    // A namespace takes as long as it takes.
    ...(info.name === kinds.Namespace.name ? {} : { deletionGracePeriodSeconds: graceSeconds }),
    ...(rest.generation !== undefined && rest.deletionTimestamp === undefined
      ? { generation: rest.generation + 1 }
      : {}),
  }
  const next: KubeObject & Loose = { ...current, metadata }
  if (info.name === kinds.Namespace.name) {
    next['status'] = { ...(next['status'] as Loose | undefined), phase: 'Terminating' }
  }
  return next
}

/** Pods that run somewhere get time to stop; everything else goes at once. */
function graceOf(info: KindInfo, object: KubeObject, options: RemoveOptions): number {
  if (info.name !== 'Pod') return 0
  const { spec, status } = object as {
    spec?: { nodeName?: string; terminationGracePeriodSeconds?: number }
    status?: { phase?: string }
  } // Pod
  const asked = options.gracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30
  const grace = asked < 0 ? 1 : asked
  if (!spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return 0
  return grace
}

function finalizersAfter(object: KubeObject, propagation: RemoveOptions['propagation']): readonly string[] {
  const others = (object.metadata.finalizers ?? []).filter(
    (each) => each !== foregroundFinalizer && each !== orphanFinalizer,
  )
  switch (propagation) {
    case undefined:
      return object.metadata.finalizers ?? []
    case 'Background':
      return others
    case 'Foreground':
      return [...others, foregroundFinalizer]
    case 'Orphan':
      return [...others, orphanFinalizer]
    default:
      return propagation satisfies never
  }
}

function holdsNamespace(info: KindInfo, object: KubeObject): boolean {
  if (info.name !== 'Namespace') return false
  const { spec } = object as { spec?: { finalizers?: readonly string[] } } // Namespace
  return (spec?.finalizers?.length ?? 0) > 0
}

function checkPreconditions(info: KindInfo, current: KubeObject, options: RemoveOptions): void {
  const { name, uid, resourceVersion } = current.metadata
  const subject = { group: info.group, plural: info.kind }
  if (options.uid !== undefined && options.uid !== uid) {
    const why = `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`
    throw conflict(subject, name, why)
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    const why = `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`
    throw conflict(subject, name, why)
  }
}

function sameList(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index])
}
