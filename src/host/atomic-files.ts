// How do many files change at once? A new timestamped directory, then one rename of the link `..data` (ATOMIC-1 … ATOMIC-6).
// Readers see all old or all new. Everything is written by descriptor: a link planted in the volume is never followed.

import { join } from 'node:path/posix'
import { cleanPath } from './clean-path.ts'
import type { Files, FoundEntry } from './host.ts'
import { HostError, hasCode } from './host-error.ts'

export interface PayloadFile {
  readonly bytes: Uint8Array
  readonly mode: number
  readonly uid?: number
}
export type Payload = ReadonlyMap<string, PayloadFile>

export interface AtomicWriteDeps {
  readonly files: Files
  /** Milliseconds since 1970, for the directory's name. */
  readonly now: () => number
  /** A whole number below the limit, for the directory's name. */
  readonly random: (limit: number) => number
}

export interface AtomicWriteRequest {
  /** Must exist; the caller writes one volume at a time. */
  readonly directory: string
  readonly payload: Payload
  /** Runs after the new files are written and before they are shown: the fsGroup pass. */
  readonly applyPermissions?: (signal: AbortSignal) => Promise<unknown>
}

const dataLink = '..data'
const newDataLink = '..data_tmp'
const timestampPattern = /^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$/

/** Answers whether new contents were shown. */
export async function writeAtomically(
  deps: AtomicWriteDeps,
  request: AtomicWriteRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const { files } = deps
  const { directory } = request
  const payload = cleanPayload(request.payload)
  const old = await currentDirectory(files, directory, signal)
  const found = old === undefined ? undefined : await readOld(files, join(directory, old), signal)
  const needed = found === undefined || hasStale(found, payload) || needsWrite(found, payload)
  if (needed) {
    const name = await writeNew(deps, directory, payload, request.applyPermissions, signal)
    await show(files, directory, name, signal)
  }
  await makeUserLinks(files, directory, payload, signal)
  await removeStaleLinks(files, directory, payload, signal)
  if (needed) await sweep(files, directory, signal)
  return needed
}

/** ATOMIC-2: one bad path rejects the whole; clean paths come out, later duplicates win. */
export function cleanPayload(payload: Payload): Payload {
  const result = new Map<string, PayloadFile>()
  for (const [path, file] of payload) {
    const problem = pathProblem(path)
    if (problem !== undefined) throw new HostError('EINVAL', `invalid path "${path}": ${problem}`, { path })
    result.set(cleanPath(path), file)
  }
  return result
}

function pathProblem(path: string): string | undefined {
  const parts = path.split('/')
  if (cleanPath(path) === '.') return 'it is empty'
  if (path.startsWith('/')) return 'must not be absolute'
  if (Buffer.byteLength(path) > 4096) return 'longer than 4096 bytes'
  if (parts.includes('..')) return "must not contain '..'"
  if (parts.some((part) => Buffer.byteLength(part) > 255)) return 'a part is longer than 255 bytes'
  if (cleanPath(path).startsWith('..')) return "must not start with '..'"
  return path.includes('\0') ? 'is not the name of a file' : undefined
}

/** Where `..data` leads now. Anything that is not our own kind of name is not trusted: it is treated as a first write. */
async function currentDirectory(files: Files, directory: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const target = await files.readlink(join(directory, dataLink), signal)
    return timestampPattern.test(target) ? target : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    if (!hasCode(error, 'EINVAL')) throw error
    throw new HostError('EEXIST', `${join(directory, dataLink)} is not a symbolic link`, {
      path: directory,
      cause: error,
    })
  }
}

/** Undefined where something lies there that we did not write: it is replaced. */
async function readOld(files: Files, path: string, signal: AbortSignal): Promise<readonly FoundEntry[] | undefined> {
  try {
    return await files.readTree(path, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EFBIG', 'EXDEV')) return undefined
    throw error
  }
}

function hasStale(found: readonly FoundEntry[], payload: Payload): boolean {
  return found.some(({ path }) => !payload.has(path))
}

function needsWrite(found: readonly FoundEntry[], payload: Payload): boolean {
  const old = new Map(found.map((entry) => [entry.path, entry]))
  for (const [path, file] of payload) {
    const entry = old.get(path)
    if (entry?.kind !== 'file' || Buffer.compare(entry.bytes, file.bytes) !== 0) return true
  }
  return false
}

async function writeNew(
  deps: AtomicWriteDeps,
  directory: string,
  payload: Payload,
  applyPermissions: AtomicWriteRequest['applyPermissions'],
  signal: AbortSignal,
): Promise<string> {
  const { files } = deps
  const name = await makeTimestampDirectory(deps, directory, signal)
  try {
    const entries = [...payload].map(([path, file]) => ({ path, ...file }))
    await files.writeTree(join(directory, name), entries, signal)
    await applyPermissions?.(signal)
  } catch (error) {
    // The old contents stay as they are; only what nobody has seen yet is taken back (WART-4).
    await files.removeTree(join(directory, name), new AbortController().signal).catch(() => undefined)
    throw error
  }
  return name
}

async function makeTimestampDirectory(
  { files, now, random }: AtomicWriteDeps,
  directory: string,
  signal: AbortSignal,
): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const name = `..${timestampName(now())}.${random(4_000_000_000)}`
    try {
      await files.mkdir(join(directory, name), 0o755, signal)
      return name
    } catch (error) {
      if (!hasCode(error, 'EEXIST') || attempt >= 100) throw error
    }
  }
}

function timestampName(ms: number): string {
  const date = new Date(ms)
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = `${date.getUTCFullYear()}_${two(date.getUTCMonth() + 1)}_${two(date.getUTCDate())}`
  return `${day}_${two(date.getUTCHours())}_${two(date.getUTCMinutes())}_${two(date.getUTCSeconds())}`
}

/** The atomic switch. A `..data_tmp` left by a crash would refuse every later write: it goes first (WART-4). */
async function show(files: Files, directory: string, name: string, signal: AbortSignal): Promise<void> {
  const temporary = join(directory, newDataLink)
  try {
    await files.remove(temporary, signal)
    await files.symlink(name, temporary, signal)
    await files.rename(temporary, join(directory, dataLink), signal)
  } catch (error) {
    const { signal: own } = new AbortController()
    await files.remove(temporary, own).catch(() => undefined)
    await files.removeTree(join(directory, name), own).catch(() => undefined)
    throw error
  }
}

async function makeUserLinks(files: Files, directory: string, payload: Payload, signal: AbortSignal): Promise<void> {
  const present = new Set(await files.readDir(directory, signal))
  for (const path of payload.keys()) {
    const first = path.split('/')[0] ?? path
    if (present.has(first)) continue
    present.add(first)
    await files.symlink(join(dataLink, first), join(directory, first), signal)
  }
}

/** Links of files that are gone. What is not a link of ours (directories for nested mounts) stays. */
async function removeStaleLinks(files: Files, directory: string, payload: Payload, signal: AbortSignal): Promise<void> {
  const wanted = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path))
  let last: unknown
  for (const name of await files.readDir(directory, signal)) {
    if (name.startsWith('..') || wanted.has(name)) continue
    try {
      const target = await files.readlink(join(directory, name), signal)
      if (target === join(dataLink, name)) await files.unlink(join(directory, name), signal)
    } catch (error) {
      if (!hasCode(error, 'EINVAL', 'ENOENT')) last = error
    }
  }
  if (last !== undefined) throw last
}

/** Removes every timestamped directory but the current one: the one just replaced, and those of crashed writes. */
async function sweep(files: Files, directory: string, signal: AbortSignal): Promise<void> {
  const current = await currentDirectory(files, directory, signal)
  for (const name of await files.readDir(directory, signal)) {
    if (name !== current && timestampPattern.test(name)) await files.removeTree(join(directory, name), signal)
  }
}
