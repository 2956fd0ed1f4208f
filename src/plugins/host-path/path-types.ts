// Is there what the pod's author expects at this path? The types of hostPath, each with what it may create (HOST-3).
// Links are followed: the path belongs to the administrator, not to the pod.

import type { FileKind, Files } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { refuse } from '../shared/errors.ts'

interface Expectation {
  readonly kind: FileKind
  /** As the sentence calls it. */
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

type CheckFiles = Pick<Files, 'stat' | 'mkdirAll' | 'writeFile'>

export async function checkPathType(files: CheckFiles, path: string, type: string, signal: AbortSignal): Promise<void> {
  if (path.split('/').includes('..')) throw refuse('InvalidPath', `invalid HostPath \`${path}\`: must not contain '..'`)
  if (type === '') return
  const expected = Object.hasOwn(expectations, type) ? expectations[type] : undefined
  if (expected === undefined) throw refuse('InvalidType', `${type} is an invalid volume type`)
  const found = await kindAt(files, path, signal)
  if (found === undefined) await createMissing(files, path, type, signal)
  if ((found ?? (await kindAt(files, path, signal))) === expected.kind) return
  throw refuse('WrongType', `hostPath type check failed: ${path} is not ${expected.words}`)
}

async function createMissing(files: CheckFiles, path: string, type: string, signal: AbortSignal): Promise<void> {
  if (type === 'DirectoryOrCreate') return files.mkdirAll(path, 0o755, signal)
  if (type !== 'FileOrCreate') return
  try {
    await files.writeFile(path, '', { mode: 0o644, exclusive: true }, signal)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    if (hasCode(error, 'ENOENT')) throw refuse('ParentMissing', `open ${path}: no such file or directory`)
    throw error
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
