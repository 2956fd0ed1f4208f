// Which members does Kubernetes show even when nobody set them? A time that is no pointer in Go is written as null, and so
// is a reference's group. Clients that look for the member find it; everything else treats null as absent.

type Item = Readonly<Record<string, unknown>>

/** The items with null for each member that they lack; the list itself when nothing is missing. */
function withAbsent<T extends object>(items: readonly T[], members: readonly string[]): readonly T[] {
  return items.every((item) => isFilled(item, members)) ? items : items.map((item) => filled(item, members))
}

export function filled<T extends object>(item: T, members: readonly string[]): T {
  if (isFilled(item, members)) return item
  const absent = members.filter((name) => (item as Item)[name] === undefined)
  return { ...item, ...Object.fromEntries(absent.map((name) => [name, null])) }
}

function isFilled(item: object, members: readonly string[]): boolean {
  return members.every((name) => (item as Item)[name] !== undefined)
}

/** The object with null for the times that its conditions lack. */
export function withConditionTimes<T extends { readonly status?: { readonly conditions?: readonly object[] } }>(
  object: T,
  times: readonly string[],
): T {
  const { conditions } = object.status ?? {}
  if (conditions === undefined) return object
  const shown = withAbsent(conditions, times)
  return shown === conditions ? object : { ...object, status: { ...object.status, conditions: shown } }
}
