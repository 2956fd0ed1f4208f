// What is a kind? Everything the API knows about it, in one value per kind: its names on the wire, defaults, validation,
// what writes may touch, table columns, texts and who may use it. The server derives the rest from these definitions.
import type { FieldError } from '../field-errors.ts'
import type { KubeObject } from '../meta.ts'
import type { Check } from '../validation/formats.ts'
import type { Printer } from './printer.ts'

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch'

/** A resource below an object: `pods/binding` takes and answers an object of another kind. */
export interface SubresourceInfo {
  readonly name: string
  /** The kind of the body, as discovery names it; `group` and `version` only when they differ from the parent's. */
  readonly kind: string
  readonly group?: string
  readonly version?: string
  readonly verbs: readonly Verb[]
  /** Answered by the node: `stream` runs or reaches into a pod, `document` only reads. */
  readonly answeredByNode?: 'stream' | 'document'
  /** The path may go on behind the name: `nodes/<name>/proxy/metrics`. */
  readonly takesPath?: true
}

/** What a kind demands beyond valid metadata. */
export interface KindRules<T> {
  /** The object by itself: checked on create and again on every update of the main resource. */
  whole?(object: T): readonly FieldError[]
  /** Only when it is created. */
  created?(object: T): readonly FieldError[]
  /** What may not change; `found` is what the new object by itself did wrong. */
  change?(next: T, previous: T, found: readonly FieldError[]): readonly FieldError[]
  /** A write through /status. */
  status?(next: T, previous: T): readonly FieldError[]
  /** Writes through other subresources. */
  through?(subresource: string, next: T, previous: T): readonly FieldError[]
  /** How a name must look; a DNS subdomain unless said otherwise. */
  readonly name?: Check
  /** On update Kubernetes reports each error in the metadata twice, except for some kinds. */
  readonly metadataErrorsOnce?: true
}

/** An object's status, or any other part whose members are not known here. */
export type Part = Readonly<Record<string, unknown>>

/** What a write may touch, and what the server itself fills in. Times are RFC 3339. */
interface WriteStrategy<T> {
  /** The creator may bring a status; for other kinds it is dropped. */
  readonly creatorSetsStatus?: true
  /** A write of the main resource writes the status too. */
  readonly updateWritesStatus?: true
  /** PUT creates the object if it does not exist. */
  readonly updateCreates?: true
  /** PUT without metadata.resourceVersion is refused. */
  readonly updateNeedsVersion?: true
  /** A write of the status leaves the metadata alone. */
  readonly statusKeepsMetadata?: true
  /** A write of the status cannot change the owners. */
  readonly statusKeepsOwners?: true
  /** metadata.generation counts changes of the spec: from 1 on create, or only from the first change on. */
  readonly generation?: 'fromCreate' | 'fromFirstChange'
  /** DELETE answers with the object instead of a Status. */
  readonly deleteAnswersObject?: true
  /** Added on create; a controller removes it when nobody uses the object any more. */
  readonly protectionFinalizer?: string
  /** The status of a new object. */
  initialStatus?(object: T, now: string): Part
  /** The main object of an update, after the status was taken from the current one. */
  mainWrite?(next: T, current: T): T
  /** The status of a write through /status. */
  statusWrite?(status: Part | undefined, before: Part | undefined, now: string): Part | undefined
  /** The seconds a deleted object gets to stop; 0 unless said otherwise. `asked` is what the client wants. */
  graceSeconds?(object: T, asked: number | undefined): number
  /** The spec itself holds the object when it is deleted, as finalizers do. */
  isHeld?(object: T): boolean
  /** The object once it is marked as deleted and waits. */
  markDeleted?(object: T): T
}

/** What a node may do with objects of a kind; other requests of nodes are refused. */
export type NodeRule =
  /** The object that has the node's name; `inNamespace` names the only namespace, `keeps` forbids to delete it. */
  | { readonly may: 'ownName'; readonly inNamespace?: string; readonly keeps?: true }
  /** Pods bound to the node: read them, write their status, delete them. */
  | { readonly may: 'ownPods' }
  /** Read one by one what a pod of the node uses; `writes` names the subresource that may be written. */
  | {
      readonly may: 'usedByPods'
      readonly as: 'secrets' | 'configMaps' | 'claims' | 'serviceAccounts'
      readonly writes?: string
      readonly onlyGet?: true
    }
  /** Read one by one the volumes of the node's pods. */
  | { readonly may: 'volumesOfPods' }
  /** Get the object if its spec.nodeName is the node. */
  | { readonly may: 'ownAttachments' }
  | { readonly may: 'readAll' }
  /** Create and patch, in the node's name, about itself, its pods and what they use. */
  | { readonly may: 'ownEvents' }
  /** Those whose spec.node is the node. */
  | { readonly may: 'ownRecords' }

/** What the controllers and the CSI jobs do with objects of a kind: what they use, and no more. */
interface ControllerRule {
  readonly verbs: readonly Verb[]
  readonly subresources?: Readonly<Record<string, readonly Verb[]>>
  /** Only secrets that a class or a volume names. */
  readonly only?: 'namedSecrets'
}

interface KindAccess {
  /** Only administrators, controllers and nodes read it. */
  readonly confidential?: true
  /** Nothing unless said otherwise. */
  readonly controllers?: ControllerRule
  /** Nothing unless said otherwise. */
  readonly nodes?: NodeRule
}

/** A field that `--field-selector` may name. */
export interface SelectableField {
  /** Where the value is, when not at the field's own name. */
  readonly path?: string
  /** The text of an absent value; empty unless said otherwise. */
  readonly absent?: string
}

/** A kind that shows the stored objects of another one. */
interface KindView {
  /** A KindName: its type would refer to itself here, so kinds.test.ts checks it. */
  readonly of: string
  fromStored(object: KubeObject): KubeObject
  toStored(object: KubeObject): KubeObject
}

/**
 * Messages by name, each a list of fields: `name: type`. A `!` at the end marks a required field, a `*` before the type a list.
 * Types are `string`, `bool`, `int32`, `int64`, `bytes`, `meta.Time`, `meta.MicroTime`, `resource.Quantity`, `map<string,string>`, the name of
 * another message, or a closed list of words: `Delete|Retain`. Such messages have no protobuf form, only JSON.
 */
type Shape = Readonly<Record<string, readonly string[]>>

export interface KindDefinition<T> {
  /** The kind as written in objects: `Event` for both Event and EventsEvent. */
  readonly kind: string
  /** `''` is the core group. */
  readonly group: string
  readonly version: string
  readonly apiVersion: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly subresources: readonly SubresourceInfo[]
  /** The message in the schema table (generated/schema.ts). */
  readonly message: string
  /** Messages that Kubernetes' own table lacks: this one and those it holds. Read by tools/gen-api.ts. */
  readonly shape?: Shape
  /** One sentence for `kubectl explain` and the reference. */
  readonly description: string
  /** Sentences for fields: `PersistentVolumeClaimSpec.volumeName`. Messages without a dot: `PersistentVolumeClaimSpec`. */
  readonly fieldDescriptions: Readonly<Record<string, string>>
  /** Beyond metadata.name and metadata.namespace. Kubernetes refuses other fields in other words where this is set. */
  readonly selectableFields?: Readonly<Record<string, SelectableField>>
  readonly validation: KindRules<T>
  readonly strategy: WriteStrategy<T>
  readonly access: KindAccess
  readonly table: Printer<T>
  readonly view?: KindView
  /** What the server fills in; applying it twice changes nothing. */
  defaults?(object: T): T
  /** What is allowed but unwise: the client is warned. */
  warnings?(object: T): readonly string[]
}

type Derived = 'version' | 'apiVersion' | 'singular' | 'namespaced'
type Optional =
  | 'shortNames'
  | 'categories'
  | 'verbs'
  | 'subresources'
  | 'fieldDescriptions'
  | 'validation'
  | 'strategy'
  | 'access'

export type KindInput<T> = Omit<KindDefinition<T>, Derived | Optional> &
  Partial<Pick<KindDefinition<T>, Optional>> & { readonly scope: 'Namespaced' | 'Cluster' }

export const allVerbs: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
]
export const reading: readonly Verb[] = ['get', 'list', 'watch']
export const statusVerbs: readonly Verb[] = ['get', 'patch', 'update']

export function defineKind<T extends KubeObject>(input: KindInput<T>): KindDefinition<T> {
  const { scope, ...given } = input
  return {
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    subresources: [],
    fieldDescriptions: {},
    validation: {},
    strategy: {},
    access: {},
    ...given,
    version: 'v1',
    apiVersion: input.group === '' ? 'v1' : `${input.group}/v1`,
    singular: input.kind.toLowerCase(),
    namespaced: scope === 'Namespaced',
  }
}

/** `status`, as nearly every kind has it. */
export function statusOf(kind: string): SubresourceInfo {
  return { name: 'status', kind, verbs: statusVerbs }
}
