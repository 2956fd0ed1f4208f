// Who is next? Keys in the order in which they came. Taking from the front costs the same however many have left before:
// a Map would pass over the places of all of them.

export interface Line {
  /** At the end. A key that is in line already keeps its place. */
  join(key: string): void
  leave(key: string): void
  /** Before all who joined: whoever left the front for a while was there first. */
  comeBack(key: string): void
  /** The first that fits. */
  first(fits: (key: string) => boolean): string | undefined
  isEmpty(): boolean
}

export function createLine(): Line {
  const present = new Set<string>()
  /** Those who came back, then those who joined; keys that are not present any more are skipped. */
  const returned = new Set<string>()
  let joined: string[] = []
  let head = 0

  /** What left is dropped at the front at once, and elsewhere when it is most of the list. */
  function tidy(): void {
    while (head < joined.length && !isWaiting(joined[head]!)) head++
    if (joined.length - head > 2 * present.size + 64 || head > 10_000) {
      joined = [...new Set(joined.slice(head).filter(isWaiting))]
      head = 0
    }
  }
  const isWaiting = (key: string) => present.has(key) && !returned.has(key)

  return {
    join(key) {
      if (present.has(key)) return
      present.add(key)
      joined.push(key)
    },
    leave(key) {
      present.delete(key)
      returned.delete(key)
    },
    comeBack(key) {
      if (present.has(key)) return
      present.add(key)
      returned.add(key)
    },
    first(fits) {
      for (const key of returned) if (fits(key)) return key
      tidy()
      for (let at = head; at < joined.length; at++) {
        const key = joined[at]!
        if (isWaiting(key) && fits(key)) return key
      }
      return undefined
    },
    isEmpty: () => present.size === 0,
  }
}
