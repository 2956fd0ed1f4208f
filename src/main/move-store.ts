// How do the objects move between a data directory and etcd? The server is stopped; everything is copied and read back; then the
// old place is closed before the new one opens, so that at no time two servers could go on with the same cluster. Whatever is
// interrupted goes on when the same command is given again.
import { hostname } from 'node:os'
import type { Clock } from '../clock/clock.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import { markOfStore } from '../installation/cluster-mark.ts'
import type { EtcdConfig } from '../installation/config.ts'
import { UsageError } from '../installation/config.ts'
import { nextEpoch } from '../installation/identity.ts'
import type { ClusterMark } from '../installation/identity.ts'
import type { Contents, Item } from '../installation/migration.ts'
import { carryOut, contentsOf, inNewEpoch, planCopy } from '../installation/migration.ts'
import type { MoveDirectory } from '../installation/move-directory.ts'
import { openMoveDirectory } from '../installation/move-directory.ts'
import { shareKeys } from '../installation/shared-keys.ts'
import type { EtcdAccess, MarkedStore } from '../store/etcd-store.ts'
import type { PrefixUse } from '../store/etcd/format.ts'
import type { Store } from '../store/store.ts'
import { StoreError } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import { etcdAccess, etcdName, holderOf, openSqliteFile, refusing } from './open-store.ts'

export type StorePlace =
  | { readonly kind: 'sqlite'; readonly directory: string }
  | { readonly kind: 'etcd'; readonly etcd: EtcdConfig }

export interface MoveDeps {
  readonly log: Log
  readonly onProgress: (text: string) => void
}

export interface Moved extends Contents {
  /** Where the file of the objects is kept after they have moved to etcd. */
  readonly kept?: string
}

interface Moving extends MoveDeps {
  readonly clock: Clock
  readonly directory: MoveDirectory
  readonly etcd: EtcdConfig
  readonly access: EtcdAccess
}

export async function moveStore(from: StorePlace, to: StorePlace, deps: MoveDeps): Promise<Moved> {
  const clock = createSystemClock()
  if (from.kind === 'sqlite' && to.kind === 'etcd') {
    const { etcd } = to
    using directory = openMoveDirectory(from.directory, 'out', etcd)
    return moveToEtcd({ ...deps, clock, directory, etcd, access: etcdAccess(etcd) })
  }
  if (from.kind === 'etcd' && to.kind === 'sqlite') {
    const { etcd } = from
    using directory = openMoveDirectory(to.directory, 'in', etcd)
    return moveToDirectory({ ...deps, clock, directory, etcd, access: etcdAccess(etcd) })
  }
  throw new UsageError(
    `objects move between a data directory and etcd, not from ${from.kind} to ${to.kind}`,
    'copy a stopped data directory as it is; copy etcd with etcdctl snapshot save',
  )
}

async function moveToEtcd(moving: Moving): Promise<Moved> {
  const { access, clock, directory } = moving
  const done = await (async () => {
    await using source = openSqliteFile(directory.storeFile)
    const before = await requireMark(source, directory.path)
    // A move that was interrupted at its end has closed the directory already.
    if (directory.closedIn === undefined) await directory.prove(source, clock.now())
    const epoch = directory.closedIn ?? nextEpoch(clock.now(), before.epoch)
    const move = { cluster: before.cluster, epoch, from: `${directory.path} on ${hostname()}` }
    const target = await openTarget(moving, { kind: 'moveIn', move })
    await using store = target.store
    const { mark } = target
    if (mark.kind !== 'movingIn' || (directory.closedIn ?? mark.epoch) !== mark.epoch)
      throw new UsageError(`the objects of ${directory.path} were moved to another etcd before: start the server there`)
    await shareKeys(directory.path, { ...target, where: etcdName(moving.etcd) }, clock.now())
    const wanted = await copy(moving, source, store, mark.epoch)
    verify(wanted, await itemsInEtcd(access, clock), 'etcd')
    directory.close({ cluster: before.cluster, epoch: mark.epoch, revision: store.revision() })
    await target.setMark({ kind: 'open' })
    return contentsOf(wanted)
  })()
  return { ...done, kept: directory.putAside(new Date(clock.now())) }
}

async function openTarget(moving: Moving, use: PrefixUse): Promise<MarkedStore> {
  try {
    return await openEtcd(moving, use)
  } catch (error) {
    if (moving.directory.closedIn === undefined || !(error instanceof UsageError)) throw error
    throw new UsageError(
      `the objects of ${moving.directory.path} were moved to etcd before, and are not moved again: ${error.message}`,
      'start the server: hawser up --store etcd --etcd-servers URL',
    )
  }
}

async function moveToDirectory(moving: Moving): Promise<Moved> {
  const { clock, directory } = moving
  const marked = await openEtcd(moving, { kind: 'moveOut', to: `${directory.path} on ${hostname()}` })
  await using source = marked.store
  await directory.prove(source, clock.now())
  const before = await requireMark(source, moving.access.servers.join(', '))
  const partial = `${directory.storeFile}.moving`
  const copied = await (async () => {
    await using target = openSqliteFile(partial)
    const begun = await markOfStore(target)
    if (begun !== undefined && begun.cluster !== before.cluster)
      throw new UsageError(
        `${partial} holds objects of cluster ${begun.cluster}, not of ${before.cluster}`,
        `rm ${partial}`,
      )
    const epoch = epochInDirectory(marked, before, begun, clock.now())
    return { epoch, wanted: await copy(moving, source, target, epoch) }
  })()
  const { wanted, epoch } = copied
  const revision = await (async () => {
    await using again = openSqliteFile(partial)
    verify(wanted, (await again.list('/', {})).entries, directory.path)
    return again.revision()
  })()
  await marked.setMark({ kind: 'movedOut', to: `${directory.path} on ${hostname()}`, epoch })
  directory.take(partial, { cluster: before.cluster, epoch, revision })
  return contentsOf(wanted)
}

/** One that was begun goes on, unless the objects in etcd have gone on, too. */
function epochInDirectory(
  { mark }: MarkedStore,
  before: ClusterMark,
  begun: ClusterMark | undefined,
  now: number,
): number {
  if (mark.kind === 'movedOut') return mark.epoch
  return begun !== undefined && begun.epoch > before.epoch ? begun.epoch : nextEpoch(now, before.epoch)
}

async function copy(moving: Moving, source: Store, target: Store, epoch: number): Promise<readonly Item[]> {
  const { entries } = await source.list('/', {})
  const wanted = inNewEpoch(entries, epoch)
  const steps = planCopy(wanted, (await target.list('/', {})).entries)
  const there = wanted.length - steps.length
  const say = (written: number) =>
    moving.onProgress(`${Math.max(there, 0) + written} of ${wanted.length} objects are written`)
  say(0)
  await carryOut(target, steps, say)
  moving.onProgress(`reading ${wanted.length} objects back`)
  return wanted
}

function verify(wanted: readonly Item[], found: readonly Item[], where: string): void {
  const [expected, seen] = [contentsOf(wanted), contentsOf(found)]
  if (expected.count === seen.count && expected.digest === seen.digest) return
  throw new StoreError(
    'unavailable',
    `what was written to ${where} is not what was read: ${seen.count} objects with digest ${seen.digest}, ` +
      `not ${expected.count} with ${expected.digest}. The old place stays in use; give the command again to write what differs`,
  )
}

async function itemsInEtcd(access: EtcdAccess, clock: Clock): Promise<readonly Item[]> {
  const { readEtcd } = await import('../store/etcd-store.ts')
  const found = await readEtcd(access, clock, new AbortController().signal)
  return found.flatMap((key) => (key.kind === 'entry' ? [key] : []))
}

async function openEtcd({ access, clock, directory, log }: Moving, use: PrefixUse): Promise<MarkedStore> {
  const { openMarkedStore } = await import('../store/etcd-store.ts')
  const onLost = (error: Error) => log.error('the hold of etcd was lost', { error: error.message })
  return refusing(() => openMarkedStore({ ...access, use, holder: holderOf(directory.path), clock, log, onLost }))
}

async function requireMark(store: Store, where: string): Promise<ClusterMark> {
  const mark = await markOfStore(store)
  if (mark === undefined) throw new UsageError(`${where} holds no cluster: a server has to start on it once`)
  return mark
}
