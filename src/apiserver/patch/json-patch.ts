// What does an object look like after a JSON patch (RFC 6902)? Operations run in order on a copy that shares what
// they do not touch; the first that fails fails the whole patch.
import { requestEntityTooLarge } from '../../api/status-error.ts'
import { cannotApply, cannotDecode, goTypeWord } from './errors.ts'
import { copyMap, isList, isMap, type Json, jsonEqual, type JsonMap, own, put } from './json.ts'

/** Kubernetes' own limits: a patch must not be a way to make the server work or grow without bound. */
export const maxOperations = 10_000
export const maxCopiedBytes = 3 * 1024 * 1024
/** Operations can build deeper values than a body may hold; everything that walks objects relies on a bound. */
const maxDepth = 400

export function applyJsonPatch(current: object, operations: unknown): JsonMap {
  const patch = decodeOperations(operations)
  let document: Json = current as JsonMap // objects of the API are JSON maps
  const budget = { copiedBytes: 0 }
  for (const operation of patch) document = applyOperation(document, operation, budget)
  if (!isMap(document)) throw cannotApply('the result is not an object')
  return document
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

function applyOperation(document: Json, operation: Operation, budget: { copiedBytes: number }): Json {
  const path = parsePointer(operation.path)
  switch (operation.op) {
    case 'add':
      return change(document, path, { kind: 'add', value: bounded(path, valueOf(operation)) })
    case 'replace':
      return change(document, path, { kind: 'replace', value: bounded(path, valueOf(operation)) })
    case 'remove':
      return change(document, path, { kind: 'remove' })
    case 'test':
      // An absent value counts as null, as in the reader Kubernetes uses.
      if (!jsonEqual(find(document, path) ?? null, operation.value ?? null)) throw cannotApply('a test failed')
      return document
    case 'move': {
      const from = parsePointer(fromOf(operation))
      if (operation.path.startsWith(`${operation.from}/`)) throw cannotApply('cannot move a value into itself')
      const value = bounded(path, existing(document, from))
      return change(change(document, from, { kind: 'remove' }), path, { kind: 'add', value })
    }
    case 'copy': {
      const value = bounded(path, existing(document, parsePointer(fromOf(operation))))
      budget.copiedBytes += JSON.stringify(value).length
      if (budget.copiedBytes > maxCopiedBytes) throw cannotApply('the copies of this patch are too large')
      return change(document, path, { kind: 'add', value })
    }
    default:
      throw cannotApply(`unknown operation ${operation.op}`)
  }
}

type Change = { readonly kind: 'add' | 'replace'; readonly value: Json } | { readonly kind: 'remove' }

/** The document with one place changed; everything beside the path is shared with the input. */
function change(document: Json, path: readonly string[], what: Change): Json {
  const [key, ...rest] = path
  if (key === undefined) return what.kind === 'remove' ? null : what.value
  if (isMap(document)) return changeMap(document, key, rest, what)
  if (isList(document)) return changeList(document, key, rest, what)
  throw cannotApply(`nothing below "${key}"`)
}

function changeMap(map: JsonMap, key: string, rest: readonly string[], what: Change): Json {
  const child = own(map, key)
  // A key that is not there can be "replaced": the reader Kubernetes uses does not look.
  const missing = rest.length > 0 || what.kind === 'remove'
  if (child === undefined && missing) throw cannotApply(`no key "${key}"`)
  const copy = copyMap(map)
  if (rest.length === 0 && what.kind === 'remove') delete copy[key]
  else put(copy, key, change(child ?? null, rest, what))
  return copy
}

function changeList(list: readonly Json[], key: string, rest: readonly string[], what: Change): Json {
  const adding = rest.length === 0 && what.kind === 'add'
  const index = adding && key === '-' ? list.length : parseIndex(key, adding ? list.length + 1 : list.length)
  if (index > list.length || (index === list.length && !adding)) throw cannotApply(`no index ${key}`)
  if (rest.length === 0 && what.kind === 'add') return list.toSpliced(index, 0, what.value)
  if (rest.length === 0 && what.kind === 'remove') return list.toSpliced(index, 1)
  return list.with(index, change(list[index] as Json, rest, what))
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
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
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
