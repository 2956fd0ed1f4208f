// When is memory given back? Once a burst of writes is over and the store has come to rest: what the burst left behind
// would otherwise stay resident until the next one. Nothing runs while nothing changes.
import type { Clock } from '../clock/clock.ts'
import type { Revision, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'

/** So many changes leave garbage worth a collection. */
const burst = 2_000
/** A collection takes compiled code along: after a short breath the next burst must not have to begin anew. */
const calmMs = 3_500
/** Up to so many changes within that time, such as the history written behind the work, count as calm. */
const calmChanges = 1_000
/** And up to so many as quiet: leases of a few nodes. */
const quietChanges = 20

export interface IdleMemoryDeps {
  readonly store: Pick<Store, 'revision' | 'watch'>
  readonly clock: Clock
  readonly log: Log
  /** What the start left behind is kept for so long, unless a burst is over before. */
  readonly keepMs?: number
  readonly giveBack: () => void
}

/** Starting is a burst, too: what was loaded was parsed, sorted and told to every part. */
export function giveBackWhenCalm({ store, clock, log, keepMs = 0, giveBack }: IdleMemoryDeps): AsyncDisposable {
  const stop = new AbortController()
  const { signal } = stop
  const dueAt = clock.now() + keepMs
  const run = async (): Promise<void> => {
    let given: Revision = store.revision()
    let isFirst = true
    // A steady trickle never counts as a burst, however long it lasts: it must not be interrupted every now and then.
    let wasBusy = true
    while (!signal.aborted) {
      const before = store.revision()
      await clock.sleep(calmMs, signal)
      const now = store.revision()
      if (now - before > calmChanges) {
        wasBusy = true
        continue
      }
      const isQuiet = now - before <= quietChanges
      const isDue = isFirst && clock.now() >= dueAt
      if ((wasBusy || isQuiet) && (isDue || now - given >= burst)) {
        given = now
        isFirst = false
        wasBusy = false
        giveBack()
      }
      if (!isQuiet) continue
      using due = isFirst ? clock.deadline(dueAt - clock.now(), signal) : undefined
      await nextChange(store, now, due?.signal ?? signal)
    }
  }
  const done = run().catch((error: unknown) => {
    // Memory is a courtesy: the server works on without it.
    if (!signal.aborted) log.warn('memory is no longer given back', { error: String(error) })
  })
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await done
    },
  }
}

async function nextChange(store: IdleMemoryDeps['store'], after: Revision, signal: AbortSignal): Promise<void> {
  for await (const _change of store.watch('/', after, signal)) return
}
