// Which objects were made of entries lately? Shared by all who ask: the writer, every watch, the next write. Two
// generations, the older one dropped as a whole; weak references would cost the garbage collector more than parsing again.
import type { KubeObject } from '../../api/meta.ts'
import type { Entry } from '../../store/store.ts'

/** What was made of an entry: the whole object, and the one without managedFields. */
interface Made {
  whole?: KubeObject
  lean?: KubeObject
}

export interface RecentObjects {
  find(entry: Entry): Made | undefined
  /** The same, found or new, and kept from now on. */
  use(entry: Entry): Made
}

/** Of stored text. */
const generationBytes = 1_500_000

export function createRecentObjects(): RecentObjects {
  let bytes = 0
  let recent = new Map<Entry, Made>()
  let older = new Map<Entry, Made>()
  return {
    find: (entry) => recent.get(entry) ?? older.get(entry),
    use(entry) {
      const known = recent.get(entry)
      if (known !== undefined) return known
      if (bytes >= generationBytes) {
        older = recent
        recent = new Map()
        bytes = 0
      }
      bytes += entry.value.length
      const found = older.get(entry) ?? {}
      recent.set(entry, found)
      return found
    },
  }
}
