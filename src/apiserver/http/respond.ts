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
import type { ServerContext } from '../objects/context.ts'
import type { StoredObjects } from '../objects/stored-objects.ts'
import type { Pace } from '../request/pace.ts'
import { createPace } from '../request/pace.ts'
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
const longestYaml = 32 * 1024
/** Of the version that Kubernetes' own programs read: there a bare `yes` or time is no text. */
const yamlForm = { version: '1.1', indentSeq: false, sortMapEntries: true } as const
const jsonHeaders = { 'content-type': 'application/json', 'cache-control': uncached } as const

/** A value that is no stored object: a Status, a review. In protobuf it says itself of which type it is. */
export function valueResponse(status: number, value: object, { media }: Form): ApiResponse {
  return media === 'protobuf'
    ? protobufResponse(status, encodeProtobuf(value as JsonMap))
    : jsonResponse(status, value, media)
}

export function jsonResponse(status: number, value: unknown, media?: Form['media']): ApiResponse {
  if (media === 'yaml') {
    // Writing YAML takes a hundred times as long as JSON, which is YAML too: what is long is written as JSON.
    const json = JSON.stringify(value)
    const text =
      json.length > longestYaml
        ? `${json}
`
        : stringifyYaml(value, yamlForm)
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

export async function listResponse(
  { clock, objects: stored }: Pick<ServerContext, 'clock' | 'objects'>,
  info: KindInfo,
  list: EntryList,
  form: Form,
  table: TableRequest,
): Promise<ApiResponse> {
  const metadata = {
    resourceVersion: String(list.revision),
    ...(list.continue === undefined ? {} : { continue: list.continue }),
    ...(list.remaining === undefined ? {} : { remainingItemCount: list.remaining }),
  }
  const pace = createPace(clock)
  if (form.as === 'object' && form.media === 'json') {
    const head = `{"kind":"${info.kind}List","apiVersion":"${info.apiVersion}","metadata":${JSON.stringify(metadata)},"items":[`
    return spliced(head, list.entries, (entry) => stored.itemText(info, entry), pace)
  }
  if (form.as === 'table' && form.media === 'json') {
    const { rows: _, ...empty } = tableOf(info, [], form, table) as { rows: unknown }
    const head = `${JSON.stringify({ ...empty, metadata }).slice(0, -1)},"rows":[`
    const row = (entry: Entry) => {
      const { rows } = tableOf(info, [stored.decode(info, entry)], form, table) as { rows: readonly unknown[] }
      return JSON.stringify(rows[0])
    }
    return spliced(head, list.entries, row, pace)
  }
  const objects = await decodeAll(stored, info, list.entries, pace)
  if (form.as === 'table') {
    return jsonResponse(200, { ...tableOf(info, objects, form, table), metadata }, form.media)
  }
  if (form.as === 'metadata') {
    if (!form.list)
      throw wrongShape(
        `PartialObjectMetadata, but the requested object is a list (*${goPackage(info)}.${info.kind}List)`,
      )
    const items = objects.map((object) => toPartialObjectMetadata(object, form.metaVersion))
    return wholeList({ kind: 'PartialObjectMetadataList', apiVersion: form.metaVersion, metadata }, items, form, pace)
  }
  return wholeList({ kind: `${info.kind}List`, apiVersion: info.apiVersion, metadata }, objects, form, pace)
}

async function decodeAll(
  stored: StoredObjects,
  info: KindInfo,
  entries: readonly Entry[],
  pace: Pace,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = []
  for (const entry of entries) {
    objects.push(stored.decode(info, entry))
    const rest = pace.rest()
    if (rest) await rest
  }
  return objects
}

async function wholeList(
  list: { readonly kind: string; readonly apiVersion: string; readonly metadata: JsonMap },
  items: readonly object[],
  { media }: Form,
  pace: Pace,
): Promise<ApiResponse> {
  if (media === 'protobuf')
    return protobufResponse(200, await encodeProtobufList(list, items as readonly JsonMap[], pace.rest))
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

async function spliced(
  head: string,
  entries: readonly Entry[],
  textOf: (entry: Entry) => string,
  pace: Pace,
): Promise<ApiResponse> {
  const pieces: Buffer[] = []
  let text = head
  let comma = ''
  for (const entry of entries) {
    text += comma + textOf(entry)
    comma = ','
    if (text.length >= pieceLength) {
      pieces.push(Buffer.from(text))
      text = ''
    }
    const rest = pace.rest()
    if (rest) await rest
  }
  pieces.push(Buffer.from(`${text}]}\n`))
  return { status: 200, headers: jsonHeaders, body: Buffer.concat(pieces) }
}
