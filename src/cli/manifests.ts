// Which objects does a file, a directory or standard input hold? YAML (several documents), JSON, or a List of either.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KindName } from '../api/kinds.ts'
import { kindByType } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { UsageError } from '../installation/config.ts'

export interface Manifest {
  readonly kind: KindName
  readonly object: KubeObject
  readonly from: string
}

export function readManifests(paths: readonly string[]): Manifest[] {
  if (paths.length === 0) throw new UsageError('name a file with -f', 'hawser apply -f claim.yaml')
  return paths.flatMap((path) => files(path).flatMap((file) => parseManifests(read(file), file)))
}

function parseManifests(text: string, from: string): Manifest[] {
  const documents = parseAllDocuments(text, { version: '1.1' })
  if (!Array.isArray(documents)) return []
  return documents.flatMap((document) => {
    const [problem] = document.errors
    if (problem) throw new UsageError(`${from}: ${problem.message.split('\n')[0]}`)
    return objectsIn(document.toJS() as unknown, from)
  })
}

function objectsIn(value: unknown, from: string): Manifest[] {
  if (value === null || value === undefined) return []
  const { apiVersion, kind, items } = value as { apiVersion?: unknown; kind?: unknown; items?: unknown }
  if (typeof apiVersion !== 'string' || typeof kind !== 'string')
    throw new UsageError(`${from}: an object has no apiVersion or no kind`)
  if (kind === 'List' && Array.isArray(items)) return items.flatMap((item) => objectsIn(item, from))
  const info = kindByType(apiVersion, kind)
  if (!info) throw new UsageError(`${from}: there is no kind ${kind} in ${apiVersion} here`)
  return [{ kind: info.name, object: value as KubeObject, from }]
}

function files(path: string): string[] {
  if (path === '-') return ['-']
  try {
    if (!statSync(path).isDirectory()) return [path]
  } catch {
    throw new UsageError(`${path}: no such file or directory`)
  }
  return readdirSync(path)
    .filter((name) => /\.(ya?ml|json)$/.test(name))
    .toSorted()
    .map((name) => join(path, name))
}

function read(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8')
}
