// Is the copy current? Whoever must read the newest state asks etcd for its revision only, and waits until the copy shows it.
// Changes that others make outside our prefix count too, and the copy never hears of them: then a key of ours is written, and
// the copy that shows this write has seen everything before it. (etcd's own progress notifications may overtake changes before
// 3.4.25 and 3.5.8, so they are not used.)
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Revision } from '../store.ts'
import { StoreError } from '../store.ts'
import type { EtcdClient } from './client.ts'
import type { Copy } from './copy.ts'
import { isEtcdFailure } from './errors.ts'
import { KV } from './generated/etcd_pb.ts'
import type { EtcdPlace } from './layout.ts'
import { bytesOf, ownKey } from './layout.ts'

export interface CurrentDeps {
  readonly client: EtcdClient
  readonly place: EtcdPlace
  readonly copy: Copy
  readonly clock: Clock
  readonly log: Log
  /** How long a reader waits for a change before it is taken for one outside our prefix. */
  readonly changeWaitMs: number
}

export interface Current {
  /** Resolves when the copy shows every write that was acknowledged before the call. Answers etcd's revision. */
  catchUp(signal: AbortSignal): Promise<Revision>
  /** Waits until the copy shows a revision that etcd is known to have. */
  reach(revision: Revision, signal: AbortSignal): Promise<void>
  /** Looks now and then whether the watch is still alive, also when nobody reads. */
  run(signal: AbortSignal): Promise<void>
}

/** A reader waits at most this long for the copy. */
const longestMs = 10_000
/** Where nobody else writes to the same etcd, the change itself comes sooner than any question could be answered. */
export const defaultChangeWaitMs = 2_000
/** Where others do. */
const shortWaitMs = 10
/** A watch that does not bring our own write within this time is dead. */
const deadMs = 3_000
const lookEveryMs = 10_000

interface State {
  readonly deps: CurrentDeps
  /** The question that is on its way, and the one that begins after it: for those who ask meanwhile. */
  asked: Promise<Revision> | undefined
  next: Promise<Revision> | undefined
  poking: Promise<void> | undefined
  graceMs: number
}

export function createCurrent(deps: CurrentDeps): Current {
  const state: State = { deps, asked: undefined, next: undefined, poking: undefined, graceMs: deps.changeWaitMs }
  return {
    async catchUp(signal) {
      const revision = await ask(state)
      await reach(state, revision, signal)
      return revision
    },
    reach: (revision, signal) => reach(state, revision, signal),
    run: (signal) => run(state, signal),
  }
}

/** An answer counts only for those who came before the question was sent. */
function ask(state: State): Promise<Revision> {
  if (state.next !== undefined) return state.next
  const start = () => {
    state.next = undefined
    state.asked = question(state).finally(() => (state.asked = undefined))
    return state.asked
  }
  if (state.asked === undefined) return start()
  state.next = state.asked.then(start, start)
  return state.next
}

const never = new AbortController().signal

async function question({ deps }: State): Promise<Revision> {
  const { client, place, copy } = deps
  const before = copy.state.revision()
  // Any key will do: the answer's header tells the revision of the whole etcd, after a majority was asked.
  const { answer } = await client.call(KV.method.range, { key: ownKey(place, 'marker'), countOnly: true }, never)
  const revision = Number(answer.header?.revision ?? 0n)
  if (revision < before) {
    throw new StoreError(
      'unavailable',
      `etcd at ${client.where} has gone back from revision ${before} to ${revision}: it was restored from an older backup; start Hawser again to use it`,
    )
  }
  return revision
}

async function reach(state: State, revision: Revision, signal: AbortSignal): Promise<void> {
  const { clock, copy, client } = state.deps
  if (copy.state.revision() >= revision) return
  using deadline = clock.deadline(longestMs, signal)
  const timer = clock.at(clock.now() + state.graceMs, () => void poke(state, deadline.signal))
  try {
    await copy.reach(revision, deadline.signal)
  } catch (error) {
    if (signal.aborted) throw error
    const why = copy.problem() ?? 'its watch brings nothing'
    const text = `this server has not seen revision ${revision} of etcd at ${client.where} yet: ${why}`
    throw new StoreError('unavailable', text, { cause: error })
  } finally {
    timer[Symbol.dispose]()
  }
}

/** Writes the marker and waits for it; a watch that does not bring it is opened again. */
function poke(state: State, signal: AbortSignal): Promise<void> {
  state.poking ??= pokeOnce(state, signal)
    .catch((error: unknown) => {
      if (!signal.aborted)
        state.deps.log.warn('the copy of etcd could not be brought up to date', { error: errorText(error) })
    })
    .finally(() => (state.poking = undefined))
  return state.poking
}

async function pokeOnce(state: State, signal: AbortSignal): Promise<void> {
  const { client, clock, copy, place } = state.deps
  const seen = copy.state.revision()
  const value = bytesOf(JSON.stringify({ seen }))
  const written = await client.call(KV.method.put, { key: ownKey(place, 'marker'), value }, signal).catch((error) => {
    if (isEtcdFailure(error, 'noSpace')) return undefined
    throw error
  })
  // Nothing can be written to a full etcd, but it can be read.
  if (written === undefined) return copy.reread(signal)
  const revision = Number(written.answer.header?.revision ?? 0n)
  using deadline = clock.deadline(deadMs, signal)
  try {
    await copy.reach(revision, deadline.signal)
  } catch {
    if (!signal.aborted) copy.reopen()
    return
  }
  // The next reader need not wait long where others write.
  state.graceMs = Math.min(state.graceMs, shortWaitMs)
}

async function run(state: State, signal: AbortSignal): Promise<void> {
  const { clock, log } = state.deps
  while (!signal.aborted) {
    try {
      await clock.sleep(lookEveryMs, signal)
      await reach(state, await ask(state), signal)
    } catch (error) {
      if (!signal.aborted) log.warn('etcd was asked how far it is, in vain', { error: errorText(error) })
    }
  }
}
