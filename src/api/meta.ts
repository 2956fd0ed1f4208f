// What do all objects have in common? Names and keys, owners, finalizers, labels, conditions: small pure
// helpers over ObjectMeta, so that nobody spells out `metadata.annotations?.[…]` twice.
import { omit } from './members.ts'
import type { ObjectMeta, OwnerReference } from './generated/types.ts'

/** Any object of the API. */
export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

/** What says of which kind it is, and more. */
export interface Typed {
  readonly apiVersion: string
  readonly kind: string
  readonly [member: string]: unknown
}

/** Where an object is: cluster-wide objects have no namespace. */
export interface ObjectRef {
  readonly namespace?: string
  readonly name: string
}

export function refOf(object: KubeObject): ObjectRef {
  const { namespace, name } = object.metadata
  return namespace ? { namespace, name } : { name }
}

/** `namespace/name`, or `name` for objects without a namespace. */
export function keyOf(object: KubeObject): string {
  return keyFor(object.metadata.namespace, object.metadata.name)
}

export function keyFor(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name
}

export function refKey(ref: ObjectRef): string {
  return keyFor(ref.namespace, ref.name)
}

/** The inverse of keyFor; a text with more than one slash is no key. */
export function parseKey(key: string): ObjectRef | undefined {
  const parts = key.split('/')
  const [first = '', second] = parts
  if (parts.length > 2 || first === '' || second === '') return undefined
  return second === undefined ? { name: first } : { namespace: first, name: second }
}

/** The uid of an object that the server has stored; an object without one was never stored. */
export function uidOf(object: KubeObject): string {
  const uid = object.metadata.uid
  if (!uid) throw new Error(`${object.kind ?? 'object'} ${keyOf(object)} has no uid`)
  return uid
}

export function annotation(object: KubeObject, key: string): string | undefined {
  return lookUp(object.metadata.annotations, key)
}

export function withAnnotations<T extends KubeObject>(
  object: T,
  changes: Readonly<Record<string, string | undefined>>,
): T {
  return withMetadata(object, { annotations: changed(object.metadata.annotations, changes) })
}

export function withLabels<T extends KubeObject>(object: T, changes: Readonly<Record<string, string | undefined>>): T {
  return withMetadata(object, { labels: changed(object.metadata.labels, changes) })
}

export function hasFinalizer(object: KubeObject, finalizer: string): boolean {
  return object.metadata.finalizers?.includes(finalizer) ?? false
}

export function withFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (hasFinalizer(object, finalizer)) return object
  return withMetadata(object, { finalizers: [...(object.metadata.finalizers ?? []), finalizer] })
}

export function withoutFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  if (!hasFinalizer(object, finalizer)) return object
  const finalizers = (object.metadata.finalizers ?? []).filter((each) => each !== finalizer)
  return withMetadata(object, { finalizers: finalizers.length > 0 ? finalizers : undefined })
}

export function isDeleting(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined
}

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true)
}

export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  const controller = controllerOf(object)
  return controller !== undefined && controller.uid === owner.metadata.uid
}

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export function findCondition<T extends Condition>(conditions: readonly T[] | undefined, type: string): T | undefined {
  return conditions?.find((condition) => condition.type === type)
}

export function conditionIsTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/** Sets a condition by type; the transition time changes only when the status does. */
export function withCondition<T extends Condition>(conditions: readonly T[] | undefined, next: T): readonly T[] {
  const list = conditions ?? []
  const old = findCondition(list, next.type)
  if (old === undefined) return [...list, next]
  const kept =
    old.status === next.status && old.lastTransitionTime
      ? { ...next, lastTransitionTime: old.lastTransitionTime }
      : next
  return list.map((condition) => (condition.type === next.type ? kept : condition))
}

export function withoutCondition<T extends Condition>(
  conditions: readonly T[] | undefined,
  type: string,
): readonly T[] {
  return (conditions ?? []).filter((condition) => condition.type !== type)
}

/** Copies an object with some metadata replaced; `undefined` removes a member. */
function withMetadata<T extends KubeObject>(
  object: T,
  changes: { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] | undefined },
): T {
  const names = Object.keys(changes) as (keyof ObjectMeta)[]
  const removed = names.filter((name) => changes[name] === undefined)
  const metadata = omit({ ...object.metadata, ...changes }, removed) as ObjectMeta // without holes
  return { ...object, metadata }
}

function lookUp(map: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined
}

function changed(
  map: Readonly<Record<string, string>> | undefined,
  changes: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | undefined {
  const entries = new Map(Object.entries(map ?? {}))
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) entries.delete(key)
    else entries.set(key, value)
  }
  return entries.size > 0 ? Object.fromEntries(entries) : undefined
}
