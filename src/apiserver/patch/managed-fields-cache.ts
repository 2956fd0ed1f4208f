// How do thousands of objects share the record of who owns which field? What the same clients wrote in the same way in the
// same second has the same entries: they are one list, with its text and with what the next write makes of it.
import type { ManagedFieldsEntry } from '../../api/generated/types.ts'
import { deepFreeze } from '../objects/deep-freeze.ts'

export type Entries = readonly ManagedFieldsEntry[]

/** One per server. Everything works without it; only parsing and merging the same entries again would cost more. */
export interface ManagedFieldsCache {
  /** The entries that this text says. */
  read(text: string): Entries
  /** The text of the entries. */
  textOf(entries: Entries): string
  isShared(entries: Entries): boolean
  /** What `step` makes of the entries of an object (none when it is created): worked out once for all that have them. */
  after(entries: Entries, step: string, work: () => Entries): Entries
}

interface Shared {
  readonly entries: Entries
  readonly text: string
  /** What became of them, by step. */
  readonly after: Map<string, Entries>
}

/** Beyond these bounds nothing is shared. */
const mostRecords = 500
const mostSteps = 100
const longestText = 4_000
const longestStep = 4_000

export const noEntries: Entries = Object.freeze([])

export function createManagedFieldsCache(): ManagedFieldsCache {
  const byText = new Map<string, Shared>()
  const byEntries = new WeakMap<Entries, Shared>()

  function share(entries: Entries, text: string): Shared {
    // Starting over is simpler than choosing what to drop. Entries that are in use keep what was worked out for them.
    if (byText.size >= mostRecords) byText.clear()
    const shared: Shared = { entries, text, after: new Map() }
    byText.set(text, shared)
    byEntries.set(entries, shared)
    return shared
  }

  function sharedOf(entries: Entries, text: string): Entries {
    if (text.length > longestText) return entries
    return (byText.get(text) ?? share(entries, text)).entries
  }

  return {
    read: (text) => byText.get(text)?.entries ?? sharedOf(deepFreeze(JSON.parse(text) as ManagedFieldsEntry[]), text), // we wrote it
    textOf: (entries) => byEntries.get(entries)?.text ?? JSON.stringify(entries),
    isShared: (entries) => byEntries.has(entries),
    after(entries, step, work) {
      const shared = entries.length === 0 ? (byText.get('[]') ?? share(noEntries, '[]')) : byEntries.get(entries)
      const known = shared?.after.get(step)
      if (known !== undefined) return known
      const result = work()
      const text = JSON.stringify(result)
      const found = sharedOf(result, text)
      if (shared !== undefined && byEntries.has(found) && step.length <= longestStep) {
        // Steps name their second: old ones do not come again.
        if (shared.after.size >= mostSteps) shared.after.clear()
        shared.after.set(step, found)
      }
      return found
    },
  }
}
