// Whom does this process trust with its files, and what does Linux say about a path? bin/code-cache.mjs loads this file before
// all others: it imports next to nothing.
import { lstatSync, readFileSync, readlinkSync } from 'node:fs'
import type { Stats } from 'node:fs'
import type { FileKind } from '../host.ts'
import type { Distrust, PathEntry } from '../trusted-path.ts'
import { judgePath } from '../trusted-path.ts'

/** Root, we, and who called sudo: whoever may become us can change our files anyway. */
export function trustedUsers(env: Readonly<Partial<Record<string, string>>> = process.env): readonly number[] {
  const own = process.geteuid?.() ?? 0
  const caller = own === 0 && /^\d+$/.test(env['SUDO_UID'] ?? '') ? [Number(env['SUDO_UID'])] : []
  return [...new Set([0, own, ...caller, ...outsideUser()])]
}

/** Inside a user namespace the machine's own root is shown as nobody. */
function outsideUser(): readonly number[] {
  const nobody = 65_534
  try {
    const ranges = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n')
    const isMapped = ranges.some((line) => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
      return nobody >= first && nobody < first + count
    })
    return isMapped ? [] : [nobody]
  } catch {
    return []
  }
}

/** Looks at the path itself and everything on its way; a path that is not there is not distrusted. */
export function distrustOf(path: string, trusted: readonly number[] = trustedUsers()): Distrust | undefined {
  const walk = judgePath(path, trusted)
  let step = walk.next()
  while (step.done !== true) step = walk.next(lookAt(step.value))
  return step.value
}

function lookAt(path: string): PathEntry | undefined {
  try {
    const found = lstatSync(path)
    const kind = kindOf(found)
    const target = kind === 'symlink' ? { target: readlinkSync(path) } : {}
    return { kind, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid, ...target }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** As far as the rules tell them apart. */
function kindOf(found: Stats): FileKind {
  if (found.isSymbolicLink()) return 'symlink'
  if (found.isDirectory()) return 'directory'
  return found.isSocket() ? 'socket' : 'file'
}
