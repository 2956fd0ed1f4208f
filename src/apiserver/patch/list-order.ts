// In which order do merged lists come out? Two rules: strategic merge's $setElementOrder, and server-side apply's
// "the applied order wins, items of others keep their place".
import { identityText, isMap, type Json, own } from './json.ts'

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
  const identity = (item: Json): string =>
    identityText(mergeKey !== undefined && isMap(item) ? (own(item, mergeKey) ?? null) : item)
  const inOrder = firstPlaces(order.map(identity))
  const inServer = firstPlaces(server.map(identity))
  const items = merged.map((item) => {
    const name = identity(item)
    return { item, order: inOrder.get(name), place: inServer.get(name) }
  })
  const named = items
    .filter((each) => each.order !== undefined)
    .toSorted((left, right) => (left.order ?? 0) - (right.order ?? 0))
  const result: Json[] = []
  let next = 0
  for (const { item, order: wanted, place } of items) {
    if (wanted !== undefined) continue
    for (let candidate = named[next]; candidate !== undefined; candidate = named[++next]) {
      if (place !== undefined && candidate.place !== undefined && candidate.place > place) break
      result.push(candidate.item)
    }
    result.push(item)
  }
  return [...result, ...named.slice(next).map(({ item }) => item)]
}

function firstPlaces(names: readonly string[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (const [place, name] of names.entries()) if (!places.has(name)) places.set(name, place)
  return places
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
