// How is a value from a client's body put into a sentence? Never by its own toString: a body may bring one along.

export function shown(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')
}
