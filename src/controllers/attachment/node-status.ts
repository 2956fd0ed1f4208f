// Which volumes may a node believe to be attached? Writes node.status.volumesAttached, one writer per node (ADS-1 … ADS-3).
//
// 1. The whole list is written, and compared with what the API last confirmed to this process, never with a cache (ADS-3).
// 2. `flush` resolves only after the API confirmed a list made after the call: a volume that left the list before
//    the call is then certainly unknown to a node that reads it (A3 in NSP-4, DES-7).
// 3. Writes to one node never overlap; what changes meanwhile goes into the next one. The first write goes out at once; in a
//    burst there is a pause between two, which grows with the list, so that the cost of one attachment does not grow
//    with the number of volumes on the node.
import type { NodeName } from '../../api/names.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { AttachedVolume, Node } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { isWithin } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'

export interface NodeStatusWriter extends AsyncDisposable {
  /** The node's list may have changed: write it soon. */
  touch(node: NodeName): void
  /** Resolves when the API confirmed a list made after this call; rejects when the write failed. */
  flush(node: NodeName, signal: AbortSignal): Promise<void>
  /** A Node was seen for the first time or was made anew: its list is what we must start from (AD-8). */
  nodeAppeared(name: NodeName, node: Node): void
  nodeGone(name: NodeName): void
}

export interface NodeStatusDeps {
  readonly client: Pick<Client, 'patch'>
  readonly clock: Clock
  readonly log: Log
  /** What the list should be now. */
  listFor(node: NodeName): readonly AttachedVolume[]
}

interface NodeState {
  /** The text of the list the API last confirmed; undefined when we cannot know. */
  confirmed: string | undefined
  exists: boolean
  notBefore: number
  waiters: Waiter[]
}

interface Waiter {
  resolve(): void
  reject(error: unknown): void
}

const writeTimeoutMs = 30_000
const shortestPauseMs = 30
const pausePerEntryMs = 0.1
const longestPauseMs = 100

export function createNodeStatusWriter(deps: NodeStatusDeps): NodeStatusWriter {
  const { clock, log, listFor } = deps
  const states = new Map<NodeName, NodeState>()
  const stateOf = (node: NodeName): NodeState =>
    states.getOrInsertComputed(node, () => ({ confirmed: undefined, exists: true, notBefore: 0, waiters: [] }))

  const loop = createKeyLoop<NodeName>({
    name: 'node-status',
    clock,
    workers: 64,
    backoff: { firstMs: 100, capMs: 30_000 },
    async look(node, signal) {
      const state = stateOf(node)
      const mayRest = state.exists && isWithin(clock.now(), state.notBefore - longestPauseMs, state.notBefore)
      // A flush for a list that the API already has does not wait for the pause.
      if (mayRest && (state.waiters.length === 0 || textOf(listFor(node)) !== state.confirmed)) {
        return { again: state.notBefore }
      }
      const waiters = state.waiters.splice(0)
      try {
        await write(deps, node, state, signal)
        for (const waiter of waiters) waiter.resolve()
        return undefined
      } catch (error) {
        for (const waiter of waiters) waiter.reject(error)
        throw error
      }
    },
    onError: (node, error, retryAt) => log.warn('node status not written', { node, error, retryAt }),
  })

  return {
    touch: (node) => loop.wake(node),
    flush(node, signal) {
      const flushed = waitIn(stateOf(node), signal)
      loop.wake(node)
      return flushed
    },
    nodeAppeared(name, node) {
      const state = stateOf(name)
      state.exists = true
      state.confirmed = textOf(node.status?.volumesAttached ?? [])
      loop.wake(name)
    },
    nodeGone(name) {
      const state = stateOf(name)
      state.exists = false
      state.confirmed = undefined
      loop.wake(name)
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

async function write(
  { client, clock, listFor }: NodeStatusDeps,
  node: NodeName,
  state: NodeState,
  signal: AbortSignal,
): Promise<void> {
  if (!state.exists) return // no node reads the list; a new Node object starts the writer again
  const list = listFor(node)
  const text = textOf(list)
  if (text === state.confirmed) return
  state.confirmed = undefined
  using deadline = clock.deadline(writeTimeoutMs, signal)
  const patch = { type: 'merge', body: { status: { volumesAttached: list } } } as const
  try {
    await client.patch('Node', { name: node }, patch, { subresource: 'status' }, deadline.signal)
    state.confirmed = text
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  state.notBefore = clock.now() + Math.min(longestPauseMs, shortestPauseMs + list.length * pausePerEntryMs)
}

/** Resolves or rejects with the next write, or rejects when the signal is aborted. */
function waitIn(state: NodeState, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => waiter.reject(signal.reason)
    const done = () => signal.removeEventListener('abort', onAbort)
    const waiter: Waiter = {
      resolve: () => (done(), resolve()),
      reject: (error) => (done(), reject(error)),
    }
    signal.addEventListener('abort', onAbort, { once: true })
    state.waiters.push(waiter)
  })
}

/** The list as text, whatever its order. */
function textOf(list: readonly AttachedVolume[]): string {
  return JSON.stringify(
    list.map(({ name, devicePath }) => [name, devicePath ?? '']).toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
  )
}
