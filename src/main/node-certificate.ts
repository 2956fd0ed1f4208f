// Does the node's certificate live as long as its agent? It is renewed when two thirds of its time are over, and tried again
// every few minutes until that works.
import type { HttpTransport } from '../client/http.ts'
import type { Clock } from '../clock/clock.ts'
import { certificateTimes, renewCertificate } from '../installation/join.ts'
import type { Log } from '../telemetry/log.ts'

const retryMs = 5 * 60_000
/** Timers hold no longer; and the clock may have been set meanwhile. */
const longestSleepMs = 12 * 3600_000

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
    while (!signal.aborted) {
      const times = certificateTimes(config.dataDirectory)
      if (times === undefined) return
      const waitMs = times.from + ((times.until - times.from) * 2) / 3 - clock.now()
      if (waitMs > 0) await clock.sleep(Math.min(waitMs, longestSleepMs), signal)
      else
        await renew().catch(async (error: unknown) => {
          signal.throwIfAborted()
          log.warn('the certificate of the node could not be renewed', { node: config.node, until: times.until, error })
          await clock.sleep(retryMs, signal)
        })
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
