// Small questions about JSON values that every patch asks: is it a map, are two equal, which key is dangerous?
import { isJsonObject } from '../../api/json.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonMap
export interface JsonMap {
  readonly [key: string]: Json
}
export type MutableMap = { [key: string]: Json }

export function isMap(value: unknown): value is JsonMap {
  return isJsonObject(value)
}

export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value)
}

export function jsonEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (isList(left)) {
    if (!isList(right) || left.length !== right.length) return false
    return left.every((item, index) => jsonEqual(item, right[index]))
  }
  if (!isMap(left) || !isMap(right)) return false
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  return keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]))
}

/** Reads an own property only: `constructor` and friends are data like any other key. */
export function own(map: JsonMap, key: string): Json | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined
}

/** Sets a property as data: `__proto__` must not become the map's prototype. */
export function put(map: MutableMap, key: string, value: Json): void {
  if (key === '__proto__')
    Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
  else map[key] = value
}

export function copyMap(map: JsonMap): MutableMap {
  const copy: MutableMap = {}
  for (const key of Object.keys(map)) put(copy, key, map[key] as Json)
  return copy
}

/** The same text for equal values and for no others: to find a value among many at once. */
export function identityText(value: Json): string {
  if (isList(value)) return `[${value.map(identityText).join(',')}]`
  if (!isMap(value)) return JSON.stringify(value)
  const keys = Object.keys(value).toSorted()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${identityText(value[key] as Json)}`).join(',')}}`
}

/** Fields and items, at every depth. */
export function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  for (const child of Object.values(value)) count += 1 + countValues(child)
  return count
}
