// What does a move of the objects need of the data directory? That no server uses it, that its record fits, and that the record
// and the file of the objects change when the move is done. Keys and volumes stay where they are.
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../store/store.ts'
import { UsageError } from './config.ts'
import { openDirectoryIdentity } from './directory-identity.ts'
import { takeLock } from './directory-lock.ts'
import type { ClusterMark, DirectoryRecord } from './identity.ts'
import { directoryRecordName } from './outer-root.ts'
import { renameForGood } from './private-files.ts'
import { readDirectoryRecord, writeRecord } from './records.ts'
import { requireTrustedPath } from './trusted.ts'

export interface MoveDirectory extends Disposable {
  readonly path: string
  readonly storeFile: string
  /** The epoch in which the objects begin in etcd, if a move there has closed the directory already. */
  readonly closedIn: number | undefined
  /** Throws a UsageError where the store is not the one of this directory. */
  prove(store: Store, now: number): Promise<void>
  /** From now on its objects are in etcd. */
  close(seen: ClusterMark): void
  /** From now on its objects are in this file. */
  take(file: string, seen: ClusterMark): void
  /** Nobody takes the old objects for the present ones; answers their new name. */
  putAside(now: Date): string
}

/** The objects move `out` of it or `in`to it. Holds its lock. */
export function openMoveDirectory(
  path: string,
  way: 'in' | 'out',
  etcd: { readonly servers: readonly string[]; readonly prefix: string },
): MoveDirectory {
  using stack = new DisposableStack()
  stack.use(lockStopped(path))
  const recordFile = join(path, directoryRecordName)
  const storeFile = join(path, 'store.db')
  const record = recordIn(path)
  const problem = problemOf(path, way, record, statSync(storeFile, { throwIfNoEntry: false })?.size ?? 0)
  if (problem) throw new UsageError(problem.sentence, problem.remedy)
  const identity = openDirectoryIdentity(
    path,
    way === 'out' ? { store: 'embedded' } : { store: 'etcd', etcd },
    undefined,
  )
  const kept = stack.move()
  return {
    path,
    storeFile,
    closedIn: way === 'out' && isInEtcd(record) ? record.seen.epoch : undefined,
    prove: (store, now) => identity.prove(store, now),
    close: (seen) => writeRecord(recordFile, { store: 'durable', seen, in: 'etcd' }),
    take(file, seen) {
      renameForGood(file, storeFile)
      writeRecord(recordFile, { store: 'durable', seen })
    },
    putAside(now) {
      const aside = `${storeFile}.moved-${now.toISOString().replaceAll(':', '-')}`
      renameForGood(storeFile, aside)
      return aside
    },
    [Symbol.dispose]: () => kept.dispose(),
  }
}

/** To look at the objects only. Holds the lock of the directory. */
export function openReadDirectory(path: string): Disposable & { readonly storeFile: string } {
  using stack = new DisposableStack()
  stack.use(lockStopped(path))
  const storeFile = join(path, 'store.db')
  const problem = problemOf(path, 'out', recordIn(path), statSync(storeFile, { throwIfNoEntry: false })?.size ?? 0)
  if (problem) throw new UsageError(problem.sentence, problem.remedy)
  const kept = stack.move()
  return { storeFile, [Symbol.dispose]: () => kept.dispose() }
}

function lockStopped(path: string): Disposable {
  if (!existsSync(path)) throw new UsageError(`there is no data directory ${path}`, 'name it: sqlite:DIR')
  requireTrustedPath(path, `the data directory ${path}`)
  const lock = takeLock(join(path, 'lock'))
  if (lock.kind === 'held') return { [Symbol.dispose]: lock.release }
  throw new UsageError(`a server uses the data directory ${path} (process ${lock.holder})`, 'stop it first')
}

function recordIn(path: string): DirectoryRecord | undefined {
  const found = readDirectoryRecord(join(path, directoryRecordName))
  return found.kind === 'read' ? found.record : undefined
}

const startOnEtcd = 'hawser up --store etcd --etcd-servers URL'

interface Problem {
  readonly sentence: string
  readonly remedy: string
}

/** Why the objects cannot move so, as far as the directory alone tells. Pure. */
export function problemOf(
  path: string,
  way: 'in' | 'out',
  record: DirectoryRecord | undefined,
  storeBytes: number,
): Problem | undefined {
  const inEtcd = isInEtcd(record)
  if (way === 'out') {
    if (storeBytes > 0) return undefined
    return inEtcd
      ? { sentence: `the objects of ${path} are in etcd already`, remedy: startOnEtcd }
      : { sentence: `there are no objects in ${path}`, remedy: 'name the data directory of a server: sqlite:DIR' }
  }
  if (storeBytes > 0)
    return {
      sentence: `${path} holds objects (store.db): nothing is ever overwritten`,
      remedy: `if they are not needed any more, mv ${path}/store.db elsewhere`,
    }
  if (inEtcd) return undefined
  return {
    sentence: `${path} is not the data directory of a server that keeps its objects in etcd: it has no keys for them`,
    remedy: 'name the directory with which that server is started: sqlite:DIR',
  }
}

function isInEtcd(
  record: DirectoryRecord | undefined,
): record is Extract<DirectoryRecord, { store: 'durable' }> & { readonly in: 'etcd' } {
  return record?.store === 'durable' && record.in === 'etcd'
}
