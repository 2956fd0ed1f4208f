// How does a pod wait for its volumes, and when do people hear of it? For as long as it takes; what passes by itself in a
// moment is no news, and the same words are said again only after a while.
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { eventReasons } from '../volume/messages.ts'
import type { PodWork } from './pod-work.ts'
import { usesMore } from './volumes/claims.ts'
import type { VolumeManager } from './volumes/manager.ts'
import { VolumesNotReady } from './volumes/manager.ts'
import type { Populator } from './volumes/populate.ts'

export interface VolumeWaitDeps {
  readonly clock: Clock
  readonly log: Log
  readonly manager: Pick<VolumeManager, 'mounted'>
  readonly populator: Pick<Populator, 'reprocess'>
  tell(work: PodWork, type: 'Warning', reason: string, message: string): void
  /** No wait helps. */
  reject(work: PodWork, reason: string, message: string): void
  ready(): void
}

/** The same words about waiting volumes are said again only after this long. */
const repeatMs = 60_000
const quietMs = 1_500

export async function waitForVolumes(deps: VolumeWaitDeps, work: PodWork, signal: AbortSignal): Promise<void> {
  const { clock, log, manager, populator } = deps
  let [said, heard] = [
    { text: '', at: 0 },
    { text: '', at: 0 },
  ]
  while (!signal.aborted && work.pod) {
    try {
      const { pod } = work
      await manager.mounted(pod, signal)
      if (usesMore(work.pod, pod)) continue
      work.volumesReady = true
      return deps.ready()
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof VolumesNotReady)) {
        log.error('waiting for volumes failed', { pod: work.uid, error })
        await clock.sleep(1_000, signal).catch(() => {})
        continue
      }
      if (error.why === 'time') populator.reprocess(work.uid) // whatever we did not hear of is read again
      if (error.why === 'exhausted') return deps.reject(work, eventReasons.attachLimit, error.message)
      // A claim is often bound a moment after it was made: what passes by itself is no news for anybody.
      if (error.message !== heard.text) heard = { text: error.message, at: clock.now() }
      if (error.why === 'error' && clock.now() - heard.at < quietMs) continue
      const text = `Unable to attach or mount volumes: ${error.message}`
      if (text === said.text && clock.now() - said.at < repeatMs) continue
      said = { text, at: clock.now() }
      deps.tell(work, 'Warning', eventReasons.mountFailed, text)
    }
  }
}
