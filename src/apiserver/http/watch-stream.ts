// How are changes told over HTTP? One JSON line or protobuf frame per event; those of the same change are made once and shared by
// all watchers.
import type { KindInfo } from '../../api/kinds.ts'
import { internalError, StatusError } from '../../api/status-error.ts'
import type { Entry } from '../../store/store.ts'
import type { JsonMap } from '../patch/json.ts'
import { encodeProtobuf, watchFrame } from '../protobuf/encode.ts'
import type { Form } from './negotiate.ts'
import type { StoredObjects } from '../objects/stored-objects.ts'
import type { TableRequest } from './respond.ts'
import { tableOf } from './respond.ts'
import type { EntryEvent } from '../verbs/watch.ts'

/** The newest lines only: older ones would keep a second copy of every object. */
const sharedLines = 256

export interface WatchLines {
  readonly objects: StoredObjects
  line(info: KindInfo, event: EntryEvent, media: Form['media']): Buffer
}

interface SharedLine {
  readonly type: string
  readonly info: KindInfo
  readonly line: Buffer
}

/** One per server: what one watcher makes, the others find. */
export function createWatchLines(objects: StoredObjects): WatchLines {
  const lines = { json: new Map<Entry, SharedLine>(), protobuf: new Map<Entry, SharedLine>() }
  return {
    objects,
    line(info, event, media) {
      if (event.type === 'BOOKMARK') return lineOf(media, 'BOOKMARK', bookmark(info, event))
      const { type, entry } = event
      const shared = media === 'protobuf' ? lines.protobuf : lines.json
      const known = shared.get(entry)
      if (known?.type === type && known.info === info) return known.line
      const line =
        media === 'protobuf'
          ? lineOf(media, type, objects.decode(info, entry))
          : Buffer.from(`{"type":"${type}","object":${objects.text(info, entry)}}\n`)
      shared.set(entry, { type, info, line })
      if (shared.size > sharedLines) {
        const [oldest] = shared.keys()
        if (oldest !== undefined) shared.delete(oldest)
      }
      return line
    },
  }
}

/** A watch that fails has already been answered with 200: the error is its last event. */
export async function* watchStream(
  info: KindInfo,
  events: AsyncIterable<EntryEvent>,
  lines: WatchLines,
  form: Form,
  table: () => TableRequest,
): AsyncGenerator<Buffer, void, undefined> {
  const { media } = form
  let first = true
  try {
    for await (const event of events) {
      if (form.as === 'object') {
        yield lines.line(info, event, media)
      } else if (form.as === 'metadata') {
        const object = event.type === 'BOOKMARK' ? bookmark(info, event) : lines.objects.decode(info, event.entry)
        yield lineOf(media, event.type, { ...partial(form), metadata: object.metadata })
      } else {
        yield tableLine(lines.objects, info, event, form, { ...table(), noHeaders: !first })
      }
      first = false
    }
  } catch (error) {
    const known = error instanceof StatusError ? error : internalError('the watch failed', error)
    yield lineOf(media, 'ERROR', known.toStatus())
  }
}

function tableLine(
  objects: StoredObjects,
  info: KindInfo,
  event: EntryEvent,
  form: Form,
  table: TableRequest & { readonly noHeaders: boolean },
): Buffer {
  if (event.type !== 'BOOKMARK') {
    return jsonLine(event.type, tableOf(info, [objects.decode(info, event.entry)], form, table))
  }
  // A table's bookmark is a table with one row whose object carries the version.
  const empty = tableOf(info, [], form, table)
  const rows = [{ cells: [], object: { ...bookmark(info, event), ...partial(form) } }]
  return jsonLine('BOOKMARK', { ...empty, metadata: { resourceVersion: String(event.revision) }, rows })
}

function partial({ metaVersion }: Form) {
  return { kind: 'PartialObjectMetadata', apiVersion: metaVersion } as const
}

function lineOf(media: Form['media'], type: string, object: object): Buffer {
  return media === 'protobuf' ? watchFrame(type, encodeProtobuf(object as JsonMap)) : jsonLine(type, object)
}

function jsonLine(type: string, object: unknown): Buffer {
  return Buffer.from(`{"type":"${type}","object":${JSON.stringify(object)}}\n`)
}

function bookmark(info: KindInfo, event: Extract<EntryEvent, { type: 'BOOKMARK' }>) {
  const annotations = event.initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
  return {
    kind: info.kind,
    apiVersion: info.apiVersion,
    metadata: { resourceVersion: String(event.revision), ...annotations },
  }
}
