// May this process use this data directory, this node root? Pure: from what was found there, to proceed, to make a new
// cluster, or to refuse with what was found and what to do. Until then nothing may be unmounted, deleted or cleaned.

/** What tells one moment of one cluster from another. */
export interface ClusterMark {
  /** The uid of namespace kube-system, as Kubernetes tools use it. */
  readonly cluster: string
  /** Grows when an older store is accepted on purpose (`hawser restore`, `--accept-store`). */
  readonly epoch: number
  /** How many changes the store has counted; it starts anew with an epoch. */
  readonly revision: number
}

/** What a data directory remembers of its store. */
export type DirectoryRecord =
  /** The first start has begun: keys may be there, and the store may still be empty. */
  | { readonly store: 'creating' }
  /** Only stores in memory were used here. */
  | { readonly store: 'memory' }
  /** `in: 'etcd'` where the objects are not in the directory itself. */
  | { readonly store: 'durable'; readonly seen: ClusterMark; readonly in?: 'etcd' }

/** What a node root remembers; `seen` is absent until a server has answered. */
export interface NodeRecord {
  readonly node: string
  readonly seen?: ClusterMark
}

export type Found<T> =
  | { readonly kind: 'none' }
  | { readonly kind: 'read'; readonly record: T }
  | { readonly kind: 'newer'; readonly format: number }
  | { readonly kind: 'unreadable' }

export interface DirectoryFacts {
  readonly path: string
  readonly recordFile: string
  /** The process that holds the lock. */
  readonly holder: string | undefined
  readonly record: Found<DirectoryRecord>
  /** `unread`: the file has bytes, and nobody has looked inside yet. */
  readonly store:
    | { readonly kind: 'memory' | 'empty' | 'unread' }
    | { readonly kind: 'used'; readonly mark: ClusterMark | undefined; readonly unknownPods: number }
  readonly keys: readonly string[]
  /** Pods, images, containers: what a new cluster cannot have. */
  readonly data: readonly string[]
  readonly acceptStore: boolean
  /** Where the store is, if it is not in the directory. */
  readonly etcd?: string | undefined
}

export interface NodeFacts {
  readonly root: string
  readonly recordFile: string
  readonly node: string
  readonly holder: string | undefined
  readonly record: Found<NodeRecord>
  /** `silent`: the server has not answered yet. `hidden`: it does not let us see its cluster. */
  readonly server: ClusterMark | 'silent' | 'hidden'
  /** What would be cleaned if nobody in the API named it. */
  readonly holds: { readonly pods: number; readonly mounts: number }
}

type RefusalCode =
  | 'inUse'
  | 'newerFormat'
  | 'recordUnreadable'
  | 'emptyStore'
  | 'inEtcd'
  | 'otherNode'
  | 'otherCluster'
  | 'olderStore'
  | 'clusterHidden'

export type Decision =
  | { readonly kind: 'proceed' }
  /** Nothing is here yet. */
  | { readonly kind: 'create' }
  /** The older store begins a new epoch. */
  | { readonly kind: 'accept' }
  | { readonly kind: 'refuse'; readonly code: RefusalCode; readonly sentence: string; readonly remedy: string }

const proceed: Decision = { kind: 'proceed' }
export const otherDirectory = 'choose another one with --data-dir DIR'
export const otherRoot = 'choose another root with --root-dir DIR'

export function decideDirectory(facts: DirectoryFacts): Decision {
  const { path, holder, record, store, etcd } = facts
  if (holder !== undefined) return inUse(`the data directory ${path}`, holder, otherDirectory)
  const unusable = refuseRecord(record, facts.recordFile, otherDirectory)
  if (unusable) return unusable
  const known = record.kind === 'read' ? record.record : undefined
  if (store.kind !== 'used') return store.kind === 'empty' ? decideEmpty(facts, known) : proceed
  if (known?.store !== 'durable') return proceed
  const { seen } = known
  if (store.mark?.cluster !== seen.cluster) {
    const found = store.mark === undefined ? 'no cluster' : `cluster ${store.mark.cluster}`
    return refuse(
      'otherCluster',
      `${storeName(facts)} is of ${found}, but ${etcd ? path : 'this directory'} belongs to cluster ${seen.cluster}`,
      `${etcd ? 'correct --etcd-servers and --etcd-prefix' : 'put the right store.db back'}, or ${otherDirectory}`,
    )
  }
  if (!isOlder(store.mark, seen)) return proceed
  if (facts.acceptStore) return { kind: 'accept' }
  if (known.in === 'etcd' && etcd === undefined) return refuseMoved(path)
  return refuse(
    'olderStore',
    `${storeName(facts)} is older than the one last used here (${howOld(store.mark, seen)}): ` +
      `later changes would be lost${lostPods(store.unknownPods)}`,
    'put the newer store back, or go on with this one: hawser up --accept-store',
  )
}

export function decideNode(facts: NodeFacts): Decision {
  const { root, node, holder, record, server, holds, recordFile } = facts
  if (holder !== undefined) return inUse(`the root of node ${node}, ${root},`, holder, otherRoot)
  const unusable = refuseRecord(record, recordFile, otherRoot)
  if (unusable) return unusable
  // A root that holds nothing belongs to whoever comes: there is nothing to lose.
  if (record.kind !== 'read' || holds.pods + holds.mounts === 0) return proceed
  const { seen } = record.record
  const what = `${root} holds ${holds.pods} pods and ${holds.mounts} mounts`
  if (record.record.node !== node) {
    return refuse(
      'otherNode',
      `${what} of node ${record.record.node}, not of node ${node}`,
      `start with --node-name ${record.record.node}, or ${otherRoot}`,
    )
  }
  if (server === 'silent' || seen === undefined) return proceed
  const letGo = `if these pods may be deleted, remove ${recordFile}`
  if (server === 'hidden') {
    return refuse(
      'clusterHidden',
      `${what} of cluster ${seen.cluster}, and the server does not tell which cluster it is`,
      'let this node read the namespace kube-system',
    )
  }
  if (server.cluster !== seen.cluster) {
    return refuse(
      'otherCluster',
      `${what} of cluster ${seen.cluster}, but the server is of cluster ${server.cluster}`,
      `name the right server, or ${otherRoot}; ${letGo}`,
    )
  }
  if (!isOlder(server, seen)) return proceed
  return refuse(
    'olderStore',
    `${what}, and the server's store is older than this node has seen (${howOld(server, seen)}): ` +
      'pods made since then would be deleted',
    `bring the newer store back, or accept the older one where the server runs: hawser up --accept-store; ${letGo}`,
  )
}

/** The epoch that makes an accepted store newer than everything seen before. */
export function nextEpoch(now: number, seen: number): number {
  return Math.max(now, seen + 1)
}

/** An empty store is a new cluster only where nothing tells of an old one. */
function decideEmpty(facts: DirectoryFacts, known: DirectoryRecord | undefined): Decision {
  const { etcd, keys, data } = facts
  // Keys are made before the store; a first start that was interrupted goes on.
  if (known?.store === 'memory' || (known?.store === 'creating' && data.length === 0)) return { kind: 'create' }
  if (known?.store === 'durable' && known.in === 'etcd' && etcd === undefined) return refuseMoved(facts.path)
  const beside = [...keys, ...data]
  if (known === undefined && beside.length === 0) return { kind: 'create' }
  const found = known?.store === 'durable' ? [`the record of cluster ${known.seen.cluster}`, ...beside] : beside
  return refuse(
    'emptyStore',
    `${storeName(facts)} is empty or missing, but ${etcd ? facts.path : 'the directory'} holds ${found.join(', ')}: this is not a new cluster`,
    `${etcd ? remedyInEtcd(facts, known) : 'bring store.db back'}, or restore a backup (hawser restore FILE --data-dir NEWDIR), or ${otherDirectory}`,
  )
}

function remedyInEtcd({ path }: DirectoryFacts, known: DirectoryRecord | undefined): string {
  if (known?.store !== 'durable' || known.in === 'etcd') return 'correct --etcd-servers and --etcd-prefix'
  return `move the objects of the directory there: hawser store migrate --from sqlite:${path} --to etcd:URL`
}

/** Whatever store.db holds is of before the move. */
function refuseMoved(path: string): Decision {
  return refuse(
    'inEtcd',
    `the objects of ${path} are in etcd, not in the directory`,
    `start with --store etcd --etcd-servers URL, or move them back: hawser store migrate --from etcd:URL --to sqlite:${path}`,
  )
}

function storeName({ path, etcd }: DirectoryFacts): string {
  return etcd ?? `the store in ${path}`
}

function refuseRecord<T>(record: Found<T>, file: string, elsewhere: string): Decision | undefined {
  if (record.kind === 'newer') {
    const sentence = `${file} was written by a newer Hawser (format ${record.format})`
    return refuse('newerFormat', sentence, `start the newer version, or ${elsewhere}`)
  }
  if (record.kind !== 'unreadable') return undefined
  return refuse('recordUnreadable', `${file} cannot be read`, `remove it if you know whose it is, or ${elsewhere}`)
}

function isOlder(found: ClusterMark, seen: ClusterMark): boolean {
  return found.epoch === seen.epoch ? found.revision < seen.revision : found.epoch < seen.epoch
}

function howOld(found: ClusterMark, seen: ClusterMark): string {
  if (found.epoch === seen.epoch) return `revision ${found.revision}, seen ${seen.revision}`
  return `of before the restore of ${new Date(seen.epoch).toISOString()}`
}

function lostPods(count: number): string {
  return count === 0 ? '' : `, and ${count} pods on this machine that it does not know would be deleted`
}

function inUse(what: string, holder: string, elsewhere: string): Decision {
  const known = /^\d+$/.test(holder)
  const remedy = known ? `stop it (kill ${holder}) or ${elsewhere}` : `stop it or ${elsewhere}`
  return refuse('inUse', `${what} is in use by ${known ? `process ${holder}` : holder}`, remedy)
}

function refuse(code: RefusalCode, sentence: string, remedy: string): Decision {
  return { kind: 'refuse', code, sentence, remedy }
}
