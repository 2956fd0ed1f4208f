// What does an object look like after server-side apply? The manager's configuration is merged in, fields it applied
// before and names no longer are taken out unless someone else owns them, and fields of others conflict unless forced.
import { timestamp } from '../../clock/clock.ts'
import { type KindInfo, type KindName, kinds, versionKind } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { applyConflict, badRequest } from '../../api/status-error.ts'
import { shown } from '../request/shown.ts'
import { checkApplied, normalizeApplied } from './applied-config.ts'
import { goTypeWord } from './errors.ts'
import {
  difference,
  emptySet,
  equalSets,
  type FieldSet,
  intersection,
  isEmptySet,
  pathTexts,
  unionOf,
} from './field-set.ts'
import { isMap, jsonEqual, type JsonMap, type MutableMap, own } from './json.ts'
import { heir, inherited, withLastApplied } from './last-applied.ts'
import {
  compareObjects,
  disown,
  type Manager,
  ownable,
  ownerKey,
  type Owners,
  type Ownership,
  readOwners,
  writeOwners,
} from './managed-fields.ts'
import { structNode } from './schema-walk.ts'
import { fieldsOf, mergeTyped, without, withNamedFields } from './typed-values.ts'

export interface ApplyRequest {
  readonly kind: KindName
  /** Undefined when the object does not exist yet. */
  readonly live: KubeObject | undefined
  /** The decoded body. */
  readonly config: unknown
  readonly manager: string
  readonly force: boolean
  readonly subresource?: string | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

export interface ApplyResult {
  /** With managedFields up to date; the live object itself when nothing changed. */
  readonly object: KubeObject
  readonly changed: boolean
}

export function applyServerSide(request: ApplyRequest): ApplyResult {
  const { kind, live, now, subresource = '' } = request
  const info = kinds[kind]
  const node = structNode(info.message)
  const config = readConfig(info, request.config, subresource)
  const self: Manager = { manager: request.manager, operation: 'Apply', apiVersion: info.apiVersion, subresource }
  const owners = readOwners(live?.metadata.managedFields ?? [])
  const last = owners.get(ownerKey(self))
  const fields = fieldsOf(node, ownable(config), 'applied')
  owners.set(ownerKey(self), { ...self, time: last?.time, fields })

  const base = live === undefined ? undefined : withoutEntries(live)
  const merged = mergeTyped(node, base, config)
  const pruned = (without(node, merged, abandoned(info.message, last?.fields, owners)) ?? {}) as JsonMap // a map stays one
  const settled = { ...pruned, metadata: own(pruned, 'metadata') ?? {} } as unknown as KubeObject // shape checked by readConfig
  settleOwners(request, owners, ownerKey(self), settled)
  const object = request.manager === heir ? withLastApplied(settled, request.config as JsonMap) : settled // readConfig saw a map

  const sameObject = base !== undefined && jsonEqual(base, object)
  if (live !== undefined && sameObject && equalSets(last?.fields ?? emptySet, fields))
    return { object: live, changed: false }
  if (isEmptySet(fields)) owners.delete(ownerKey(self))
  else {
    // Coming to own what is already so is no write: it has no time of its own.
    const time = base !== undefined && jsonEqual(base, settled) ? last?.time : timestamp(now)
    owners.set(ownerKey(self), { ...self, time, fields })
  }
  const managedFields = writeOwners(owners)
  return { object: { ...object, metadata: { ...object.metadata, managedFields } }, changed: true }
}

/** What is applied says what it is: nothing is guessed from the path. */
export function checkAppliedType(info: KindInfo, config: unknown): asserts config is JsonMap {
  if (!isMap(config)) {
    const why = `json: cannot unmarshal ${goTypeWord(config)} into Go value of type map[string]interface {}`
    throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${why}`)
  }
  const apiVersion = own(config, 'apiVersion') ?? ''
  const kind = own(config, 'kind') ?? ''
  if (apiVersion === info.apiVersion && kind === info.kind) return
  throw badRequest(`invalid object type: ${versionKind(shown(apiVersion), shown(kind))}`)
}

/** Checks what the body claims to be, and drops what this endpoint does not take. */
function readConfig(info: KindInfo, config: unknown, subresource: string): JsonMap {
  checkAppliedType(info, config)
  const metadata = own(config, 'metadata')
  if (metadata !== undefined && !isMap(metadata)) throw badRequest('metadata must be an object')
  const entries = metadata === undefined ? undefined : own(metadata, 'managedFields')
  if (entries !== undefined && entries !== null && !(Array.isArray(entries) && entries.length === 0)) {
    throw badRequest('metadata.managedFields must be nil')
  }
  const taken = normalizeApplied(structNode(info.message), config) as MutableMap // a map stays one
  if (subresource === 'status') delete taken['spec']
  else if (info.subresources.some((one) => one.name === 'status')) delete taken['status']
  checkApplied(structNode(info.message), taken, '')
  return taken
}

function withoutEntries(live: KubeObject): JsonMap {
  const { managedFields: _entries, ...metadata } = live.metadata
  return { ...live, metadata } as unknown as JsonMap // objects of the API are JSON maps
}

/** What the manager applied last time and nobody wants any more. */
function abandoned(message: string, last: FieldSet | undefined, owners: Owners): FieldSet {
  if (last === undefined) return emptySet
  const node = structNode(message)
  const wanted = unionOf(Array.from(owners.values(), ({ fields }) => fields))
  const rest = difference(withNamedFields(node, last), withNamedFields(node, wanted))
  // Every object has metadata, whoever owned its labels.
  const metadata = rest.children.get('f:metadata')
  if (metadata?.owned !== true) return rest
  return { ...rest, children: new Map(rest.children).set('f:metadata', { ...metadata, owned: false }) }
}

interface Conflict {
  readonly owner: Ownership
  readonly fields: FieldSet
}

/** Refuses to take fields from others, or takes them when forced; fields that are gone belong to nobody. */
function settleOwners(request: ApplyRequest, owners: Owners, self: string, object: KubeObject): void {
  const { changed, removed } = compareObjects(request.kind, request.live, object)
  const conflicts: Conflict[] = []
  for (const [key, owner] of owners) {
    if (key === self) continue
    const fields = intersection(owner.fields, changed)
    if (!isEmptySet(fields)) conflicts.push({ owner, fields })
  }
  const kept = request.force || conflicts.length === 0 ? [] : notInherited(request, conflicts)
  if (kept.length > 0) throw conflictError(kept)
  disown(owners, unionOf([...conflicts.map(({ fields }) => fields), removed]), self)
}

function notInherited({ kind, live, manager }: ApplyRequest, conflicts: readonly Conflict[]): readonly Conflict[] {
  if (manager !== heir) return conflicts
  const ours = inherited(kinds[kind], live)
  return conflicts
    .map(({ owner, fields }) => ({ owner, fields: difference(fields, ours) }))
    .filter(({ fields }) => !isEmptySet(fields))
}

function conflictError(conflicts: readonly Conflict[]): Error {
  const found = conflicts
    .map(({ owner, fields }) => ({ who: ownerText(owner), paths: pathTexts(fields) }))
    .toSorted((left, right) => (left.who < right.who ? -1 : 1))
  const causes = found.flatMap(({ who, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field })),
  )
  const [only] = causes
  if (causes.length === 1 && only !== undefined) {
    return applyConflict(causes, `Apply failed with 1 conflict: ${only.message}: ${only.field}`)
  }
  const lines = found.flatMap(({ who, paths }) => [`conflicts with ${who}:`, ...paths.map((path) => `- ${path}`)])
  return applyConflict(causes, `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`)
}

function ownerText(owner: Ownership): string {
  const name = JSON.stringify(owner.manager)
  const place = owner.subresource === '' ? name : `${name} with subresource ${JSON.stringify(owner.subresource)}`
  return owner.operation === 'Update' ? `${place} using ${owner.apiVersion}` : place
}
