// How does an object go? At once, after its finalizers, or after a pod's grace period; with or without its dependents.
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { conflict, notFound } from '../../api/status-error.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import { admitDelete } from '../admission/chain.ts'
import type { RemoveOptions } from '../../api/verbs.ts'
import type { ServerContext } from '../objects/context.ts'
import { readStored, storeFailure } from '../objects/context.ts'
import { storeKey } from '../objects/stored-objects.ts'

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
    const current = context.objects.decode(info, entry)
    checkPreconditions(info, current, options)
    admitDelete(info, current)
    const next = marked(info, current, options, context.clock.now())
    try {
      if (next === undefined) {
        if (!options.dryRun) {
          await context.store.remove(storeKey(info, ref), entry.revision)
          context.objects.letGo(entry)
        }
        return { kind: 'gone', object: lastSeen(info, current, context.clock.now()) }
      }
      if (options.dryRun || next === current)
        return { kind: 'held', object: next, entry: options.dryRun ? undefined : entry }
      const written = await context.store.update(
        storeKey(info, ref),
        context.objects.encode(info, next),
        entry.revision,
      )
      context.objects.letGo(entry)
      return { kind: 'held', object: context.objects.remember(info, written, next), entry: written }
    } catch (error) {
      if (isStoreError(error, 'missing')) throw notFound(info, ref.name)
      if (!isStoreError(error, 'conflict')) throw storeFailure(error)
    }
  }
}

/** A kind with grace periods shows an object that is removed at once with a grace period of 0. */
function lastSeen(info: KindInfo, current: KubeObject, now: number): KubeObject {
  if (info.strategy.graceSeconds === undefined || current.metadata.deletionGracePeriodSeconds === 0) return current
  return withDeletion(info, current, [], now, 0)
}

/** The object as deletion leaves it: gone (undefined), unchanged, or marked and waiting. */
function marked(info: KindInfo, current: KubeObject, options: RemoveOptions, now: number): KubeObject | undefined {
  const finalizers = finalizersAfter(current, options.propagation)
  const grace = info.strategy.graceSeconds?.(current, options.gracePeriodSeconds) ?? 0
  const { deletionTimestamp, deletionGracePeriodSeconds } = current.metadata
  const held = finalizers.length > 0 || info.strategy.isHeld?.(current) === true
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
    deletionGracePeriodSeconds: graceSeconds,
    ...(rest.generation !== undefined && rest.deletionTimestamp === undefined
      ? { generation: rest.generation + 1 }
      : {}),
  }
  const next: KubeObject = { ...current, metadata }
  return info.strategy.markDeleted?.(next) ?? next
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
