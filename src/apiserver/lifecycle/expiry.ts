// What is only worth keeping for a while? Events live for an hour after their last change, as in Kubernetes.
// One timer for the next one to expire. How old an event is is read from it once, and counted on a clock that nobody sets from then on.
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Event } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import { isStoreError } from '../../store/store.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import type { LifecycleDeps } from './garbage.ts'

const eventLifeMs = 60 * 60_000
/** Several events go together; being late by this much harms nobody. */
const roundMs = 60_000
/** A new event is looked at within this time, so that one from before the clock was set is known by then. */
const firstLookMs = 10 * 60_000

/** Runs until the signal aborts. */
export async function expireEvents({ context, log }: LifecycleDeps, signal: AbortSignal): Promise<void> {
  const info = kinds.Event
  const { clock } = context
  /** When each version of an event ends, on the steady clock. */
  let ends = new Map<string, number>()
  while (!signal.aborted) {
    try {
      const { entries } = await context.store.list(prefixOf(info, undefined), {})
      const kept = new Map<string, number>()
      for (const entry of entries) {
        const version = `${entry.key} ${entry.revision}`
        const end = ends.get(version) ?? endOf(context.objects.decode(info, entry), clock)
        if (end > clock.steady()) kept.set(version, end)
        else await context.store.remove(entry.key, entry.revision).catch(ignoreRaces)
      }
      ends = kept
      const next = kept.values().reduce((first, end) => Math.min(first, end), clock.steady() + firstLookMs)
      await clock.sleep(Math.max(roundMs, next - clock.steady()), signal)
    } catch (error) {
      if (signal.aborted) return
      log.warn('expiring events failed', { error })
      await clock.sleep(roundMs, signal).catch(() => {})
    }
  }
}

/** One from the future was written while the clock was wrong: it counts from now. */
function endOf(object: KubeObject, clock: Clock): number {
  return clock.steady() + eventLifeMs - Math.max(0, clock.now() - lastSeen(object))
}

function lastSeen(object: KubeObject): number {
  const event = object as Event
  const times = [event.lastTimestamp, event.series?.lastObservedTime, event.eventTime, event.metadata.creationTimestamp]
  const known = times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time))
  return known.length === 0 ? 0 : Math.max(...known)
}

function ignoreRaces(error: unknown): void {
  if (!isStoreError(error, 'conflict') && !isStoreError(error, 'missing')) throw error
}
