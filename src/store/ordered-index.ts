// How do lists come out sorted without sorting? Keys live in short sorted chunks; a chunk splits when it grows.
// Insertion and removal move at most one chunk; counting a range adds up chunk lengths.

const chunkLimit = 512

export interface OrderedIndex {
  add(key: string): void
  delete(key: string): void
  /** Keys with the prefix that are greater than `after`, in order. */
  keys(prefix: string, after: string | undefined): Generator<string, void, undefined>
  /** How many keys with the prefix are greater than `after`. */
  count(prefix: string, after: string | undefined): number
}

/** `sorted` must be in ascending order without duplicates. */
export function createOrderedIndex(sorted: readonly string[] = []): OrderedIndex {
  const chunks: string[][] = []
  for (let start = 0; start < sorted.length; start += chunkLimit / 2) {
    chunks.push(sorted.slice(start, start + chunkLimit / 2))
  }

  return {
    add(key) {
      const at = chunkFor(chunks, key)
      const chunk = chunks[at]
      if (chunk === undefined) {
        chunks.push([key])
        return
      }
      const position = lowerBound(chunk, key)
      if (chunk[position] === key) return
      chunk.splice(position, 0, key)
      if (chunk.length > chunkLimit) chunks.splice(at + 1, 0, chunk.splice(chunkLimit / 2))
    },
    delete(key) {
      const at = chunkFor(chunks, key)
      const chunk = chunks[at]
      if (chunk === undefined) return
      const position = lowerBound(chunk, key)
      if (chunk[position] !== key) return
      chunk.splice(position, 1)
      if (chunk.length === 0) chunks.splice(at, 1)
    },
    *keys(prefix, after) {
      const from = startOf(prefix, after)
      for (let at = chunkFor(chunks, from); at < chunks.length; at++) {
        const chunk = chunks[at] ?? []
        for (let position = lowerBound(chunk, from); position < chunk.length; position++) {
          const key = chunk[position] ?? ''
          if (key === after) continue
          if (!key.startsWith(prefix)) return
          yield key
        }
      }
    },
    count(prefix, after) {
      const from = startOf(prefix, after)
      const below = rank(chunks, from)
      const end = rank(chunks, afterPrefix(prefix))
      const exact = after !== undefined && after >= prefix && has(chunks, after) ? 1 : 0
      return Math.max(0, end - below - exact)
    },
  }
}

function startOf(prefix: string, after: string | undefined): string {
  return after !== undefined && after > prefix ? after : prefix
}

/** A text greater than every key with the prefix. */
function afterPrefix(prefix: string): string {
  return `${prefix}\u{10FFFF}`
}

/** The last chunk whose first key is not greater than the key. */
function chunkFor(chunks: readonly string[][], key: string): number {
  let low = 0
  let high = chunks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((chunks[middle]?.[0] ?? '') <= key) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

function lowerBound(chunk: readonly string[], key: string): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((chunk[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}

/** How many keys are smaller than this one. */
function rank(chunks: readonly string[][], key: string): number {
  const at = chunkFor(chunks, key)
  let below = lowerBound(chunks[at] ?? [], key)
  for (let index = 0; index < at; index++) below += chunks[index]?.length ?? 0
  return below
}

function has(chunks: readonly string[][], key: string): boolean {
  const chunk = chunks[chunkFor(chunks, key)] ?? []
  return chunk[lowerBound(chunk, key)] === key
}
