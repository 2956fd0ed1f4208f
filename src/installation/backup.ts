// How is everything the API knows kept elsewhere, and brought back? One file of JSON lines: a header, the keys of the
// data directory, every object, and a last line with count and hash, so that half a backup is never taken for a whole.
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { kindByType, kinds } from '../api/kinds.ts'
import type { KindInfo, KindName } from '../api/kinds.ts'
import { refOf } from '../api/meta.ts'
import type { KubeObject } from '../api/meta.ts'
import { createStoredObjects, prefixOf, storeKey } from '../apiserver/objects/stored-objects.ts'
import type { Client } from '../client/client.ts'
import { openSqliteStore } from '../store/sqlite-store.ts'
import { isStoreError } from '../store/store.ts'
import { epochOf, inEpoch } from './cluster-mark.ts'
import { UsageError } from './config.ts'
import { lockHolder } from './data-directory.ts'
import { nextEpoch } from './identity.ts'
import { readIfThere, writePrivate } from './private-files.ts'
import { packageVersion } from './version.ts'
import type { SavedImage } from './volume-data.ts'

const format = 1
/** What makes old tokens and kubeconfigs good again. */
const keyFiles = ['admin.token', 'token.key', 'ca.crt', 'ca.key', 'layout-version']

export interface Backup {
  readonly at: string
  readonly version: string
  /** `store`: one moment, the server was stopped. `api`: kind after kind from a running server. */
  readonly from: 'store' | 'api'
  readonly files: Readonly<Record<string, string>>
  readonly objects: readonly KubeObject[]
  /** Data of volumes, in archives beside the backup. Absent: it holds objects only. */
  readonly images?: readonly SavedImage[]
}

/** Everything of a stopped server's data directory. */
export async function readDataDirectory(directory: string, at: string): Promise<Backup> {
  const path = join(directory, 'store.db')
  if (!existsSync(path)) throw new UsageError(`there is no store in ${directory}`, 'name the directory with --data-dir')
  try {
    await using store = openSqliteStore({ path })
    const objects: KubeObject[] = []
    const stored = createStoredObjects()
    for (const info of storedKinds()) {
      const { entries } = await store.list(prefixOf(info, undefined), {})
      for (const entry of entries) objects.push(stored.decode(info, entry))
    }
    return { at, version: packageVersion, from: 'store', files: readKeys(directory), objects }
  } catch (error) {
    if (isStoreError(error, 'unavailable')) throw new UsageError(error.message)
    throw error
  }
}

/** Everything a running server shows. */
export async function readServer(client: Client, directory: string | undefined, at: string): Promise<Backup> {
  const objects: KubeObject[] = []
  for (const { name } of storedKinds()) {
    for (let next: string | undefined = ''; next !== undefined;) {
      const page = await listPage(client, name, next)
      objects.push(...page.items)
      next = page.continue
    }
  }
  const files = directory === undefined ? {} : readKeys(directory)
  return { at, version: packageVersion, from: 'api', files, objects }
}

function listPage(client: Client, name: KindName, next: string) {
  return client.list(name, { limit: 500, ...(next === '' ? {} : { continue: next }) })
}

/** Mode 0600; an existing file is never replaced; the name appears only when everything is on disk. */
export function writeBackup(path: string, backup: Backup): void {
  if (existsSync(path)) throw new UsageError(`${path} exists already`, 'choose another name')
  const partial = `${path}.partial`
  rmSync(partial, { force: true })
  const hash = createHash('sha256')
  const file = openSync(partial, 'wx', 0o600)
  const line = (value: unknown) => {
    const text = `${JSON.stringify(value)}\n`
    hash.update(text)
    writeSync(file, text)
  }
  try {
    const { at, version, from } = backup
    line({ hawserBackup: format, at, version, from })
    for (const [name, content] of Object.entries(backup.files)) line({ file: name, content })
    if (backup.images) line({ images: backup.images })
    for (const object of backup.objects) line({ object })
    writeSync(file, `${JSON.stringify({ objects: backup.objects.length, sha256: hash.digest('hex') })}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(partial, path)
}

export function readBackup(path: string): Backup {
  const text = readIfThere(path)
  if (text === undefined) throw new UsageError(`there is no file ${path}`)
  const end = text.lastIndexOf('\n', text.length - 2) + 1
  const header = parseLine(text.slice(0, Math.max(text.indexOf('\n'), 0))) as Partial<Backup> & {
    hawserBackup?: number
  }
  if (header.hawserBackup === undefined) throw new UsageError(`${path} is no backup of Hawser`)
  if (header.hawserBackup > format) throw new UsageError(`${path} was written by a newer Hawser (${header.version})`)
  const last = parseLine(text.slice(end)) as { objects?: number; sha256?: string }
  const sha256 = createHash('sha256').update(text.slice(0, end)).digest('hex')
  if (last.sha256 !== sha256) throw new UsageError(`${path} is damaged or was not written to its end`)
  const lines = text.slice(0, end).trimEnd().split('\n').slice(1).map(parseLine) as {
    readonly file?: string
    readonly content?: string
    readonly object?: KubeObject
    readonly images?: readonly SavedImage[]
  }[]
  const images = lines.find((line) => line.images !== undefined)?.images
  return {
    at: header.at ?? '',
    version: header.version ?? '',
    from: header.from ?? 'api',
    files: Object.fromEntries(lines.flatMap(({ file, content = '' }) => (file === undefined ? [] : [[file, content]]))),
    objects: lines.flatMap(({ object }) => (object === undefined ? [] : [object])),
    ...(images && { images }),
  }
}

/** Only into a directory that is empty or does not exist; it appears whole or not at all. */
export async function restoreInto(
  directory: string,
  backup: Backup,
  restoreData: (partial: string) => Promise<void> = async () => {},
): Promise<void> {
  requireEmpty(directory)
  const partial = `${directory}.restoring`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true, mode: 0o711 })
  try {
    for (const [name, content] of Object.entries(backup.files)) {
      if (!keyFiles.includes(name)) throw new UsageError(`the backup holds an unknown file "${name}"`)
      writePrivate(join(partial, name), content)
    }
    writePrivate(join(partial, 'store.db'), '')
    // Nodes have seen a newer store: the restored one is accepted as a new epoch of the same cluster.
    const epoch = nextEpoch(Date.now(), epochOf(backup.objects))
    const objects = backup.objects.map((object) => inEpoch(object, epoch))
    await writeObjects(join(partial, 'store.db'), objects)
    await restoreData(partial)
    mkdirSync(dirname(directory), { recursive: true })
    renameSync(partial, directory)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw error
  }
}

async function writeObjects(path: string, objects: readonly KubeObject[]): Promise<void> {
  await using store = openSqliteStore({ path })
  const stored = createStoredObjects()
  await Promise.all(
    objects.map((object) => {
      const info = infoOf(object)
      return store.create(storeKey(info, refOf(object)), stored.encode(info, object))
    }),
  )
}

function infoOf(object: KubeObject): KindInfo {
  const { apiVersion = '', kind = '' } = object as { apiVersion?: string; kind?: string }
  const info = kindByType(apiVersion, kind)
  if (!info) throw new UsageError(`the backup holds a ${kind} of ${apiVersion}, which this version does not know`)
  return info
}

function requireEmpty(directory: string): void {
  if (!existsSync(directory)) return
  const holder = lockHolder(directory)
  if (holder !== undefined)
    throw new UsageError(
      `${directory} is in use by process ${holder}; restore writes only into a new directory`,
      'choose a directory that does not exist yet: --data-dir NEWDIR',
    )
  if (readdirSync(directory).length > 0)
    throw new UsageError(`${directory} is not empty: nothing is ever overwritten`, 'restore --data-dir NEWDIR')
}

function readKeys(directory: string): Record<string, string> {
  return Object.fromEntries(
    keyFiles.flatMap((name) => {
      const path = join(directory, name)
      return existsSync(path) ? [[name, readFileSync(path, 'utf8')]] : []
    }),
  )
}

/** Every kind that is stored; events.k8s.io is another view of the same events. */
export function storedKinds(): readonly KindInfo[] {
  return (Object.values(kinds) as readonly KindInfo[]).filter(({ view }) => view === undefined)
}

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
