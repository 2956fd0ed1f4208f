// Does the store in the data directory belong there? Compared with the directory's record before the server uses it; the
// record then follows the store, so that an older one is recognised.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../store/store.ts'
import { beginEpoch, markOfStore, podsOfStore } from './cluster-mark.ts'
import { UsageError } from './config.ts'
import type { Decision, DirectoryFacts, DirectoryRecord } from './identity.ts'
import { decideDirectory, nextEpoch } from './identity.ts'
import { directoryRecordName } from './outer-root.ts'
import { readDirectoryRecord, writeRecord } from './records.ts'

export interface DirectoryOptions {
  readonly store: 'memory' | 'embedded' | 'etcd'
  /** Where etcd is, for the store of that name. */
  readonly etcd?: { readonly servers: readonly string[]; readonly prefix: string }
  /** Go on with a store that is older than the one last used here. */
  readonly acceptStore?: boolean | undefined
}

export interface DirectoryIdentity {
  /** Throws a UsageError that says what was found and what to do. An accepted older store begins a new epoch at `now`. */
  prove(store: Store, now: number): Promise<void>
  /** Remembers how far the store has come. */
  remember(store: Store): Promise<void>
}

const keyFiles = ['admin.token', 'token.key', 'ca.key']

/** Looks at what is there before a key or a store is made; `holder` is the process that has the lock. */
export function openDirectoryIdentity(
  path: string,
  options: DirectoryOptions,
  holder: string | undefined,
): DirectoryIdentity {
  const { acceptStore = false } = options
  const recordFile = join(path, directoryRecordName)
  const decision = required(look(path, { kind: beforeOpening(path, options) }, acceptStore, options, holder))
  const begun = firstRecord(options, decision, existsSync(recordFile) || existsSync(join(path, keyFiles[0]!)))
  if (begun) writeRecord(recordFile, begun)
  return {
    async prove(store, now) {
      if (options.store === 'memory') return
      const mark = await markOfStore(store)
      const isEmpty = (await store.list('/', { limit: 1 })).entries.length === 0
      const decide = (unknownPods: number) =>
        look(path, isEmpty ? { kind: 'empty' } : { kind: 'used', mark, unknownPods }, acceptStore, options)
      const first = decide(0)
      // All pods are read only for a refusal that names what would be lost.
      const isOlder = first.kind === 'refuse' && first.code === 'olderStore'
      const { kind } = required(isOlder ? decide(await countUnknown(path, store)) : first)
      if (kind === 'accept') await beginEpoch(store, nextEpoch(now, seenEpoch(recordFile)))
    },
    async remember(store) {
      if (options.store === 'memory') return
      const seen = await markOfStore(store)
      if (seen) writeRecord(recordFile, { store: 'durable', seen, ...(options.store === 'etcd' ? { in: 'etcd' } : {}) })
    },
  }
}

/** Why a server would not start here, if that can be seen without opening the store. Changes nothing. */
export function findRefusal(path: string): Extract<Decision, { kind: 'refuse' }> | undefined {
  // An agent's directory has neither store nor keys of a server.
  if (![directoryRecordName, 'store.db', ...keyFiles].some((name) => existsSync(join(path, name)))) return undefined
  const found = readDirectoryRecord(join(path, directoryRecordName))
  // What is in etcd cannot be seen from here.
  const isElsewhere = found.kind === 'read' && found.record.store === 'durable' && found.record.in === 'etcd'
  const decision = look(path, { kind: isElsewhere ? 'unread' : storeFile(path) }, false, { store: 'embedded' })
  return decision.kind === 'refuse' ? decision : undefined
}

function look(
  path: string,
  store: DirectoryFacts['store'],
  acceptStore: boolean,
  { etcd }: DirectoryOptions,
  holder?: string,
): Decision {
  const place = etcd && `etcd at ${etcd.servers.join(', ')} (${etcd.prefix})`
  const recordFile = join(path, directoryRecordName)
  const keys = keyFiles.filter((name) => existsSync(join(path, name)))
  const record = readDirectoryRecord(recordFile)
  return decideDirectory({
    path,
    recordFile,
    holder,
    record,
    store,
    keys,
    data: dataIn(path),
    acceptStore,
    etcd: place,
  })
}

function required(decision: Decision): Decision {
  if (decision.kind === 'refuse') throw new UsageError(decision.sentence, decision.remedy)
  return decision
}

async function countUnknown(path: string, store: Store): Promise<number> {
  const known = await podsOfStore(store)
  return podsIn(path).filter((uid) => !known.has(uid)).length
}

/** etcd is asked later; until a directory has seen a store, it may become the directory of a new cluster. */
function beforeOpening(path: string, { store }: DirectoryOptions): 'memory' | 'empty' | 'unread' {
  if (store !== 'etcd') return store === 'memory' ? 'memory' : storeFile(path)
  const found = readDirectoryRecord(join(path, directoryRecordName))
  return found.kind === 'read' && found.record.store === 'durable' ? 'unread' : 'empty'
}

/** SQLite would take the write-ahead log of a store that was emptied for rubbish: so we look before it does. */
function storeFile(path: string): 'empty' | 'unread' {
  const size = statSync(join(path, 'store.db'), { throwIfNoEntry: false })?.size ?? 0
  return size === 0 ? 'empty' : 'unread'
}

/** What is written before the first key: a start that is interrupted can then go on. */
function firstRecord(
  options: DirectoryOptions,
  decision: Decision,
  isUsed: boolean,
): Exclude<DirectoryRecord, { store: 'durable' }> | undefined {
  if (decision.kind === 'create') return { store: 'creating' }
  return options.store === 'memory' && !isUsed ? { store: 'memory' } : undefined
}

function seenEpoch(recordFile: string): number {
  const found = readDirectoryRecord(recordFile)
  return found.kind === 'read' && found.record.store === 'durable' ? found.record.seen.epoch : 0
}

/** What a new cluster cannot have, in words. */
function dataIn(path: string): string[] {
  const counted = [
    [podsIn(path).length, 'pods'],
    [['volumes/volumes', 'volumes/snapshots'].flatMap((name) => entries(join(path, name))).length, 'images'],
  ] as const
  return counted.flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]))
}

function podsIn(path: string): string[] {
  const roots = ['node', ...entries(join(path, 'nodes')).map((name) => join('nodes', name))]
  return roots.flatMap((root) => entries(join(path, root, 'pods')))
}

function entries(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}
