// What can happen to one call on its way? The next call of a name is struck once: its answer is lost, it is sent twice, its caller
// gives up, or the driver is killed. The driver always gets to see the call, else it would not be its test.
import type { Clock } from '../clock/clock.ts'
import { CsiError } from '../csi/codes.ts'
import type { Transport } from '../csi/service.ts'
import { NotPossible } from './finding.ts'

export const strikeKinds = ['answer-lost', 'twice', 'at-once', 'given-up', 'killed-during', 'killed-after'] as const
export type StrikeKind = (typeof strikeKinds)[number]

export interface Strikes {
  /** The next call of this name. */
  strike(rpc: string, kind: StrikeKind): void
  /** Has a call of that name come since? */
  hasStruck(rpc: string): boolean
  readonly transport: Transport
}

interface StrikeDeps {
  readonly transport: Transport
  readonly clock: Clock
  /** After this time a caller gives up, or the driver is killed: short enough that it is at work. */
  readonly duringMs: number
  /** Ends the driver at once and brings it back; absent: somebody else runs it. */
  readonly killAndRestart?: (signal: AbortSignal) => Promise<void>
}

export function createStrikes(deps: StrikeDeps): Strikes {
  const waiting = new Map<string, StrikeKind>()
  return {
    strike: (rpc, kind) => void waiting.set(rpc, kind),
    hasStruck: (rpc) => !waiting.has(rpc),
    async transport(...call) {
      const [{ name }] = call
      const kind = waiting.get(name)
      waiting.delete(name)
      return kind === undefined ? deps.transport(...call) : struckCall(deps, kind, ...call)
    },
  }
}

async function struckCall(
  deps: StrikeDeps,
  kind: StrikeKind,
  ...[method, request, options]: Parameters<Transport>
): Promise<Uint8Array> {
  const { transport, clock, duringMs } = deps
  const rpc = method.name
  switch (kind) {
    case 'answer-lost':
      await transport(method, request, options).catch(() => {})
      throw new CsiError('UNAVAILABLE', 'on purpose: the answer was lost', { rpc })
    case 'twice':
      await transport(method, request, options)
      return transport(method, request, options)
    case 'at-once':
      return firstOf(await Promise.allSettled([1, 2].map(() => transport(method, request, options))))
    case 'given-up': {
      const caller = new AbortController()
      const answer = transport(method, request, { ...options, signal: caller.signal }).catch(() => {})
      if (duringMs > 0) await clock.sleep(duringMs, options.signal)
      caller.abort(new Error('the caller gave up'))
      await answer
      throw new CsiError('DEADLINE_EXCEEDED', 'on purpose: the caller gave up', { rpc })
    }
    case 'killed-during':
    case 'killed-after': {
      if (!deps.killAndRestart) throw new NotPossible('the lab does not run this driver, and cannot kill it')
      const answer = transport(method, request, options).catch(() => {})
      if (kind === 'killed-after') await answer
      else await clock.sleep(duringMs, options.signal)
      await deps.killAndRestart(options.signal)
      await answer
      throw new CsiError('UNAVAILABLE', 'on purpose: the driver was killed', { rpc })
    }
    default:
      return kind satisfies never
  }
}

/** Of two callers at once each succeeds or is told to come back (ABORTED); another status is the answer. */
function firstOf(outcomes: readonly PromiseSettledResult<Uint8Array>[]): Uint8Array {
  const isOther = (reason: unknown) => !(reason instanceof CsiError) || reason.status !== 'ABORTED'
  for (const outcome of outcomes) if (outcome.status === 'rejected' && isOther(outcome.reason)) throw outcome.reason
  for (const outcome of outcomes) if (outcome.status === 'fulfilled') return outcome.value
  throw new CsiError('ABORTED', 'both of two callers at once were told to come back')
}
