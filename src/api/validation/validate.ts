// May this object be stored? The entry to validation: per kind, on create and on update. Errors come in Kubernetes'
// words; field-errors.ts turns them into the 422 answer.
import type { FieldError } from '../field-errors.ts'
import { kinds } from '../kinds.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { validateClaim, validateClaimStatusUpdate, validateClaimUpdate } from './claim.ts'
import { coreKinds } from './core-kinds.ts'
import { isLabel, isPathSegment, isSubdomain } from './formats.ts'
import { validateMetadata, validateMetadataUpdate } from './metadata.ts'
import { validateVolume, validateVolumeUpdate } from './persistent-volume.ts'
import { validateEphemeralContainersUpdate } from './ephemeral-containers.ts'
import { validateNewPod, validatePod, validatePodStatusUpdate, validatePodUpdate } from './pod.ts'
import { snapshotKinds } from './snapshots.ts'
import { storageKinds } from './storage-kinds.ts'

/** What a kind demands beyond its metadata. */
export interface KindRules<T> {
  /** The object by itself: checked on create and again on every update of the main resource. */
  whole?(object: T): readonly FieldError[]
  /** Only when it is created. */
  created?(object: T): readonly FieldError[]
  /** What may not change; `found` is what the new object by itself did wrong. */
  change?(next: T, previous: T, found: readonly FieldError[]): readonly FieldError[]
  /** A write through /status. */
  status?(next: T, previous: T): readonly FieldError[]
  /** Writes through other subresources, by name. */
  readonly through?: Readonly<Record<string, (next: T, previous: T) => readonly FieldError[]>>
}

export type RulesByKind = { readonly [Name in KindName]?: KindRules<KindMap[Name]> }

const rules: RulesByKind = {
  ...storageKinds,
  ...snapshotKinds,
  ...coreKinds,
  PersistentVolume: { whole: validateVolume, change: validateVolumeUpdate },
  PersistentVolumeClaim: {
    whole: validateClaim,
    change: validateClaimUpdate,
    status: validateClaimStatusUpdate,
  },
  Pod: {
    whole: validatePod,
    created: validateNewPod,
    change: validatePodUpdate,
    status: validatePodStatusUpdate,
    through: { ephemeralcontainers: validateEphemeralContainersUpdate },
  },
}

export function validateCreate<K extends KindName>(kind: K, object: KindMap[K]): readonly FieldError[] {
  const { whole, created } = rulesOf(kind)
  return [
    ...validateMetadata(object.metadata, metadataRules(kind)),
    ...(whole?.(object) ?? []),
    ...(created?.(object) ?? []),
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
  const found = validateMetadataUpdate(next.metadata, previous.metadata)
  // Kubernetes looks at the metadata for all kinds, and then once more for most of them.
  const errors = found.length === 0 || looksOnce.has(kind) ? found : [...found, ...found]
  const { whole, change, status, through } = rulesOf(kind)
  if (subresource === 'status') return [...errors, ...(status?.(next, previous) ?? [])]
  if (subresource !== undefined) return [...errors, ...(through?.[subresource]?.(next, previous) ?? [])]
  const ownErrors = whole?.(next) ?? []
  return [...errors, ...ownErrors, ...(change?.(next, previous, ownErrors) ?? [])]
}

const looksOnce: ReadonlySet<KindName> = new Set<KindName>(['PersistentVolume', 'VolumeAttachment', 'CSINode', 'Event'])

function rulesOf<K extends KindName>(kind: K): KindRules<KindMap[K]> {
  const table: { readonly [Name in KindName]?: KindRules<KindMap[Name]> } = rules
  return table[kind] ?? {}
}

function metadataRules(kind: KindName) {
  // The old API for events never looked at their names.
  const names = kind === 'Event' ? isPathSegment : kind === 'Namespace' ? isLabel : isSubdomain
  return { namespaced: kinds[kind].namespaced, name: names }
}
