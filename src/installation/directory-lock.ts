// Does another process use this directory? The kernel keeps the lock and frees it when its holder dies, however it dies; a
// note beside it names the holder for people and for older versions, which know only the note.
import { closeSync, constants, openSync, readFileSync, rmSync } from 'node:fs'
import { tryLock } from '../host/linux/libc.ts'
import { readIfThere, replaceFile } from './private-files.ts'

export type LockAttempt =
  | { readonly kind: 'held'; readonly release: () => void }
  | { readonly kind: 'taken'; readonly holder: string }

/** `file` is the note; the kernel's lock is on `file.held`. */
export function takeLock(file: string): LockAttempt {
  const descriptor = lockFile(`${file}.held`)
  if (descriptor === undefined) return { kind: 'taken', holder: noteHolder(file) ?? 'another process' }
  const holder = noteHolder(file)
  // An older version holds the note without the kernel's lock.
  if (holder !== undefined && holder !== String(process.pid)) {
    closeSync(descriptor)
    return { kind: 'taken', holder }
  }
  try {
    replaceFile(file, `${process.pid} ${startTime(String(process.pid))} ${bootId()}\n`)
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
  const release = () => {
    rmSync(file, { force: true })
    closeSync(descriptor)
  }
  return { kind: 'held', release }
}

/** The living process that the note names, by pid and start time; undefined when it is gone. */
export function noteHolder(file: string): string | undefined {
  const [pid = '', started = '', boot] = (readIfThere(file)?.trim() ?? '').split(' ')
  if (pid === '' || started === '' || (boot !== undefined && boot !== bootId())) return undefined
  return startTime(pid) === started ? pid : undefined
}

/** Opened for reading only: a file that is open for writing would keep its filesystem from being remounted read-only. */
function lockFile(path: string): number | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_CREAT, 0o600)
  if (tryLock(descriptor)) return descriptor
  closeSync(descriptor)
  return undefined
}

/** Clock ticks between boot and the start of a process; empty when there is no such process or it is a zombie. */
function startTime(pid: string): string {
  const stat = /^\d+$/.test(pid) ? readIfThere(`/proc/${pid}/stat`) : undefined
  const [state = '', ...fields] = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  return state === 'Z' || state === 'X' ? '' : (fields[18] ?? '')
}

/** Start times begin anew with each boot. */
function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}
