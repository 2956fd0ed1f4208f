// What is a printer? Column definitions of one kind plus the function that fills a row's cells.
// kubectl shows what the server decides here; columns with priority above 0 appear only with -o wide.

export type Cell = string | number | boolean | null

export interface ColumnDefinition {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly format: string
  readonly description: string
  readonly priority: number
}

export interface RowCondition {
  readonly type: 'Completed'
  readonly status: 'True'
  readonly reason: string
  readonly message: string
}

export interface Printer<T> {
  readonly columns: readonly ColumnDefinition[]
  /** `now` in milliseconds since 1970; one cell per column. */
  cells(object: T, now: number): readonly Cell[]
  conditions?(object: T): readonly RowCondition[]
}

export const nameColumn: ColumnDefinition = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
}

export const ageColumn: ColumnDefinition = column('Age', 'The time since the object was created.')

export function column(name: string, description: string, type: ColumnDefinition['type'] = 'string'): ColumnDefinition {
  return { name, type, format: '', description, priority: 0 }
}

export function wideColumn(name: string, description: string): ColumnDefinition {
  return { ...column(name, description), priority: 1 }
}
