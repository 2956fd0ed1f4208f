// What is only worth keeping for a while? Events live for an hour after their last change, as in Kubernetes.
// One timer for the next one to expire; entries are looked at in the order they were written.
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Event } from '../../api/generated/types.ts'
import { isStoreError } from '../../store/store.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import type { LifecycleDeps } from './garbage.ts'

const eventLifeMs = 60 * 60_000
/** Several events go together; being late by this much harms nobody. */
const roundMs = 60_000

/** Runs until the signal aborts. */
export async function expireEvents({ context, log }: LifecycleDeps, signal: AbortSignal): Promise<void> {
  const info = kinds.Event
  while (!signal.aborted) {
    try {
      let next = context.clock.now() + eventLifeMs
      const { entries } = await context.store.list(prefixOf(info, undefined), {})
      for (const entry of entries) {
        const end = lastSeen(context.objects.decode(info, entry)) + eventLifeMs
        if (end > context.clock.now()) next = Math.min(next, end)
        else await context.store.remove(entry.key, entry.revision).catch(ignoreRaces)
      }
      await context.clock.sleep(Math.max(roundMs, next - context.clock.now()), signal)
    } catch (error) {
      if (signal.aborted) return
      log.warn('expiring events failed', { error })
      await context.clock.sleep(roundMs, signal).catch(() => {})
    }
  }
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
