// What do a data directory and a node root remember of whose they are? One small JSON file each, replaced whole.
import { parseJsonObject } from '../api/json.ts'
import type { ClusterMark, DirectoryRecord, Found, NodeRecord } from './identity.ts'
import { readIfThere, replaceFile } from './private-files.ts'

/** Raised when an older program could not read the record. */
const format = 1

export function readDirectoryRecord(file: string): Found<DirectoryRecord> {
  return read(file, ({ store, seen, in: place }) => {
    if (store === 'creating' || store === 'memory') return { store }
    const mark = parseMark(seen)
    return store === 'durable' && mark ? { store, seen: mark, ...(place === 'etcd' ? { in: place } : {}) } : undefined
  })
}

export function readNodeRecord(file: string): Found<NodeRecord> {
  return read(file, ({ node, seen }) => {
    if (typeof node !== 'string') return undefined
    if (seen === undefined) return { node }
    const mark = parseMark(seen)
    return mark ? { node, seen: mark } : undefined
  })
}

export function writeRecord(file: string, record: DirectoryRecord | NodeRecord): void {
  replaceFile(file, `${JSON.stringify({ format, ...record })}\n`)
}

function read<T>(file: string, parse: (fields: Record<string, unknown>) => T | undefined): Found<T> {
  const text = readIfThere(file)
  if (text === undefined) return { kind: 'none' }
  // Members are checked one by one.
  const fields = parseJsonObject(text)
  if (typeof fields?.['format'] !== 'number') return { kind: 'unreadable' }
  if (fields['format'] > format) return { kind: 'newer', format: fields['format'] }
  const record = parse(fields)
  return record === undefined ? { kind: 'unreadable' } : { kind: 'read', record }
}

function parseMark(value: unknown): ClusterMark | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { cluster, epoch, revision } = value as Record<string, unknown> // checked here
  if (typeof cluster !== 'string' || typeof epoch !== 'number' || typeof revision !== 'number') return undefined
  return { cluster, epoch, revision }
}
