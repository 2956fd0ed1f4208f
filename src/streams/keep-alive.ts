// Is the other side still there? A peer that vanished without a word is noticed when it does not take a ping.
import type { Clock } from '../clock/clock.ts'

const pingMs = 30_000

/** Until the signal aborts; `lost` is called when a ping cannot be sent. */
export async function keepAlive(
  clock: Clock,
  signal: AbortSignal,
  ping: () => Promise<void>,
  lost: () => void,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(pingMs, signal).catch(() => {})
    // Not awaited: a peer that takes nothing would keep us from asking again.
    if (!signal.aborted) ping().catch(lost)
  }
}
