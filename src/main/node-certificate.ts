// Does the node's certificate live as long as its agent? It is renewed when two thirds of its time are over, and tried again
// every few minutes until that works. How much of its time is left is read from it once, when the agent begins to use it, and counted on a clock
// that nobody sets from then on: an agent whose clock is wrong renews neither too late nor again and again.
import type { HttpTransport } from '../client/http.ts'
import type { Clock } from '../clock/clock.ts'
import { certificateEnd, renewCertificate } from '../installation/join.ts'
import type { Log } from '../telemetry/log.ts'

const retryMs = 5 * 60_000
const dayMs = 24 * 3600_000
/** What the server gives. When a certificate begins says nothing: they count from 1970, for machines whose clock is not set yet. */
const lifetimeMs = 90 * dayMs
/** Timers hold no longer. */
const longestSleepMs = dayMs / 2

/** How long to use a certificate of which so much time is left. One that is new and over all the same is asked for daily: clocks differ. */
export function renewAfterMs(leftMs: number, isNew: boolean): number {
  const usedMs = isNew ? 0 : Math.max(0, lifetimeMs - leftMs)
  if (isNew && leftMs < dayMs) return dayMs
  return Math.max(0, (Math.min(lifetimeMs, isNew ? leftMs : lifetimeMs) * 2) / 3 - usedMs)
}

export function keepNodeCertificate(
  config: { readonly dataDirectory: string; readonly node: string },
  deps: { readonly transport: HttpTransport; readonly clock: Clock; readonly log: Log },
): AsyncDisposable {
  const { transport, clock, log } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const renew = async () => {
    transport.useCertificate(await renewCertificate(transport, config, signal))
    log.info('the certificate of the node was renewed', { node: config.node })
  }
  const keep = async () => {
    for (let isNew = false; !signal.aborted; isNew = true) {
      const until = certificateEnd(config.dataDirectory)
      if (until === undefined) return
      const due = clock.steady() + renewAfterMs(until - clock.now(), isNew)
      while (clock.steady() < due) await clock.sleep(Math.min(due - clock.steady(), longestSleepMs), signal)
      await untilRenewed(until)
    }
  }
  const untilRenewed = async (until: number) => {
    for (;;) {
      try {
        return await renew()
      } catch (error) {
        signal.throwIfAborted()
        log.warn('the certificate of the node could not be renewed', { node: config.node, until, error })
        await clock.sleep(retryMs, signal)
      }
    }
  }
  const running = keep().catch(() => {}) // ended by the signal
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping'))
      await running
    },
  }
}
