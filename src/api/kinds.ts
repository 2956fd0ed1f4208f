// How do we find a kind? The definitions (one file per kind in kinds/, listed in generated/definitions.ts) by name, path and type.
// The name of a kind in our code differs from the kind on the wire only for EventsEvent.
import { definitions } from './generated/definitions.ts'
import type { KindDefinition } from './kinds/define-kind.ts'
import type { KubeObject } from './meta.ts'

type Definitions = typeof definitions

/** The type of the objects of each kind. */
export type KindMap = {
  readonly [K in keyof Definitions]: Definitions[K] extends KindDefinition<infer T extends KubeObject> ? T : never
}

export type KindName = keyof Definitions

/** A definition whose object type is not known to the compiler: it takes objects that were read as this kind. */
export interface KindInfo extends KindDefinition<KubeObject> {
  readonly name: KindName
}

export const kinds: Readonly<Record<KindName, KindInfo>> = named(definitions)

export const kindNames: readonly KindName[] = Object.keys(kinds) as KindName[] // the keys of our own literal

const byResource: ReadonlyMap<string, KindInfo> = new Map(
  kindNames.map((name) => [resourceKey(kinds[name].group, kinds[name].plural), kinds[name]]),
)
const byKind: ReadonlyMap<string, KindInfo> = new Map(
  kindNames.map((name) => [`${kinds[name].apiVersion} ${kinds[name].kind}`, kinds[name]]),
)
const groupVersions: ReadonlySet<string> = new Set(kindNames.map((name) => kinds[name].apiVersion))

/** The kind behind `/apis/{group}/{version}/{plural}` (`''` is the core group), if we serve it. */
export function kindByResource(group: string, version: string, plural: string): KindInfo | undefined {
  const info = kindByPlural(group, plural)
  return info?.version === version ? info : undefined
}

/** In whichever version: access rules name no versions. */
export function kindByPlural(group: string, plural: string): KindInfo | undefined {
  return byResource.get(resourceKey(group, plural))
}

/** The kind an object says it is. */
export function kindByType(apiVersion: string, kindText: string): KindInfo | undefined {
  return byKind.get(`${apiVersion} ${kindText}`)
}

/** Whether we serve any kind of this group (`''` is the core group) in this version. */
export function hasGroupVersion(group: string, version: string): boolean {
  return groupVersions.has(group === '' ? version : `${group}/${version}`)
}

export function isKindName(text: string): text is KindName {
  return Object.hasOwn(kinds, text)
}

/** The kind that is stored: another one for a kind that is only a view. */
export function storedKind(info: KindInfo): KindInfo {
  return info.view === undefined ? info : kinds[info.view.of as KindName] // checked by kinds.test.ts
}

/** `persistentvolumes`, `storageclasses.storage.k8s.io`: how error texts call a resource. */
export function qualifiedResource(info: KindInfo): string {
  return info.group === '' ? info.plural : `${info.plural}.${info.group}`
}

/** `PersistentVolume`, `StorageClass.storage.k8s.io`: how "is invalid" texts call a kind. */
export function qualifiedKind(info: KindInfo): string {
  return info.group === '' ? info.kind : `${info.kind}.${info.group}`
}

/** As Go prints a group, version and kind: `/v1, Kind=Pod`. */
export function versionKind(apiVersion: string, kind: string): string {
  return `${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`
}

/** What Kubernetes calls the package of the kind's inner type: that of the kind it is stored as. */
export function goPackage(info: KindInfo): string {
  const [group = ''] = storedKind(info).group.split('.', 1)
  return group === '' ? 'core' : group
}

function named(all: Readonly<Record<KindName, KindDefinition<KubeObject>>>): Readonly<Record<KindName, KindInfo>> {
  const entries = Object.entries(all).map(([name, definition]) => [name, { ...definition, name }])
  return Object.fromEntries(entries) as Record<KindName, KindInfo> // the same keys
}

function resourceKey(group: string, plural: string): string {
  return `${group}/${plural}`
}
