// For how long has a lease not been renewed? Counted on our own steady clock from the moment we saw it change: the time written
// in it is its holder's, and both clocks may be wrong or be set.
import type { Lease } from '../api/generated/types.ts'
import { refKey } from '../api/meta.ts'
import type { Clock } from '../clock/clock.ts'
import type { Informer } from './informer.ts'

export interface LeaseSilence extends Disposable {
  /** NaN for a lease that was never renewed. */
  silentMs(lease: Lease): number
}

interface Heard {
  readonly renewTime: string
  /** By the steady clock. */
  readonly at: number
}

/** Before we have seen it change, a lease is as old as it says, unless it says that it comes from the future. */
export function createLeaseSilence(leases: Informer<Lease>, clock: Clock): LeaseSilence {
  const heard = new Map<string, Heard>()
  const noteLease = (lease: Lease): Heard | undefined => {
    const renewTime = lease.spec?.renewTime
    const written = Date.parse(renewTime ?? '')
    if (renewTime === undefined || Number.isNaN(written)) return undefined
    const key = refKey(lease.metadata)
    const before = heard.get(key)
    if (before?.renewTime === renewTime) return before
    const age = before === undefined ? Math.max(0, clock.now() - written) : 0
    const news = { renewTime, at: clock.steady() - age }
    heard.set(key, news)
    return news
  }
  const subscription = leases.subscribe((change) => {
    if (change.kind === 'removed') heard.delete(change.key)
    else noteLease(change.object)
  })
  return {
    silentMs(lease) {
      const news = noteLease(lease)
      return news === undefined ? Number.NaN : clock.steady() - news.at
    },
    [Symbol.dispose]: () => subscription[Symbol.dispose](),
  }
}
