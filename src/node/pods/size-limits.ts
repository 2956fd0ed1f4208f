// Does a pod keep to the size limits of its volumes? Where the kernel does not enforce a limit (emptyDir on disk), the volume is
// measured now and then, and a pod that exceeds it is evicted before it fills the disk for all (EMPTY-10).
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Filesystems } from '../../host/host.ts'
import type { Log } from '../../telemetry/log.ts'
import type { PodView } from './pods.ts'
import type { VolumeManager } from '../volumes/manager.ts'

export interface SizeLimitsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly filesystems: Pick<Filesystems, 'treeUsage'>
  readonly manager: Pick<VolumeManager, 'mountedVolumes'>
  pods(): readonly PodView[]
  evict(pod: PodUid, message: string): void
}

const everyMs = 10_000
/** Counting a large tree takes long: then it is counted more seldom, and never keeps more than a fiftieth of a core busy. */
const restPerWork = 50
/** A tree that cannot be counted in this time is not counted; the others are. */
const longestMs = 60_000

/** Until the signal aborts. */
export async function watchSizeLimits(deps: SizeLimitsDeps, signal: AbortSignal): Promise<void> {
  const { clock } = deps
  for (let restMs = everyMs; !signal.aborted;) {
    await clock.sleep(restMs, signal).catch(() => {})
    const began = clock.now()
    for (const { pod, uid } of deps.pods()) if (!signal.aborted) await check(deps, pod, uid, signal)
    restMs = Math.max(everyMs, (clock.now() - began) * restPerWork)
  }
}

async function check(deps: SizeLimitsDeps, pod: Pod, uid: PodUid, signal: AbortSignal): Promise<void> {
  const mountedVolumes = deps.manager.mountedVolumes(uid)
  for (const { name } of pod.spec?.volumes ?? []) {
    const mounted = mountedVolumes.get(name)
    const limit = mounted?.traits?.sizeLimit?.(mounted.spec)
    if (!mounted || !limit) continue
    using deadline = deps.clock.deadline(longestMs, signal)
    try {
      const { usedBytes } = await deps.filesystems.treeUsage(mounted.path, deadline.signal)
      if (usedBytes > limit.bytes) return deps.evict(uid, limit.exceededMessage)
    } catch (error) {
      if (!signal.aborted) deps.log.debug('size of a volume unknown', { pod: uid, volume: name, error })
    }
  }
}
