// Is the other side still there? A peer that vanished is noticed when a ping cannot be sent; after our own close, a peer is
// there as long as it sends something.
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
    // A peer that reads nothing gets no second ping: the queue for it would only grow.
    if (signal.aborted || waiting) continue
    waiting = true
    ping().then(() => (waiting = false), lost)
  }
}

/**
 * After our close: resolves when the connection is over, or the other side has sent nothing for a long time. A peer that still
 * sends may still be reading, and a connection that is closed while it sends loses what it has not read of ours.
 */
export async function waitForPeer(clock: Clock, over: AbortSignal, received: () => number): Promise<void> {
  for (let before = -1; !over.aborted && received() !== before;) {
    before = received()
    await clock.sleep(silenceMs, over).catch(() => {})
  }
}
