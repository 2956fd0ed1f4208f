// How does an outcome become an answer? Status code, headers and bytes; objects are spliced from stored bytes.
import { stringify as stringifyYaml } from 'yaml'
import type { KindInfo, KindMap, KindName } from '../../api/kinds.ts'
import { goPackage } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { internalError, StatusError } from '../../api/status-error.ts'
import type { Entry } from '../../store/store.ts'
import type { ByteStream } from '../../streams/byte-stream.ts'
import type { JsonMap } from '../patch/json.ts'
import { protobufContentType } from '../protobuf/decode.ts'
import { encodeProtobuf, encodeProtobufList } from '../protobuf/encode.ts'
import type { Form } from './negotiate.ts'
import type { StoredObjects } from '../objects/stored-objects.ts'
import type { IncludeObject } from '../table/table.ts'
import { toPartialObjectMetadata, toTable } from '../table/table.ts'
import type { EntryList } from '../verbs/list.ts'

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | AsyncIterable<Buffer>
  /** With status 101: takes over the connection, and resolves when it is done with it. */
  readonly upgrade?: (connection: ByteStream) => Promise<void>
}

export interface TableRequest {
  readonly now: number
  readonly includeObject: IncludeObject
}

/** Answers change: nobody between us and the client may keep them. */
export const uncached = 'no-cache, private'
const jsonHeaders = { 'content-type': 'application/json', 'cache-control': uncached } as const

/** A value that is no stored object: a Status, a review. In protobuf it says itself of which type it is. */
export function valueResponse(status: number, value: object, { media }: Form): ApiResponse {
  return media === 'protobuf'
    ? protobufResponse(status, encodeProtobuf(value as JsonMap))
    : jsonResponse(status, value, media)
}

export function jsonResponse(status: number, value: unknown, media?: Form['media']): ApiResponse {
  if (media === 'yaml') {
    const text = stringifyYaml(value, { indentSeq: false, sortMapEntries: true })
    return {
      status,
      headers: { 'content-type': 'application/yaml', 'cache-control': uncached },
      body: Buffer.from(text),
    }
  }
  return { status, headers: jsonHeaders, body: Buffer.from(`${JSON.stringify(value)}\n`) }
}

function protobufResponse(status: number, body: Buffer): ApiResponse {
  return { status, headers: { 'content-type': protobufContentType, 'cache-control': uncached }, body }
}

export function textResponse(status: number, text: string, type = 'text/plain; charset=utf-8'): ApiResponse {
  const headers = { 'content-type': type, 'cache-control': uncached, 'x-content-type-options': 'nosniff' }
  return { status, headers, body: Buffer.from(text) }
}

/** Without a form in JSON. */
export function errorResponse(error: unknown, form?: Form): ApiResponse {
  const known = error instanceof StatusError ? error : internalError('unexpected failure', error)
  const { continueToken } = known as { continueToken?: string } // set on expired lists only
  const status = {
    ...known.toStatus(),
    ...(continueToken === undefined ? {} : { metadata: { continue: continueToken } }),
  }
  const retry = known.details?.retryAfterSeconds
  const response = form === undefined ? jsonResponse(known.code, status) : valueResponse(known.code, status, form)
  return retry ? { ...response, headers: { ...response.headers, 'retry-after': String(retry) } } : response
}

/** One object that was just read or written; without an entry (dry run) the object itself is shown. */
export function objectResponse(
  objects: StoredObjects,
  status: number,
  info: KindInfo,
  shown: { readonly entry: Entry | undefined; readonly object?: KubeObject },
  form: Form,
  table: TableRequest,
): ApiResponse {
  const { entry } = shown
  if (form.as === 'object' && form.media === 'json' && entry !== undefined) {
    return { status, headers: jsonHeaders, body: Buffer.from(objects.text(info, entry)) }
  }
  const object = shown.object ?? (entry === undefined ? undefined : objects.decode(info, entry))
  if (object === undefined) throw internalError('nothing to show')
  if (form.as === 'metadata') {
    if (form.list)
      throw wrongShape(
        `PartialObjectMetadataList, but the requested object is not a list (*${goPackage(info)}.${info.kind})`,
      )
    return valueResponse(status, toPartialObjectMetadata(object, form.metaVersion), form)
  }
  if (form.as === 'table') {
    return jsonResponse(status, tableOf(info, [object], form, table), form.media)
  }
  return valueResponse(status, object, form)
}

export function listResponse(
  stored: StoredObjects,
  info: KindInfo,
  list: EntryList,
  form: Form,
  table: TableRequest,
): ApiResponse {
  const metadata = {
    resourceVersion: String(list.revision),
    ...(list.continue === undefined ? {} : { continue: list.continue }),
    ...(list.remaining === undefined ? {} : { remainingItemCount: list.remaining }),
  }
  if (form.as === 'object' && form.media === 'json') return splicedList(stored, info, list, metadata)
  const objects = list.entries.map((entry) => stored.decode(info, entry))
  if (form.as === 'table') {
    return jsonResponse(200, { ...tableOf(info, objects, form, table), metadata }, form.media)
  }
  if (form.as === 'metadata') {
    if (!form.list)
      throw wrongShape(
        `PartialObjectMetadata, but the requested object is a list (*${goPackage(info)}.${info.kind}List)`,
      )
    const items = objects.map((object) => toPartialObjectMetadata(object, form.metaVersion))
    return wholeList({ kind: 'PartialObjectMetadataList', apiVersion: form.metaVersion, metadata }, items, form)
  }
  return wholeList({ kind: `${info.kind}List`, apiVersion: info.apiVersion, metadata }, objects, form)
}

function wholeList(
  list: { readonly kind: string; readonly apiVersion: string; readonly metadata: JsonMap },
  items: readonly object[],
  { media }: Form,
): ApiResponse {
  if (media === 'protobuf') return protobufResponse(200, encodeProtobufList(list, items as readonly JsonMap[]))
  return jsonResponse(200, { ...list, items }, media)
}

function wrongShape(what: string): StatusError {
  return new StatusError(406, 'NotAcceptable', `you requested ${what}`)
}

export function tableOf(
  info: KindInfo,
  objects: readonly KubeObject[],
  form: Form,
  table: TableRequest & { readonly noHeaders?: boolean },
): object {
  const kind: KindName = info.name
  // The objects are of the kind that `info` names: they were decoded with it.
  return toTable(kind, objects as readonly KindMap[typeof kind][], {
    now: table.now,
    includeObject: table.includeObject,
    apiVersion: form.metaVersion,
    ...(table.noHeaders ? { noHeaders: true } : {}),
  })
}

/** Text becomes bytes in pieces of about this size: a long list is never whole in memory twice. */
const pieceLength = 65_536

function splicedList(stored: StoredObjects, info: KindInfo, list: EntryList, metadata: object): ApiResponse {
  const pieces: Buffer[] = []
  let text = `{"kind":"${info.kind}List","apiVersion":"${info.apiVersion}","metadata":${JSON.stringify(metadata)},"items":[`
  let comma = ''
  for (const entry of list.entries) {
    text += comma + stored.itemText(info, entry)
    comma = ','
    if (text.length < pieceLength) continue
    pieces.push(Buffer.from(text))
    text = ''
  }
  pieces.push(Buffer.from(`${text}]}\n`))
  return { status: 200, headers: jsonHeaders, body: Buffer.concat(pieces) }
}
