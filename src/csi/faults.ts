// What can go wrong between us and a driver? A transport that answers late, never, twice, or with any status,
// before or after the driver did its work. Decisions come from the caller, so a seed reproduces them.
import type { Clock } from '../clock/clock.ts'
import { CsiError } from './codes.ts'
import type { StatusName } from './codes.ts'
import type { Transport } from './service.ts'

export type Fault =
  /** The driver never sees the call. */
  | { readonly kind: 'refused'; readonly status: StatusName }
  /** The driver did its work, but its answer is lost and this status arrives instead. */
  | { readonly kind: 'answerLost'; readonly status: StatusName }
  /** The driver works twice: a proxy repeated the call. */
  | { readonly kind: 'twice' }
  /** The answer comes after this time, whatever the caller's deadline; the driver works on regardless. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The driver does its work, but no answer ever comes. */
  | { readonly kind: 'silent' }
  /** The driver answers OK, with an empty answer, and does nothing. */
  | { readonly kind: 'ignored' }
  /** The call never reaches the driver, and no answer ever comes. */
  | { readonly kind: 'lost' }
  /** The connection breaks, before the driver sees the call or after its work; every other call on it breaks too. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'after' }

/** Asked for each call with its name and how many calls of that name came before. */
export type ChooseFault = (rpc: string, earlier: number) => Fault | undefined

export function withFaults(transport: Transport, clock: Clock, choose: ChooseFault): Transport {
  const chooseNext = counting(choose)
  return (method, request, options) =>
    callWithFault({ transport, clock }, chooseNext(method.name), method, request, options)
}

/** The chooser is told how many calls of a name came before. */
export function counting(choose: ChooseFault): (rpc: string) => Fault | undefined {
  const counts = new Map<string, number>()
  return (rpc) => {
    const earlier = counts.get(rpc) ?? 0
    counts.set(rpc, earlier + 1)
    return choose(rpc, earlier)
  }
}

interface FaultyWay {
  readonly transport: Transport
  readonly clock: Clock
  /** Breaks the connection, where there is one: a caller in the same process only gets the status. */
  readonly cut?: () => void
}

export async function callWithFault(
  { transport, clock, cut }: FaultyWay,
  fault: Fault | undefined,
  ...[method, request, options]: Parameters<Transport>
): Promise<Uint8Array> {
  // A driver that was reached keeps working when its caller has gone away.
  const detached = { ...options, signal: new AbortController().signal }
  switch (fault?.kind) {
    case undefined:
      return transport(method, request, options)
    case 'refused':
      throw new CsiError(fault.status, 'injected: the call was refused', { rpc: method.name })
    case 'answerLost':
      await transport(method, request, detached).catch(() => {})
      throw new CsiError(fault.status, 'injected: the answer was lost', { rpc: method.name })
    case 'ignored':
      return new Uint8Array()
    case 'twice':
      await transport(method, request, detached)
      return transport(method, request, options)
    case 'late': {
      const answer = transport(method, request, detached)
      answer.catch(() => {})
      await clock.sleep(fault.ms, options.signal)
      return answer
    }
    case 'lost':
    case 'silent':
      if (fault.kind === 'silent') await transport(method, request, detached).catch(() => {})
      return new Promise((_resolve, reject) => {
        options.signal.addEventListener('abort', () => reject(options.signal.reason), { once: true })
      })
    case 'cut':
      if (fault.when === 'after') await transport(method, request, detached).catch(() => {})
      cut?.()
      throw new CsiError('UNAVAILABLE', 'injected: the connection was cut', {
        rpc: method.name,
        code: 'DriverUnreachable',
      })
    default:
      return fault satisfies never
  }
}
