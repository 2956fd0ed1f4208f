// How does an object lose members? By a copy that never had them: deleting, and patterns with a rest, leave objects
// that V8 keeps as dictionaries, which are larger and slower for everybody who reads them later.

type Loose = Record<string, unknown>

/** The object itself when it has none of them. */
export function omit<T extends object>(object: T, names: readonly string[]): T {
  if (!names.some((name) => name in object)) return object
  const kept: Loose = {}
  for (const name of Object.keys(object)) if (!names.includes(name)) kept[name] = (object as Loose)[name]
  return kept as T // the caller knows which members may be absent
}
