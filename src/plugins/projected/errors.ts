// How do several error messages become one? As in Kubernetes: one stays as it is, several are listed in brackets.

export function aggregate(messages: readonly string[]): string {
  const distinct = [...new Set(messages)]
  return distinct.length === 1 ? (distinct[0] ?? '') : `[${distinct.join(', ')}]`
}
