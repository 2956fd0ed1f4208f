// In which order do merged lists come out? Two rules: strategic merge's $setElementOrder, and server-side apply's
// "the applied order wins, items of others keep their place".
import { isMap, type Json, jsonEqual, own } from './json.ts'

/**
 * `merged` rearranged: items named in `order` follow it; the others keep the order the server had, and each comes
 * before the first named item that it stood before. A named item that the server did not have goes first.
 */
export function orderLists(
  merged: readonly Json[],
  server: readonly Json[],
  order: readonly Json[],
  mergeKey: string | undefined,
): readonly Json[] {
  const identity = (item: Json) => (mergeKey !== undefined && isMap(item) ? (own(item, mergeKey) ?? null) : item)
  const indexIn = (list: readonly Json[], item: Json) =>
    list.findIndex((other) => jsonEqual(identity(other), identity(item)))
  const named = merged
    .filter((item) => indexIn(order, item) >= 0)
    .toSorted((left, right) => indexIn(order, left) - indexIn(order, right))
  const others = merged.filter((item) => indexIn(order, item) < 0)
  const result: Json[] = []
  let next = 0
  for (const item of others) {
    const place = indexIn(server, item)
    for (; next < named.length; next += 1) {
      const candidate = named[next] as Json
      const candidatePlace = indexIn(server, candidate)
      if (candidatePlace > place && place >= 0) break
      result.push(candidate)
    }
    result.push(item)
  }
  return [...result, ...named.slice(next)]
}

/**
 * The keys of two lists in one order: those of `applied` as they are, those only `live` has where they stood;
 * what `live` had alone comes before what `applied` adds.
 */
export function interleave(live: readonly string[], applied: readonly string[]): readonly string[] {
  const inApplied = new Set(applied)
  const result = new Set<string>()
  let next = 0
  for (const key of live) {
    // Up to a key that both have, the applied list goes first; it may name that key much earlier or later.
    while (inApplied.has(key) && !result.has(key)) {
      result.add(applied[next] as string)
      next += 1
    }
    result.add(key)
  }
  for (const key of applied) result.add(key)
  return [...result]
}
