// Is a volume ill? Drivers of the older protocol say so in their lists; the claim's user hears of it as an event, and
// again when it is well (SIDE-51).
import { createKeyLoop } from '../../loop/key-loop.ts'
import { timeouts } from '../deadline.ts'
import { jobBackoff } from './job.ts'
import type { JobDeps } from './job.ts'

const pollMs = 300_000

export function createHealthMonitor(deps: JobDeps): AsyncDisposable {
  const { clock, log, driver, informers, recorder } = deps
  const volumes = informers.of('PersistentVolume')
  const claims = informers.of('PersistentVolumeClaim')
  const abnormal = new Set<string>()
  const loop = createKeyLoop<'poll'>({
    name: `health ${driver.name}`,
    clock,
    workers: 1,
    backoff: jobBackoff,
    async look(_key, signal) {
      if (deps.active()) await compare(signal)
      return { again: clock.now() + pollMs }
    },
    onError: (_key, error) => log.warn('volume health unknown', { driver: driver.name, error }),
  })
  const compare = async (signal: AbortSignal) => {
    const listed = await driver.controller(timeouts.health).listVolumes(signal)
    const byHandle = new Map(listed.map((each) => [each.volume.volumeId, each.condition]))
    for (const volume of volumes.items.values()) {
      const { csi, claimRef } = volume.spec ?? {}
      if (csi?.driver !== driver.name || volume.status?.phase !== 'Bound' || !claimRef?.name) continue
      const condition = byHandle.get(csi.volumeHandle)
      const claim = claims.get(`${claimRef.namespace ?? ''}/${claimRef.name}`)
      if (!condition || !claim) continue
      const name = volume.metadata.name
      if (condition.abnormal) {
        abnormal.add(name)
        recorder.event(
          { kind: 'PersistentVolumeClaim', object: claim },
          'Warning',
          'VolumeConditionAbnormal',
          condition.message,
        )
      } else if (abnormal.delete(name)) {
        recorder.event(
          { kind: 'PersistentVolumeClaim', object: claim },
          'Normal',
          'VolumeConditionNormal',
          'The Volume returns to the healthy state',
        )
      }
    }
  }
  loop.wakeAt('poll', clock.now() + pollMs)
  return loop
}
