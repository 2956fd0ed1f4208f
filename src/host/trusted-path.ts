// Can somebody else change what lies at a path? Code and settings are taken only from where nobody but root and we can write.
//
// 1. Every entry on the way, and the last one, belongs to root or to us. A link is one entry, its target is walked like the path.
// 2. A directory on the way is not writable by group or others, or it is sticky: then only owners rename what is in it.
// 3. The last entry is not writable by group or others at all. In a sticky directory others could still add files.
// 4. A user's own group counts as the user: many systems give each user a group of the same number and let it write.
//
// What is not there cannot be distrusted: whoever makes it asks again afterwards.
import { dirname, join } from 'node:path/posix'
import type { FileKind, Files } from './host.ts'
import { HostError } from './host-error.ts'

/** What was found at one path, without following a link. */
export interface PathEntry {
  readonly kind: FileKind
  readonly mode: number
  readonly uid: number
  readonly gid: number
  /** Where a link leads. */
  readonly target?: string
}

/** Why a path is not trusted: the entry on its way that somebody else can change. */
export interface Distrust {
  readonly path: string
  readonly uid: number
  readonly mode: number
  readonly problem: 'owner' | 'writable' | 'links'
}

const mostLinks = 40

/** Yields each path to look at and takes what was found there; returns what is wrong, or nothing. */
export function* judgePath(
  path: string,
  trusted: readonly number[],
): Generator<string, Distrust | undefined, PathEntry | undefined> {
  let at = '/'
  let names = namesOf(path)
  let links = 0
  const root = yield at
  const wrongRoot = root && judgeEntry(at, root, trusted, names.length === 0)
  if (wrongRoot) return wrongRoot
  while (names.length > 0) {
    const [name, ...rest] = names as [string, ...string[]]
    names = rest
    if (name === '..') {
      at = dirname(at)
      continue
    }
    const next = join(at, name)
    // Descriptors that whoever started us opened: /dev/stdin, /dev/fd/63.
    if (next === '/proc') return undefined
    const entry = yield next
    if (entry === undefined) return undefined
    const wrong = judgeEntry(next, entry, trusted, names.length === 0)
    if (wrong) return wrong
    if (entry.kind !== 'symlink') {
      at = next
      continue
    }
    const { target = '' } = entry
    if (++links > mostLinks) return { path: next, uid: entry.uid, mode: entry.mode, problem: 'links' }
    if (target.startsWith('/')) at = '/'
    names = [...namesOf(target), ...names]
  }
  return undefined
}

const namesOf = (path: string) => path.split('/').filter((name) => name !== '' && name !== '.')

function judgeEntry(
  path: string,
  { kind, mode, uid, gid }: PathEntry,
  trusted: readonly number[],
  isLast: boolean,
): Distrust | undefined {
  if (!trusted.includes(uid)) return { path, uid, mode, problem: 'owner' }
  // The mode of a link means nothing, and that of a socket says who may connect.
  const others = gid === uid && uid !== 0 ? 0o002 : 0o022
  if (kind === 'symlink' || kind === 'socket' || (mode & others) === 0) return undefined
  const isSticky = kind === 'directory' && (mode & 0o1000) !== 0
  return isSticky && !isLast ? undefined : { path, uid, mode, problem: 'writable' }
}

/** What a person reads: which path, who can change it, and the command that helps. */
export function explainDistrust(what: string, found: Distrust): { readonly sentence: string; readonly remedy: string } {
  const { path, uid, mode } = found
  const octal = mode.toString(8).padStart(4, '0')
  const sentence = `${what} is not used, for others could change it: ${path} belongs to user ${uid} and has mode ${octal}`
  return { sentence, remedy: remedyFor(found) }
}

function remedyFor({ path, mode, problem }: Distrust): string {
  const word = /^[\w./@%+:=-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
  if (problem === 'links') return 'name it by a path without links'
  if (problem === 'owner') return `look at what is there, then: chown --no-dereference root ${word}`
  if ((mode & 0o1000) !== 0) return `use a directory of its own: ${path} is for everybody's files`
  return `look at what is there, then: chmod go-w ${word}`
}

/** Throws a HostError (NOTTRUSTED) with both; `what` is for instance "the manifest /etc/x.yaml". */
export async function requireTrusted(
  files: Pick<Files, 'distrust'>,
  path: string,
  what: string,
  signal: AbortSignal,
): Promise<void> {
  const found = await files.distrust(path, signal)
  if (!found) return
  const { sentence, remedy } = explainDistrust(what, found)
  throw new HostError('NOTTRUSTED', `${sentence}; ${remedy}`, { path: found.path })
}
