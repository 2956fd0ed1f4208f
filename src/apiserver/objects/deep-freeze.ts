// How does a value become one that nobody can change? Many hold the same object: whoever could change it would change it
// for all of them.

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (Array.isArray(value)) for (const member of value) deepFreeze(member)
  else for (const name of Object.keys(value)) deepFreeze((value as Readonly<Record<string, unknown>>)[name])
  return Object.freeze(value)
}
