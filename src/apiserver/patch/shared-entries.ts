// How do thousands of objects share their whole record of owners? What the same clients wrote in the same way in the same
// second has the same entries: they are one list, with its text and with what the next write makes of it.
import type { ManagedFieldsEntry } from '../../api/types.ts'

type Entries = readonly ManagedFieldsEntry[]

interface Shared {
  readonly entries: Entries
  readonly text: string
  /** What became of them, by what was done. */
  readonly after: Map<string, Entries>
}

/** Beyond these bounds nothing is shared, and everything still works. */
const mostRecords = 500
const mostSteps = 100
const longestText = 4_000

/** Of an object that nobody has written yet. */
export const noEntries: Entries = Object.freeze([])

let byText = new Map<string, Shared>()
let byEntries = new WeakMap<Entries, Shared>()

/** The list that this text says, if it is known. */
export function entriesOf(text: string): Entries | undefined {
  return byText.get(text)?.entries
}

/** Undefined for a list that is not shared. */
export function textOf(entries: Entries): string | undefined {
  return byEntries.get(entries)?.text
}

/** An equal list, the same one for everybody. */
export function sharedEntries(entries: Entries, text: string): Entries {
  if (text.length > longestText) return entries
  return (byText.get(text) ?? share(entries, text)).entries
}

/** What `step` makes of these entries; worked out once for all objects that have them. */
export function entriesAfter(entries: Entries, step: string, work: () => Entries): Entries {
  const shared = entries === noEntries ? (byText.get('') ?? share(noEntries, '')) : byEntries.get(entries)
  const known = shared?.after.get(step)
  if (known !== undefined) return known
  const result = work()
  if (shared !== undefined && byEntries.has(result)) {
    // Times pass: what was done long ago is not done again.
    if (shared.after.size >= mostSteps) shared.after.clear()
    shared.after.set(step, result)
  }
  return result
}

function share(entries: Entries, text: string): Shared {
  if (byText.size >= mostRecords) {
    byText = new Map()
    byEntries = new WeakMap()
  }
  const shared: Shared = { entries, text, after: new Map() }
  byText.set(text, shared)
  byEntries.set(entries, shared)
  return shared
}
