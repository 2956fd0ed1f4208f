// How do objects become the Table that kubectl prints? The columns are in the kind's definition; rows carry the object's metadata,
// the whole object or nothing, as the client asked.
import { kinds } from '../../api/kinds.ts'
import type { KindMap, KindName } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Cell, ColumnDefinition, RowCondition } from '../../api/kinds/printer.ts'

export type IncludeObject = 'None' | 'Metadata' | 'Object'

export function isIncludeObject(text: string): text is IncludeObject {
  return text === 'None' || text === 'Metadata' || text === 'Object'
}

export interface TableOptions {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly includeObject?: IncludeObject
  /** Later events of a watch repeat no column definitions. */
  readonly noHeaders?: boolean
  readonly apiVersion?: 'meta.k8s.io/v1' | 'meta.k8s.io/v1beta1'
  /** The list's metadata; a single object's own version is used when left out. */
  readonly metadata?: TableMetadata
}

interface TableMetadata {
  readonly resourceVersion?: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export interface Table {
  readonly kind: 'Table'
  readonly apiVersion: string
  readonly metadata: TableMetadata
  /** Null when the headers are left out, as Kubernetes writes it. */
  readonly columnDefinitions: readonly ColumnDefinition[] | null
  readonly rows: readonly TableRow[]
}

interface TableRow {
  readonly cells: readonly Cell[]
  readonly conditions?: readonly RowCondition[]
  readonly object: unknown
}

export function toTable<K extends KindName>(kind: K, objects: readonly KindMap[K][], options: TableOptions): Table {
  const printer = kinds[kind].table
  const apiVersion = options.apiVersion ?? 'meta.k8s.io/v1'
  return {
    kind: 'Table',
    apiVersion,
    metadata: options.metadata ?? ownMetadata(objects),
    columnDefinitions: options.noHeaders === true ? null : printer.columns,
    rows: objects.map((object) => {
      const conditions = printer.conditions?.(object) ?? []
      return {
        cells: printer.cells(object, options.now),
        ...(conditions.length === 0 ? {} : { conditions }),
        object: rowObject(object, options.includeObject ?? 'Metadata', apiVersion),
      }
    }),
  }
}

/** What metadata clients ask for, and what a row carries unless told otherwise. */
export function toPartialObjectMetadata(object: KubeObject, apiVersion = 'meta.k8s.io/v1') {
  return { kind: 'PartialObjectMetadata', apiVersion, metadata: object.metadata } as const
}

function rowObject(object: KubeObject, include: IncludeObject, apiVersion: string): unknown {
  switch (include) {
    case 'None':
      return null
    case 'Metadata':
      return toPartialObjectMetadata(object, apiVersion)
    case 'Object':
      return object
    default:
      return include satisfies never
  }
}

function ownMetadata(objects: readonly KubeObject[]): TableMetadata {
  const version = objects.length === 1 ? objects[0]?.metadata.resourceVersion : undefined
  return version === undefined ? {} : { resourceVersion: version }
}
