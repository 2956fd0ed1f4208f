// May this object be stored? The entry to validation, on create and on update: metadata first, then what the kind's
// definition demands. Errors come in Kubernetes' words; field-errors.ts turns them into the 422 answer.
import type { FieldError } from '../field-errors.ts'
import { kinds } from '../kinds.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { isSubdomain } from './formats.ts'
import { validateMetadata, validateMetadataUpdate } from './metadata.ts'

export function validateCreate<K extends KindName>(kind: K, object: KindMap[K]): readonly FieldError[] {
  const { namespaced, validation } = kinds[kind]
  return [
    ...validateMetadata(object.metadata, { namespaced, name: validation.name ?? isSubdomain }),
    ...(validation.whole?.(object) ?? []),
    ...(validation.created?.(object) ?? []),
  ]
}

/** What lies in a store: what may be demanded at its creation only is not asked again. */
export function validateStored<K extends KindName>(kind: K, object: KindMap[K]): readonly FieldError[] {
  const { namespaced, validation } = kinds[kind]
  return [
    ...validateMetadata(object.metadata, { namespaced, name: validation.name ?? isSubdomain }),
    ...(validation.whole?.(object) ?? []),
  ]
}

/**
 * `subresource` is undefined for the main resource. Subresources without rules of their own (binding, eviction, token) are
 * checked for their metadata only: who offers them knows what they change.
 */
export function validateUpdate<K extends KindName>(
  kind: K,
  next: KindMap[K],
  previous: KindMap[K],
  subresource?: string,
): readonly FieldError[] {
  const { validation } = kinds[kind]
  const found = validateMetadataUpdate(next.metadata, previous.metadata)
  // Kubernetes checks the metadata of all kinds, and then once more for most of them.
  const errors = found.length === 0 || validation.metadataErrorsOnce ? found : [...found, ...found]
  if (subresource === 'status') return [...errors, ...(validation.status?.(next, previous) ?? [])]
  if (subresource !== undefined) return [...errors, ...(validation.through?.(subresource, next, previous) ?? [])]
  const ownErrors = validation.whole?.(next) ?? []
  return [...errors, ...ownErrors, ...(validation.change?.(next, previous, ownErrors) ?? [])]
}
