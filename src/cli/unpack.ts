// Where do the files of an archive from a pod go? Into one directory and nowhere else: whoever sent it may be hostile, and whoever
// receives it may be root.
// 1. Only files, directories and links are made: no devices, no pipes, no set-user bits, no owners.
// 2. No path leaves the directory, by its name or over a link, whether the archive brought that link or it was here before.
// 3. A name that cannot be written here as it was sent is left out and told, not changed.
// 4. A link is made only if it points into the directory, however other links of the archive lie.
import { link, lstat, mkdir, open, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Failed } from './errors.ts'
import type { TarEntry } from './tar.ts'
import { readTar, TarError } from './tar.ts'

/** `note` hears of what is left out. */
export async function unpack(
  archive: AsyncIterable<Uint8Array>,
  directory: string,
  note: (text: string) => void,
): Promise<void> {
  const root = await realpath(directory)
  for await (const entry of readTar(archive)) {
    const why = await place(root, entry).catch((error: Error) => {
      if (error instanceof Failed || error instanceof TarError) throw error
      throw new Failed(`${JSON.stringify(entry.path)} cannot be made here: ${error.message}`)
    })
    if (why !== undefined) note(`left out ${JSON.stringify(entry.path)}: ${why}`)
  }
}

/** Why it was left out, if it was. */
async function place(root: string, entry: TarEntry): Promise<string | undefined> {
  // Two names that differ only in such bytes would become one file here.
  if (`${entry.path}${entry.target}`.includes('\ufffd')) return 'its name is not valid UTF-8'
  const names = namesOf(entry.path)
  if (!names) return 'its path leads out of the directory'
  const name = names.at(-1)
  if (name === undefined) return undefined // the directory itself
  const parent = await enter(root, names.slice(0, -1))
  const path = join(parent, name)
  switch (entry.kind) {
    case 'directory':
      await makeDirectory(path, entry.mode)
      return undefined
    case 'file':
      await makeRoom(path)
      return await writeFile(path, entry)
    case 'symlink':
      if (!staysInside(names.length - 1, entry.target)) return `it is a link to ${JSON.stringify(entry.target)}`
      await makeRoom(path)
      await symlink(entry.target, path)
      return undefined
    case 'hardLink': {
      const other = namesOf(entry.target)
      const source = other && (await findFile(root, other))
      if (source === undefined) return `it is a link to ${JSON.stringify(entry.target)}, which is not here`
      if (source === path) return undefined
      await makeRoom(path)
      await link(source, path)
      return undefined
    }
    case 'other':
      return 'it is neither a file nor a directory nor a link'
    default:
      return entry.kind satisfies never
  }
}

/** Undefined when it is absolute, or climbs. */
function namesOf(path: string): readonly string[] | undefined {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  return path.startsWith('/') || names.includes('..') || path.includes('\0') ? undefined : names
}

/**
 * A target may climb first, no further than its link is deep, and then only descend. Directories on the way up are real ones, and
 * a link on the way down obeys the same rule; were it allowed to climb after a descent, it could climb from wherever a link led.
 */
function staysInside(depth: number, target: string): boolean {
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const climbs = names.findIndex((name) => name !== '..')
  const ups = climbs < 0 ? names.length : climbs
  return target !== '' && !target.startsWith('/') && ups <= depth && !names.slice(ups).includes('..')
}

/** The real directory of this name in the root, made if it is missing. */
async function enter(root: string, names: readonly string[]): Promise<string> {
  let path = root
  for (const name of names) {
    path = join(path, name)
    await makeDirectory(path, 0o777)
  }
  return path
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  const found = await look(path)
  if (found?.isDirectory()) return
  if (found) throw new Failed(`${path} is no directory here, but it is one in the pod`)
  // Ours to write in, or what comes into it could not.
  await mkdir(path, (mode & 0o777) | 0o700)
}

/** What was there goes, never what it points to. */
async function makeRoom(path: string): Promise<void> {
  const found = await look(path)
  if (found?.isDirectory()) throw new Failed(`${path} is a directory here, but none in the pod`)
  if (found) await rm(path)
}

async function findFile(root: string, names: readonly string[]): Promise<string | undefined> {
  for (let length = 1; length <= names.length; length++) {
    const path = join(root, ...names.slice(0, length))
    const found = await look(path)
    if (length === names.length) return found?.isFile() ? path : undefined
    if (!found?.isDirectory()) return undefined
  }
  return undefined
}

async function writeFile(path: string, { content, mode, modified }: TarEntry): Promise<undefined> {
  await using file = await open(path, 'wx', mode & 0o777)
  for await (const piece of content) await file.writeFile(piece)
  await file.utimes(modified, modified)
}

async function look(path: string) {
  return await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}
