// What lies in the data directory, and may we use it? Version and lock are checked before anything is touched.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UsageError } from './config.ts'

/** Raised when the layout changes in a way that an older program cannot read. */
const layoutVersion = 1

export interface DataDirectory extends Disposable {
  readonly path: string
  readonly storeFile: string
  readonly kubeconfigFile: string
  readonly adminToken: string
  /** For agents and controllers of this process group. */
  readonly signingKey: Buffer
  file(...names: string[]): string
  /** Reads a file, or makes it (mode 0600) and remembers it. */
  keep(name: string, make: () => string): string
}

export function openDataDirectory(path: string): DataDirectory {
  makeDirectory(path)
  checkVersion(path)
  const release = lock(path)
  const file = (...names: string[]) => join(path, ...names)
  const keep = (name: string, make: () => string) => readIfThere(file(name)) ?? writePrivate(file(name), make())
  return {
    path,
    file,
    keep,
    storeFile: file('store.db'),
    kubeconfigFile: file('kubeconfig'),
    adminToken: keep('admin.token', () => randomBytes(24).toString('base64url')).trim(),
    signingKey: Buffer.from(
      keep('token.key', () => randomBytes(48).toString('base64')),
      'base64',
    ),
    [Symbol.dispose]: release,
  }
}

/** Mode 0600 from the first byte on: the file never exists with wider rights. */
export function writePrivate(path: string, text: string): string {
  rmSync(path, { force: true })
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  return text
}

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function makeDirectory(path: string): void {
  try {
    makeAll(path)
    if (!statSync(path).isDirectory()) throw new UsageError(`the data directory ${path} is not a directory`)
    // Node roots inside must be reachable by pods that run as other users; secrets in it are 0600 each.
    chmodSync(path, 0o711)
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new UsageError(`the data directory ${path} is not a directory`)
    throw new UsageError(`the data directory ${path} cannot be used: ${code}`, 'choose another one with --data-dir DIR')
  }
}

/** Step by step: Node's own recursive mkdir never ends where the kernel says ENOENT although the parent exists (/proc). */
function makeAll(path: string): void {
  if (existsSync(path)) return
  makeAll(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

function checkVersion(path: string): void {
  const file = join(path, 'layout-version')
  const text = readIfThere(file)
  if (text === undefined) {
    writeFileSync(file, `${layoutVersion}\n`)
    return
  }
  const found = Number(text.trim())
  if (found > layoutVersion) {
    throw new UsageError(
      `the data directory ${path} was written by a newer Hawser (layout ${found}, this program knows ${layoutVersion})`,
      'start the newer version, or choose another directory with --data-dir DIR',
    )
  }
}

/** The process that holds the directory, by its pid; undefined when none does (a stale lock is none). */
export function lockHolder(path: string): string | undefined {
  const [pid = '', started = ''] = (readIfThere(join(path, 'lock'))?.trim() ?? '').split(' ')
  return pid !== '' && started !== '' && startTime(pid) === started ? pid : undefined
}

/** One process per directory. The lock names its process by pid and start time, so a stale one is recognised. */
function lock(path: string): () => void {
  const file = join(path, 'lock')
  const holder = lockHolder(path)
  if (holder !== undefined && holder !== String(process.pid)) {
    throw new UsageError(
      `the data directory ${path} is in use by process ${holder}`,
      `stop it (kill ${holder}) or choose another one with --data-dir DIR`,
    )
  }
  writeFileSync(file, `${process.pid} ${startTime(String(process.pid))}\n`)
  return () => rmSync(file, { force: true })
}

/** Clock ticks between boot and the start of a process; empty when there is none, or only what its parent has not yet taken. */
function startTime(pid: string): string {
  const stat = /^\d+$/.test(pid) ? readIfThere(`/proc/${pid}/stat`) : undefined
  const [state = '', ...fields] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  return state === 'Z' || state === 'X' ? '' : (fields[18] ?? '')
}
