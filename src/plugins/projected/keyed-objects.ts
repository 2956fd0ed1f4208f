// Which files does a ConfigMap or a Secret become? All its keys, or the keys its items name (CONF-6).
// Reading the objects is here too: a missing optional object is an empty one.

import { Buffer } from 'node:buffer'
import type { ConfigMap, KeyToPath, Secret } from '../../api/generated/types.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Payload, PayloadFile } from '../../host/atomic-files.ts'
import { refused } from '../../volume/effect.ts'
import type { SourceObject } from '../../volume/plugin.ts'
import { toVolumeError } from '../shared/errors.ts'
import type { Reader } from './kept-objects.ts'

interface KeyedSource {
  readonly name: string
  readonly items?: readonly KeyToPath[] | undefined
  readonly optional?: boolean | undefined
}

export interface FetchRequest {
  readonly source: KeyedSource
  readonly namespace: string
  readonly defaultMode: number
}

export async function configMapPayload(reader: Reader, request: FetchRequest, signal: AbortSignal): Promise<Payload> {
  const { source, namespace } = request
  const found = await optional(source, 'configmap', () =>
    reader.get('ConfigMap', { namespace, name: source.name }, signal),
  )
  return pick(bytesOfConfigMap(found), request, (key) => `configmap references non-existent config key: ${key}`)
}

export async function secretPayload(reader: Reader, request: FetchRequest, signal: AbortSignal): Promise<Payload> {
  const { source, namespace } = request
  const found = await optional(source, 'secret', () => reader.get('Secret', { namespace, name: source.name }, signal))
  return pick(bytesOfSecret(found), request, (key) => `references non-existent secret key: ${key}`)
}

/** The object of this name as a list; empty if the source has no name. */
export function objectsNamed(kind: SourceObject['kind'], name: string | undefined): readonly SourceObject[] {
  return name ? [{ kind, name }] : []
}

async function optional<T>(source: KeyedSource, kind: string, fetch: () => Promise<T>): Promise<T | undefined> {
  try {
    return await fetch()
  } catch (error) {
    if (!isNotFound(error)) throw toVolumeError(error)
    if (source.optional === true) return undefined
    throw refused('ObjectMissing', `${kind} "${source.name}" not found`, 'untried', ['notFound'])
  }
}

function bytesOfConfigMap(object: ConfigMap | undefined): ReadonlyMap<string, Uint8Array> {
  const result = new Map<string, Uint8Array>()
  for (const [key, text] of Object.entries(object?.data ?? {})) result.set(key, Buffer.from(text))
  for (const [key, text] of Object.entries(object?.binaryData ?? {})) result.set(key, Buffer.from(text, 'base64'))
  return result
}

function bytesOfSecret(object: Secret | undefined): ReadonlyMap<string, Uint8Array> {
  return new Map(Object.entries(object?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, 'base64')]))
}

function pick(data: ReadonlyMap<string, Uint8Array>, request: FetchRequest, missing: (key: string) => string): Payload {
  const { source, defaultMode } = request
  const payload = new Map<string, PayloadFile>()
  if (source.items === undefined || source.items.length === 0) {
    for (const [key, bytes] of data) payload.set(key, { bytes, mode: defaultMode })
    return payload
  }
  for (const { key, path, mode } of source.items) {
    const bytes = data.get(key)
    if (bytes !== undefined) payload.set(path, { bytes, mode: mode ?? defaultMode })
    else if (source.optional !== true) throw refused('KeyMissing', missing(key), 'untried', ['notFound'])
  }
  return payload
}
