// Which objects does a request choose? Label and field selectors, with a name decided from the key alone.
import { matchesFields, nameAskedFor, parseFieldSelector } from '../../api/field-selectors.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { matchesLabels, parseLabelSelector, SelectorError } from '../../api/selectors.ts'
import { badRequest } from '../../api/status-error.ts'

export interface Selection {
  readonly everything: boolean
  /** Cheap and necessary: false means the object is not chosen. */
  key(key: string): boolean
  /** The key was all there was to ask. */
  readonly keyDecides: boolean
  object(object: KubeObject): boolean
}

const everything: Selection = { everything: true, key: () => true, keyDecides: true, object: () => true }

export function selectionOf(
  info: KindInfo,
  selectors: { readonly labelSelector?: string; readonly fieldSelector?: string },
): Selection {
  const { labelSelector = '', fieldSelector = '' } = selectors
  if (labelSelector === '' && fieldSelector === '') return everything
  const labels = readable(() => parseLabelSelector(labelSelector))
  const fields = readable(() => parseFieldSelector(info.name, fieldSelector))
  if (labels.length === 0 && fields.length === 0) return everything
  const name = nameAskedFor(fields)
  const tail = name === undefined ? undefined : `/${name}`
  return {
    everything: false,
    key: (key) => tail === undefined || key.endsWith(tail),
    keyDecides: tail !== undefined && labels.length === 0 && fields.length === 1,
    object: (object) => matchesLabels(labels, object.metadata.labels) && matchesFields(fields, object),
  }
}

function readable<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message)
    throw error
  }
}
