// How does state live in etcd? Objects are read from a copy in memory that one watch feeds; writes are transactions. A read asks
// etcd for its revision first, so a copy that is late is never shown as current.
import type { Clock } from '../clock/clock.ts'
import { errorText } from '../telemetry/error-text.ts'
import type { Log } from '../telemetry/log.ts'
import type { HistoryLimits } from './compaction.ts'
import { defaultHistory } from './compaction.ts'
import type { TlsFiles } from './etcd/channel.ts'
import { openChannel } from './etcd/channel.ts'
import type { EtcdClient } from './etcd/client.ts'
import { createEtcdClient } from './etcd/client.ts'
import { compact, runCompactor } from './etcd/compactor.ts'
import type { Copy } from './etcd/copy.ts'
import { loadCopy } from './etcd/copy.ts'
import type { Current } from './etcd/current.ts'
import { createCurrent, defaultChangeWaitMs } from './etcd/current.ts'
import { EtcdError } from './etcd/errors.ts'
import type { PrefixMark, PrefixUse } from './etcd/format.ts'
import { claimPrefix, putMark } from './etcd/format.ts'
import { keysIn } from './etcd/keys.ts'
import type { FoundKey } from './etcd/inspect.ts'
import { inspectPrefix } from './etcd/inspect.ts'
import type { Hold, Holder } from './etcd/hold.ts'
import { defaultLeaseSeconds, takeHold } from './etcd/hold.ts'
import type { EtcdLayout, EtcdPlace } from './etcd/layout.ts'
import { createWrites } from './etcd/writes.ts'
import type { Store } from './store.ts'
import { StoreError } from './store.ts'
import type { Write } from './versioned-state.ts'

export interface EtcdAccess {
  readonly servers: readonly string[]
  /** Read each time a connection is made: certificates are renewed while we run. */
  readonly tls?: () => TlsFiles
  readonly user?: { readonly name: string; readonly password: string }
  /** `/registry`, as kube-apiserver has it. */
  readonly prefix: string
  readonly layout: EtcdLayout
}

export interface EtcdStoreOptions extends EtcdAccess {
  /** Serve the objects, as usual, or move them. */
  readonly use?: PrefixUse
  readonly holder: Holder
  readonly leaseSeconds?: number
  /** Wait for the end of another server, however long it lives. */
  readonly standby?: boolean
  /** Another server holds the objects: this one waits. */
  readonly onWait?: (server: string) => void
  /** Gives up the opening. */
  readonly opening?: AbortSignal
  readonly history?: HistoryLimits
  readonly changeWaitMs?: number
  readonly clock: Clock
  readonly log: Log
  /** This server may not write any more and cannot come back: it must end. */
  readonly onLost: (error: Error) => void
}

interface Parts {
  readonly client: EtcdClient
  readonly copy: Copy
  readonly current: Current
  readonly hold: Hold
}

/** A store whose prefix is marked: what may be done with it. */
export interface MarkedStore {
  readonly store: Store
  readonly mark: PrefixMark
  /** Marks it otherwise, as the only server that may write. */
  setMark(mark: PrefixMark): Promise<void>
  /** Throws where another server may act by now, told by a clock that nobody sets. */
  requireHold(): void
  /** A text beside the objects, and no object itself: what all servers share. Put there unless there is one; answers what is. */
  keepKeys(text: string): Promise<string>
  readKeys(): Promise<string | undefined>
}

/** Throws `unavailable` when etcd cannot be used, with a sentence that says why and what to do. */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<Store> {
  return (await openMarkedStore(options)).store
}

/** The same with what only some callers need: keys, and moves of the objects. */
export async function openMarkedStore(options: EtcdStoreOptions): Promise<MarkedStore> {
  const { clock, log } = options
  const place: EtcdPlace = { prefix: options.prefix, layout: options.layout }
  const life = new AbortController()
  using opening = new DisposableStack()
  const client = opening.use(clientFor(options, clock))
  try {
    const use = options.use ?? { kind: 'serve', adopt: false }
    const claim = () => claimPrefix({ client, place, use }, life.signal)
    await claim()
    const leaseSeconds = options.leaseSeconds ?? defaultLeaseSeconds
    const { holder, standby = false, onWait = () => {}, opening: given = life.signal } = options
    const begin = AbortSignal.any([life.signal, given])
    const hold = await takeHold({ client, place, clock, log, holder, leaseSeconds, standby, onWait }, begin)
    const history = options.history ?? defaultHistory
    const load = async () => {
      // The objects may have been moved while we waited for the hold.
      const mark = await claim()
      return { mark, copy: await loadCopy({ client, place, clock, log, history }, life.signal) }
    }
    const { copy, mark } = await load().catch(async (error: unknown) => {
      await hold.release(life.signal).catch(() => {}) // it ends by itself
      throw error
    })
    const changeWaitMs = options.changeWaitMs ?? defaultChangeWaitMs
    const current = createCurrent({ client, place, copy, clock, log, changeWaitMs })
    opening.move()
    const store = storeOver(options, place, { client, copy, current, hold }, life)
    const setMark = async (next: PrefixMark) => {
      if (!(await putMark(client, place, next, hold.permit(), life.signal)))
        throw new StoreError('unavailable', `another server has taken the objects in etcd at ${client.where}`)
    }
    const requireHold = () => void hold.permit()
    return { store, mark, setMark, requireHold, ...keysIn({ client, place, permit: hold.permit }, life.signal) }
  } catch (error) {
    throw error instanceof EtcdError ? new StoreError('unavailable', error.message, { cause: error }) : error
  }
}

/** Everything below the prefix, as it is; nothing is written, and a server may go on beside it. */
export async function readEtcd(access: EtcdAccess, clock: Clock, signal: AbortSignal): Promise<readonly FoundKey[]> {
  using client = clientFor(access, clock)
  try {
    return await Array.fromAsync(inspectPrefix({ client, place: access }, signal))
  } catch (error) {
    throw error instanceof EtcdError ? new StoreError('unavailable', error.message, { cause: error }) : error
  }
}

function clientFor({ servers, tls = () => ({}), user }: EtcdAccess, clock: Clock): EtcdClient {
  return createEtcdClient({ servers, clock, open: (url) => openChannel(url, tls), ...(user ? { user } : {}) })
}

function storeOver(options: EtcdStoreOptions, place: EtcdPlace, parts: Parts, life: AbortController): Store {
  const { client, copy, current, hold } = parts
  const { state } = copy
  const { signal } = life
  const writes = createWrites({ client, place, copy, current, permit: hold.permit })
  const working = [
    copy.run(signal),
    current.run(signal),
    runCompactor({ client, place, clock: options.clock, log: options.log, revision: state.revision }, signal),
    hold.run(signal).catch((error: Error) => {
      if (!signal.aborted) options.onLost(error)
    }),
  ]
  let closed: Promise<void> | undefined
  const open = <T>(work: () => Promise<T>): Promise<T> => {
    if (closed !== undefined) return Promise.reject(new StoreError('unavailable', 'the store is closed'))
    return work().catch((error: unknown) => {
      throw error instanceof EtcdError ? new StoreError('unavailable', error.message, { cause: error }) : error
    })
  }
  const write = (request: Write) => open(() => writes.write(request, signal))

  return {
    revision: state.revision,
    oldest: state.oldest,
    get: (key) =>
      open(async () => {
        await current.catchUp(signal)
        return state.get(key)
      }),
    list: (prefix, page) =>
      open(async () => {
        // The past does not change; only what the copy has not seen must be asked for.
        if (page.at === undefined || page.at > state.revision()) await current.catchUp(signal)
        return state.list(prefix, page)
      }),
    create: (key, value) => write({ type: 'create', key, value }),
    update: (key, value, expected) => write({ type: 'update', key, value, expected }),
    remove: (key, expected) => write({ type: 'remove', key, expected }),
    watch: (prefix, after, until) => state.hub.watch(prefix, after, until),
    compact: (before) =>
      open(async () => {
        await compact({ client }, Math.min(before, state.revision()), signal)
        state.forget(before)
      }),
    [Symbol.asyncDispose]: () => (closed ??= close(options, parts, life, working)),
  }
}

async function close(
  { clock, log }: EtcdStoreOptions,
  { client, copy, hold }: Parts,
  life: AbortController,
  working: readonly Promise<void>[],
): Promise<void> {
  copy.state.hub.close()
  {
    using deadline = clock.deadline(2_000, new AbortController().signal)
    await hold.release(deadline.signal).catch((error: unknown) => {
      log.warn('the lease of the store in etcd could not be given back; it ends by itself', { error: errorText(error) })
    })
  }
  life.abort(new StoreError('unavailable', 'the store is closed'))
  await Promise.allSettled(working)
  client[Symbol.dispose]()
}
