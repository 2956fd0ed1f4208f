// How are several failures told as one? As Kubernetes does: one alone is itself, several stand in brackets.

export function aggregate(messages: readonly string[]): string {
  const distinct = [...new Set(messages)]
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`
}
