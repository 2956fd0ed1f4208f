// What lies in the data directory, and may we use it? Version, lock and identity are checked before anything is touched.
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UsageError } from './config.ts'
import type { DirectoryIdentity, DirectoryOptions } from './directory-identity.ts'
import { openDirectoryIdentity } from './directory-identity.ts'
import { otherDirectory } from './identity.ts'
import { requireOutsideRoots } from './outer-root.ts'
import { noteHolder, takeLock } from './directory-lock.ts'
import { readIfThere, writePrivate } from './private-files.ts'
import { requireTrustedPath } from './trusted.ts'

/** Raised when the layout changes in a way that an older program cannot read. */
const layoutVersion = 1

export interface DataDirectory extends Disposable {
  readonly path: string
  readonly storeFile: string
  readonly kubeconfigFile: string
  /** Read when it is asked for: a server on etcd may have taken the keys of its cluster meanwhile. */
  adminToken(): string
  /** Signs the tokens of service accounts. */
  signingKey(): Buffer
  /** Whose store may be used here. */
  readonly identity: DirectoryIdentity
  file(...names: string[]): string
}

export function openDataDirectory(path: string, options: DirectoryOptions): DataDirectory {
  requireOutsideRoots(`the data directory ${path}`, path, otherDirectory)
  makeDirectory(path)
  checkVersion(path)
  using stack = new DisposableStack()
  const lock = takeLock(join(path, 'lock'))
  if (lock.kind === 'held') stack.defer(lock.release)
  const identity = openDirectoryIdentity(path, options, lock.kind === 'taken' ? lock.holder : undefined)
  const file = (...names: string[]) => join(path, ...names)
  const directory = {
    path,
    identity,
    file,
    storeFile: file('store.db'),
    kubeconfigFile: file('kubeconfig'),
    adminToken: () => ensureTokens(path).adminToken,
    signingKey: () => ensureTokens(path).signingKey,
  }
  // Made before the store: a start that is interrupted leaves a directory that knows itself.
  ensureTokens(path)
  const kept = stack.move()
  return { ...directory, [Symbol.dispose]: () => kept.dispose() }
}

/** The administrator's token and the key that signs others; made where they are missing. */
export function ensureTokens(path: string): { readonly adminToken: string; readonly signingKey: Buffer } {
  const keep = (name: string, make: () => string) =>
    readIfThere(join(path, name)) ?? writePrivate(join(path, name), make())
  return {
    adminToken: keep('admin.token', () => randomBytes(24).toString('base64url')).trim(),
    signingKey: Buffer.from(
      keep('token.key', () => randomBytes(48).toString('base64')),
      'base64',
    ),
  }
}

function makeDirectory(path: string): void {
  try {
    makeAll(path)
    if (!statSync(path).isDirectory()) throw new UsageError(`the data directory ${path} is not a directory`)
    requireTrustedPath(path, `the data directory ${path}`)
    requireTrustedPath(join(path, 'store.db'), `the store in ${path}`)
    // Node roots inside must be reachable by pods that run as other users; secrets in it are 0600 each.
    chmodSync(path, 0o711)
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new UsageError(`the data directory ${path} is not a directory`)
    throw new UsageError(`the data directory ${path} cannot be used: ${code}`, otherDirectory)
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
  return noteHolder(join(path, 'lock'))
}
