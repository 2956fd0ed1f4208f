// How does a pod wait for its volumes, and when do people hear of it? For as long as it takes. What passes by itself within a
// moment is not told, and the same text is told again only after a while.
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import { eventReasons } from '../../volume/messages.ts'
import { usesMore } from '../volumes/claims.ts'
import type { VolumeManager } from '../volumes/manager.ts'
import { VolumesNotReady } from '../volumes/manager.ts'
import type { PodWorld } from './pod-record.ts'

export interface VolumeWaitDeps {
  readonly clock: Clock
  readonly log: Log
  readonly manager: Pick<VolumeManager, 'mounted'>
  readonly pods: Pick<PodWorld, 'items'>
  tell(pod: PodUid, type: 'Warning', reason: string, message: string): void
}

/** `exhausted`: no wait helps, the node can hold no more volumes. */
export type VolumeWaitEnd =
  | { readonly kind: 'ready' | 'stopped' }
  | { readonly kind: 'exhausted'; readonly text: string }

const repeatMs = 60_000
const quietMs = 1_500

export async function waitForVolumes(deps: VolumeWaitDeps, uid: PodUid, signal: AbortSignal): Promise<VolumeWaitEnd> {
  const { clock, log, manager, pods } = deps
  let told = { text: '', at: 0 }
  let heard = { text: '', at: 0 }
  for (let pod = pods.items.get(uid)?.pod; pod && !signal.aborted; pod = pods.items.get(uid)?.pod) {
    try {
      await manager.mounted(pod, signal)
      const now = pods.items.get(uid)?.pod
      if (now && !usesMore(now, pod)) return { kind: 'ready' }
    } catch (error) {
      if (signal.aborted) break
      if (!(error instanceof VolumesNotReady)) {
        log.error('waiting for volumes failed', { pod: uid, error })
        await clock.sleep(1_000, signal).catch(() => {})
        continue
      }
      if (error.why === 'exhausted') return { kind: 'exhausted', text: error.message }
      // A claim is often bound a moment after it was made: what passes by itself is no news for anybody.
      if (error.message !== heard.text) heard = { text: error.message, at: clock.now() }
      if (error.why === 'error' && clock.now() - heard.at < quietMs) continue
      const text = `Unable to attach or mount volumes: ${error.message}`
      if (text === told.text && clock.now() - told.at < repeatMs) continue
      told = { text, at: clock.now() }
      deps.tell(uid, 'Warning', eventReasons.mountFailed, text)
    }
  }
  return { kind: 'stopped' }
}
