// Which kinds are defined in src/api/kinds? Read from the files themselves: a new file is a new kind. Used by tools/gen-api.ts.
import { readdirSync } from 'node:fs'
import type { KindDefinition } from '../src/api/kinds/define-kind.ts'

export interface KindFile {
  readonly file: string
  /** The exported constant: `storageClassKind`. */
  readonly exported: string
  /** The kind's name in our code: its kind, except that a view of another kind is named as its constant (`EventsEvent`). */
  readonly name: string
  readonly definition: KindDefinition<never>
}

/** Every definition that a file there exports, sorted by group and kind. */
export async function readKindFiles(directory: URL): Promise<readonly KindFile[]> {
  const found: KindFile[] = []
  for (const file of readdirSync(directory).toSorted()) {
    if (!file.endsWith('.ts') || file.endsWith('.test.ts')) continue
    const exports = (await import(new URL(file, directory).href)) as Readonly<Record<string, unknown>>
    for (const [exported, value] of Object.entries(exports)) {
      if (!isDefinition(value)) continue
      if (!exported.endsWith('Kind'))
        throw new Error(`${file}: rename the constant ${exported} so that it ends in Kind`)
      found.push({ file, exported, name: nameOf(exported, value), definition: value })
    }
  }
  return found.toSorted((a, b) => (place(a) < place(b) ? -1 : 1))
}

/** Only definitions have both a message and a table. */
function isDefinition(value: unknown): value is KindDefinition<never> {
  return typeof value === 'object' && value !== null && 'message' in value && 'table' in value
}

function nameOf(exported: string, { kind, view }: KindDefinition<never>): string {
  return view === undefined ? kind : exported.charAt(0).toUpperCase() + exported.slice(1, -'Kind'.length)
}

function place({ definition: { group, kind } }: KindFile): string {
  return `${group} ${kind}`
}
