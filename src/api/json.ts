// Is this JSON value an object, and what does a text say that should hold one?

export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An empty object in place of anything else. */
export function jsonObjectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

/** Undefined for a text that is not JSON, or not an object. */
export function parseJsonObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
