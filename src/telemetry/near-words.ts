// Which known words did somebody mean who wrote an unknown one? Those that differ in at most two letters, nearest first.

export function nearWords(word: string, known: readonly string[]): readonly string[] {
  return known
    .map((name) => ({ name, far: distance(name.toLowerCase(), word.toLowerCase()) }))
    .filter(({ far }) => far <= 2)
    .toSorted((a, b) => a.far - b.far)
    .map(({ name }) => name)
}

/** How many letters must be added, removed or changed (Levenshtein). */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
