// Is the other side still there? A peer that vanished without a word is noticed when it does not take a ping; one that we take
// leave of is there as long as it speaks.
import type { Clock } from '../clock/clock.ts'
import type { ByteStream } from './byte-stream.ts'

/** While nobody reads what it sends, a ping is the only way to learn that a client has gone. */
const pingMs = 5_000
/** As long as a kubelet bears silence: somebody may be looking at a page of the output before reading on. */
export const silenceMs = 4 * 3_600_000

/** Until the signal aborts; `lost` is called when a ping cannot be sent, and when the connection was destroyed under us. */
export async function keepAlive(
  clock: Clock,
  { gone }: Pick<ByteStream, 'gone'>,
  signal: AbortSignal,
  ping: () => Promise<void>,
  lost: () => void,
): Promise<void> {
  gone.addEventListener('abort', lost, { once: true })
  let waiting = false
  while (!signal.aborted) {
    await clock.sleep(pingMs, signal).catch(() => {})
    // Whoever takes nothing is not asked twice: what waits for it would only grow.
    if (signal.aborted || waiting) continue
    waiting = true
    ping().then(() => (waiting = false), lost)
  }
}

/**
 * After our last word: resolves when the connection is over, or the other side has fallen silent. Whoever still speaks may still
 * be reading, and a connection that is closed under its words takes back those of ours that it has not read.
 */
export async function takeLeave(clock: Clock, over: AbortSignal, heard: () => number): Promise<void> {
  for (let before = -1; !over.aborted && heard() !== before;) {
    before = heard()
    await clock.sleep(silenceMs, over).catch(() => {})
  }
}
