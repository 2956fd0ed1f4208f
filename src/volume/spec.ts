// Which volume is meant? The wire says "one of many optional fields"; inside there is one tagged union,
// made here from a pod's volume or from a PersistentVolume.
import type {
  PersistentVolume,
  PersistentVolumeSource,
  Volume,
  VolumeSource as PodVolumeSource,
} from '../api/generated/types.ts'
import { jsonFields } from '../api/schema/schema.ts'
import { VolumeError } from './effect.ts'

/** What a pod's volume has before claims are resolved. */
type Unresolved = 'persistentVolumeClaim' | 'ephemeral'
type PodSources = Omit<Required<PodVolumeSource>, Unresolved>
type PersistentSources = Required<PersistentVolumeSource>

/** Every source that a volume can have after claims are resolved, with or without a plugin here: the fields of the API. */
export type VolumeSources = {
  readonly [K in keyof PodSources | keyof PersistentSources]:
    | (K extends keyof PodSources ? PodSources[K] : never)
    | (K extends keyof PersistentSources ? PersistentSources[K] : never)
}

export type SourceKind = keyof VolumeSources
export type VolumeSource = { [K in SourceKind]: { readonly kind: K; readonly value: VolumeSources[K] } }[SourceKind]
type VolumeMode = 'Filesystem' | 'Block'

export interface VolumeSpec<K extends SourceKind = SourceKind> {
  /** The inner name (ID-4): the PersistentVolume's name, or the pod's volume name. */
  readonly name: string
  readonly from: 'pod' | 'persistentVolume'
  readonly mode: VolumeMode
  /** The source's own flag for inline volumes, the claim reference's flag for persistent ones (PLUG-13). */
  readonly readOnly: boolean
  readonly source: Extract<VolumeSource, { kind: K }>
  /** The whole object when the volume is persistent: capacity, access modes, mount options, affinity, claim. */
  readonly persistentVolume?: PersistentVolume
}

const unresolved: readonly string[] = ['persistentVolumeClaim', 'ephemeral'] satisfies readonly Unresolved[]
const sourceNames: ReadonlySet<string> = new Set(
  [...jsonFields('core.VolumeSource').keys(), ...jsonFields('core.PersistentVolumeSource').keys()].filter(
    (name) => !unresolved.includes(name),
  ),
)

/** An inline volume of a pod. Claims and generic ephemeral volumes must be resolved to their PersistentVolume first. */
export function specOfPodVolume(volume: Volume): VolumeSpec {
  const spec = inlineSpec(volume)
  if (!spec) throw noSource(volume.name)
  return spec
}

/** The same, or undefined for a claim, a generic ephemeral volume or an unknown source. */
export function inlineSpec(volume: Volume): VolumeSpec | undefined {
  const source = sourceIn(volume)
  if (!source) return undefined
  const { readOnly } = source.value as { readonly readOnly?: boolean }
  return { name: volume.name, from: 'pod', mode: 'Filesystem', readOnly: readOnly === true, source }
}

/** A PersistentVolume; `readOnly` comes from the pod's claim reference. */
export function specOfPersistentVolume(persistentVolume: PersistentVolume, readOnly: boolean): VolumeSpec {
  const name = persistentVolume.metadata.name ?? ''
  const source = sourceIn(persistentVolume.spec ?? {})
  if (!source) throw noSource(name)
  const mode = persistentVolume.spec?.volumeMode
  if (mode === undefined) {
    // The API server always fills the field in; without it we must not guess between mount and map (ID-8).
    throw new VolumeError('VolumeModeMissing', `cannot get volumeMode for volume: ${name}`, { effect: 'none' })
  }
  return {
    name,
    from: 'persistentVolume',
    mode: mode === 'Block' ? 'Block' : 'Filesystem',
    readOnly,
    source,
    persistentVolume,
  }
}

/** Narrows a spec to one kind of source. */
export function hasSource<K extends SourceKind>(spec: VolumeSpec, kind: K): spec is VolumeSpec & VolumeSpec<K> {
  return spec.source.kind === kind
}

function sourceIn(holder: object): VolumeSource | undefined {
  const fields = holder as Readonly<Record<string, unknown>>
  for (const kind of sourceNames) {
    const value = fields[kind]
    // The kind is a key of VolumeSources and the API validated the value's shape.
    if (value !== undefined && value !== null) return { kind, value } as VolumeSource
  }
  return undefined
}

/** An unknown source gets the same error as one that no plugin serves. */
function noSource(name: string): VolumeError {
  const text = `failed to get Plugin from volumeSpec for volume "${name}" err=no volume plugin matched`
  return new VolumeError('NoPluginMatched', text, { effect: 'none' })
}
