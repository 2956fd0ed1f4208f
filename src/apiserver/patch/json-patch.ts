// What does an object look like after a JSON patch (RFC 6902)? Operations run in order on a draft that shares what they do
// not touch; the first that fails fails the whole patch.
//
// 1. The given object and the values of the operations never change.
// 2. A map or list is copied when the patch first changes it, and then changed in place: `owned` has the copies.
// 3. An owned map or list stands at one place only: `copy` makes a copy of everything below.
import { requestEntityTooLarge } from '../../api/status-error.ts'
import { cannotApply, cannotDecode, goTypeWord } from './errors.ts'
import { copyMap, isList, isMap, type Json, type JsonMap, type MutableMap, own, put } from './json.ts'
import { createWork, type Work } from './work.ts'

/** Kubernetes' own limits: a patch must not be a way to make the server work or grow without bound. */
const maxOperations = 10_000
const maxCopiedBytes = 3 * 1024 * 1024
/** Operations can build deeper values than a body may hold; everything that walks objects relies on a bound. */
const maxDepth = 400

export function applyJsonPatch(current: object, operations: unknown): JsonMap {
  const patch = decodeOperations(operations)
  // Objects of the API are JSON maps.
  const draft: Draft = { root: current as JsonMap, owned: new Set(), copiedBytes: 0, work: createWork() }
  for (const operation of patch) applyOperation(draft, operation)
  if (!isMap(draft.root)) throw cannotApply('the result is not an object')
  return draft.root
}

interface Draft {
  root: Json
  readonly owned: Set<unknown>
  copiedBytes: number
  readonly work: Work
}

interface Operation {
  readonly op: string
  readonly path: string
  readonly from: string | undefined
  readonly value: Json | undefined
}

function decodeOperations(operations: unknown): readonly Operation[] {
  if (!isList(operations)) {
    throw cannotDecode(`json: cannot unmarshal ${goTypeWord(operations)} into Go value of type []handlers.jsonPatchOp`)
  }
  if (operations.length > maxOperations) {
    throw requestEntityTooLarge(
      `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${operations.length}`,
    )
  }
  return operations.map((operation) => {
    if (!isMap(operation)) {
      throw cannotDecode(`json: cannot unmarshal ${goTypeWord(operation)} into Go value of type handlers.jsonPatchOp`)
    }
    const path = own(operation, 'path')
    const op = own(operation, 'op')
    const from = own(operation, 'from')
    if (typeof op !== 'string') throw cannotApply('an operation has no op')
    if (typeof path !== 'string') throw cannotApply('an operation has no path')
    return { op, path, from: typeof from === 'string' ? from : undefined, value: own(operation, 'value') }
  })
}

function applyOperation(draft: Draft, operation: Operation): void {
  const path = parsePointer(operation.path)
  switch (operation.op) {
    case 'add':
      return change(draft, path, { kind: 'add', value: bounded(path, valueOf(operation)) })
    case 'replace':
      return change(draft, path, { kind: 'replace', value: bounded(path, valueOf(operation)) })
    case 'remove':
      return change(draft, path, { kind: 'remove' })
    case 'test':
      // An absent value counts as null, as in the reader Kubernetes uses.
      if (isSame(draft.work, find(draft.root, path) ?? null, operation.value ?? null)) return
      throw cannotApply('a test failed')
    case 'move': {
      const from = parsePointer(fromOf(operation))
      if (operation.path.startsWith(`${operation.from}/`)) throw cannotApply('cannot move a value into itself')
      const value = existing(draft.root, from)
      // What does not move down does not become deeper.
      if (path.length > from.length) {
        draft.work.look(countValues(value))
        bounded(path, value)
      }
      change(draft, from, { kind: 'remove' })
      return change(draft, path, { kind: 'add', value })
    }
    case 'copy': {
      const value = existing(draft.root, parsePointer(fromOf(operation)))
      draft.work.copy(countValues(value))
      bounded(path, value)
      const text = JSON.stringify(value)
      draft.copiedBytes += text.length
      if (draft.copiedBytes > maxCopiedBytes) throw cannotApply('the copies of this patch are too large')
      return change(draft, path, { kind: 'add', value: JSON.parse(text) as Json }) // the text of a JSON value
    }
    default:
      throw cannotApply(`unknown operation ${operation.op}`)
  }
}

type Change = { readonly kind: 'add' | 'replace'; readonly value: Json } | { readonly kind: 'remove' }
type Container = MutableMap | Json[]

function change(draft: Draft, path: readonly string[], what: Change): void {
  const [first] = path
  const last = path.at(-1)
  if (first === undefined || last === undefined) {
    draft.root = what.kind === 'remove' ? null : what.value
    return
  }
  let here = writable(draft, draft.root, first)
  draft.root = here
  for (const [depth, key] of path.slice(0, -1).entries()) here = enter(draft, here, key, path[depth + 1] ?? '')
  if (Array.isArray(here)) changeList(draft.work, here, last, what)
  else changeMap(here, last, what)
}

/** The container itself if it is ours, else a copy; `below` is the key that is wanted in it. */
function writable(draft: Draft, value: Json, below: string): Container {
  if (draft.owned.has(value)) return value as Container // only containers are in the set
  const copy = isMap(value) ? copyMap(value) : isList(value) ? [...value] : undefined
  if (copy === undefined) throw cannotApply(`nothing below "${below}"`)
  draft.owned.add(copy)
  return copy
}

function enter(draft: Draft, here: Container, key: string, below: string): Container {
  if (Array.isArray(here)) {
    const index = indexOf(here, key)
    const child = writable(draft, here[index] as Json, below) // the index was checked
    here[index] = child
    return child
  }
  const value = own(here, key)
  if (value === undefined) throw cannotApply(`no key "${key}"`)
  const child = writable(draft, value, below)
  put(here, key, child)
  return child
}

function changeMap(map: MutableMap, key: string, what: Change): void {
  // A key that is not there can be "replaced": the reader Kubernetes uses does not look.
  if (what.kind !== 'remove') return put(map, key, what.value)
  if (!Object.hasOwn(map, key)) throw cannotApply(`no key "${key}"`)
  delete map[key]
}

function changeList(work: Work, list: Json[], key: string, what: Change): void {
  if (what.kind === 'replace') {
    list[indexOf(list, key)] = what.value
    return
  }
  const adding = what.kind === 'add'
  const index = adding ? (key === '-' ? list.length : parseIndex(key, list.length + 1)) : indexOf(list, key)
  if (index > list.length) throw cannotApply(`no index ${key}`)
  work.shift(list.length - index)
  if (adding) list.splice(index, 0, what.value)
  else list.splice(index, 1)
}

/** The index of an item that is there. */
function indexOf(list: readonly Json[], key: string): number {
  const index = parseIndex(key, list.length)
  if (index >= list.length) throw cannotApply(`no index ${key}`)
  return index
}

/** Looks at no more values than `wanted` has, and counts keys: the value that is there may be large. */
function isSame(work: Work, found: Json, wanted: Json): boolean {
  if (isList(wanted)) {
    return (
      isList(found) &&
      found.length === wanted.length &&
      found.every((item, at) => isSame(work, item, wanted[at] as Json))
    )
  }
  if (!isMap(wanted) || !isMap(found)) return found === wanted
  const keys = Object.keys(found)
  work.look(keys.length)
  if (keys.length !== Object.keys(wanted).length) return false
  return keys.every((key) => Object.hasOwn(wanted, key) && isSame(work, found[key] as Json, wanted[key] as Json))
}

function find(document: Json, path: readonly string[]): Json | undefined {
  let here: Json | undefined = document
  for (const key of path) {
    if (isMap(here)) here = own(here, key)
    else if (isList(here)) here = here[parseIndex(key, here.length)]
    else return undefined
  }
  return here
}

function existing(document: Json, path: readonly string[]): Json {
  const value = find(document, path)
  if (value === undefined) throw cannotApply('the from path does not exist')
  return value
}

function parsePointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) throw cannotApply(`"${pointer}" is not a JSON pointer`)
  const parts = pointer.slice(1).split('/', maxDepth + 1)
  if (parts.length > maxDepth) throw cannotApply('a path is too long')
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** A negative index counts from the end, as in the reader Kubernetes uses. */
function parseIndex(key: string, length: number): number {
  if (!/^-?(0|[1-9]\d{0,8})$/.test(key)) throw cannotApply(`"${key}" is not an index`)
  const index = Number(key)
  if (index < -length) throw cannotApply(`no index ${key}`)
  return index < 0 ? index + length : index
}

/** The value, if the document does not become too deep when it stands at the path. */
function bounded(path: readonly string[], value: Json): Json {
  if (!isShallow(value, maxDepth - path.length)) throw cannotApply('the result is nested too deeply')
  return value
}

function countValues(value: Json): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((count: number, item: Json) => count + countValues(item), 1)
}

function isShallow(value: Json, depth: number): boolean {
  if (depth < 0) return false
  if (isList(value)) return value.every((item) => isShallow(item, depth - 1))
  return !isMap(value) || Object.values(value).every((item) => isShallow(item, depth - 1))
}

function valueOf(operation: Operation): Json {
  if (operation.value === undefined) throw cannotApply(`${operation.op} needs a value`)
  return operation.value
}

function fromOf(operation: Operation): string {
  if (operation.from === undefined) throw cannotApply(`${operation.op} needs a from path`)
  return operation.from
}
