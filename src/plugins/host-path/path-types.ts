// Is there what the pod's author expects at this path? The types of hostPath, each with what it may create (HOST-3).
// Links are followed: the path belongs to the administrator, not to the pod.

import { dirname, resolve } from 'node:path/posix'
import type { FileKind, Files } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { refused } from '../../volume/effect.ts'

interface Expectation {
  readonly kind: FileKind
  /** What the error message calls it. */
  readonly words: string
}

const expectations: Readonly<Record<string, Expectation>> = {
  DirectoryOrCreate: { kind: 'directory', words: 'a directory' },
  Directory: { kind: 'directory', words: 'a directory' },
  FileOrCreate: { kind: 'file', words: 'a file' },
  File: { kind: 'file', words: 'a file' },
  Socket: { kind: 'socket', words: 'a socket file' },
  CharDevice: { kind: 'charDevice', words: 'a character device' },
  BlockDevice: { kind: 'blockDevice', words: 'a block device' },
}

type CheckFiles = Pick<Files, 'stat' | 'mkdirAll' | 'writeFile' | 'readlink' | 'realpath'>

export async function checkPathType(files: CheckFiles, path: string, type: string, signal: AbortSignal): Promise<void> {
  if (path.split('/').includes('..'))
    throw refused('InvalidPath', `invalid HostPath \`${path}\`: must not contain '..'`, 'none')
  if (type === '') return
  const expected = Object.hasOwn(expectations, type) ? expectations[type] : undefined
  if (expected === undefined) throw refused('InvalidType', `${type} is an invalid volume type`, 'none')
  const found = (await kindAt(files, path, signal)) ?? (await createMissing(files, path, type, signal))
  if (found === expected.kind) return
  throw refused('WrongType', `hostPath type check failed: ${path} is not ${expected.words}`, 'none')
}

/** Creates what is missing and answers its kind; undefined if this type creates nothing. */
async function createMissing(
  files: CheckFiles,
  path: string,
  type: string,
  signal: AbortSignal,
): Promise<FileKind | undefined> {
  if (type === 'DirectoryOrCreate') await files.mkdirAll(path, 0o755, signal)
  else if (type === 'FileOrCreate') await createFile(files, path, signal)
  else return undefined
  return kindAt(files, path, signal)
}

/** Another process may create it first. A dangling symbolic link is followed: the file it names is created. */
async function createFile(files: CheckFiles, path: string, signal: AbortSignal): Promise<void> {
  try {
    await files.writeFile(path, '', { mode: 0o644, exclusive: true }, signal)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw refused('ParentMissing', `open ${path}: no such file or directory`, 'none')
    if (hasCode(error, 'ENOTDIR')) throw refused('ParentMissing', `open ${path}: not a directory`, 'none')
    if (!hasCode(error, 'EEXIST')) throw error
    const target = await files.readlink(path, signal).catch(() => undefined)
    if (target === undefined || (await kindAt(files, path, signal)) !== undefined) return
    await createFile(files, resolve(await files.realpath(dirname(path), signal), target), signal)
  }
}

async function kindAt(files: CheckFiles, path: string, signal: AbortSignal): Promise<FileKind | undefined> {
  try {
    return (await files.stat(path, signal)).kind
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
