// What does something that was thrown say? Anything can be thrown; an Error says its message.

export function errorText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
