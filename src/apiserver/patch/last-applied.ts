// What does `kubectl apply --server-side` inherit from `kubectl apply`? The fields its annotation still describes are
// taken over without a conflict, and the annotation follows, so that going back to client-side apply works too.
import { annotations } from '../../api/annotations.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { difference, emptySet, type FieldSet } from './field-set.ts'
import { copyMap, isMap, type Json, type JsonMap, own } from './json.ts'
import { ownable } from './managed-fields.ts'
import { structNode } from './schema-walk.ts'
import { compare, fieldsOf } from './typed-values.ts'

/** Only kubectl under its usual name inherits; another field manager opts out. */
export const heir = 'kubectl'

/** What the annotation names and the object still has, unchanged since. */
export function inherited(info: KindInfo, live: KubeObject | undefined): FieldSet {
  const config = readAnnotation(live?.metadata.annotations?.[annotations.lastApplied])
  if (live === undefined || config === undefined || own(config, 'apiVersion') !== info.apiVersion) return emptySet
  const node = structNode(info.message)
  const applied = ownable(config)
  const { changed, removed } = compare(node, applied, ownable(live))
  return difference(difference(fieldsOf(node, applied, 'applied'), changed), removed)
}

/** The object with its annotation, if it has one, saying what was just applied. */
export function withLastApplied(object: KubeObject, config: JsonMap): KubeObject {
  const { metadata } = object
  if (!metadata.annotations?.[annotations.lastApplied]) return object
  const text = `${sortedText(withoutAnnotation(config))}\n`
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.lastApplied]: text } },
  }
}

function readAnnotation(text: string | undefined): JsonMap | undefined {
  try {
    const config: unknown = JSON.parse(text ?? '')
    return isMap(config) ? config : undefined
  } catch {
    return undefined // any client may write anything there
  }
}

function withoutAnnotation(config: JsonMap): JsonMap {
  const metadata = own(config, 'metadata')
  const notes = isMap(metadata) ? own(metadata, 'annotations') : undefined
  if (!isMap(metadata) || !isMap(notes)) return config
  const rest = copyMap(notes)
  delete rest[annotations.lastApplied]
  return { ...config, metadata: { ...metadata, annotations: rest } }
}

/** Keys in alphabetical order and no bare `<`, `>` or `&`: kubectl compares this text with its own. */
function sortedText(value: Json): string {
  const text = JSON.stringify(value, (_key, part: Json) =>
    isMap(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([left], [right]) => (left < right ? -1 : 1)))
      : part,
  )
  return text.replaceAll(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`)
}
