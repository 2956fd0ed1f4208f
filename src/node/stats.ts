// How full are the volumes? Asked of their plugins on demand and remembered for a minute; claims also as metrics.
import type { PodUid, UniqueVolumeName } from '../api/names.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { NodePlugin, Usage } from '../volume/plugin.ts'
import type { Registry } from '../volume/registry.ts'
import { pluginLabel } from './operations/steps.ts'
import type { ActualWorld } from './volumes/actual.ts'
import type { DesiredWorld } from './volumes/desired.ts'
import type { VolumeManager } from './volumes/manager.ts'

export interface VolumeStats {
  /** Outer name → usage, for volumes whose plugin can tell. */
  ofPod(pod: PodUid, signal: AbortSignal): Promise<ReadonlyMap<string, Usage>>
  /** Asks for every mounted claim and keeps the answers as kubelet_volume_stats_* metrics. */
  refreshClaims(signal: AbortSignal): Promise<void>
}

export interface StatsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly registry: Registry<NodePlugin>
  readonly manager: VolumeManager
  readonly desired: DesiredWorld
}

const freshMs = 60_000

export function createVolumeStats(deps: StatsDeps): VolumeStats {
  const { clock, registry, manager, desired } = deps
  const remembered = new Map<UniqueVolumeName, Usage>()
  const gauges = createGauges(deps.metrics)

  const usageOf = async (volume: UniqueVolumeName, pod: PodUid, signal: AbortSignal): Promise<Usage | undefined> => {
    const known = remembered.get(volume)
    if (known && clock.now() - known.time < freshMs) return known
    const item = desired.items.get(volume)
    const mounted = [...manager.mountedVolumes(pod).values()].find((each) => each.volume === volume)
    if (!item || !mounted) return undefined
    const { plugin } = registry.byName(item.plugin)
    const usage = await plugin.usage?.({ spec: mounted.spec, path: mounted.path }, signal)
    if (usage) remembered.set(volume, usage)
    return usage
  }
  return {
    async ofPod(pod, signal) {
      const found = new Map<string, Usage>()
      for (const [name, { volume }] of manager.mountedVolumes(pod)) {
        try {
          const usage = await usageOf(volume, pod, signal)
          if (usage) found.set(name, usage)
        } catch (error) {
          // One that does not answer must not keep the others from being told.
          deps.log.debug('volume usage unknown', { volume, error })
        }
      }
      return found
    },
    async refreshClaims(signal) {
      for (const volume of remembered.keys()) if (!desired.items.has(volume)) remembered.delete(volume)
      gauges.reset()
      for (const { volume, pods } of [...desired.items.values()]) {
        const [mount] = pods.values()
        const claim = mount?.spec.persistentVolume?.spec?.claimRef
        if (!mount || !claim?.name) continue
        try {
          const usage = await usageOf(volume, mount.uid, signal)
          if (usage) gauges.set({ namespace: claim.namespace ?? '', persistentvolumeclaim: claim.name }, usage)
        } catch (error) {
          if (signal.aborted) return
          deps.log.debug('volume usage unknown', { volume, error })
        }
      }
    },
  }
}

/** MET-8: one per volume and pod; what is in doubt does not count as mounted. */
export function countVolumes(metrics: Metrics, desired: DesiredWorld, actual: ActualWorld): void {
  const labels = ['plugin_name', 'state'] as const
  metrics.gauge('volume_manager_total_volumes', 'Number of volumes in Volume Manager', labels, (gauge) => {
    gauge.reset()
    for (const { plugin, pods } of desired.items.values()) {
      for (const { spec } of pods.values())
        gauge.inc({ plugin_name: pluginLabel(plugin, spec), state: 'desired_state_of_world' })
    }
    for (const { plugin, pods } of actual.items.values()) {
      for (const { spec, presence } of pods.values()) {
        if (presence === 'present')
          gauge.inc({ plugin_name: pluginLabel(plugin, spec), state: 'actual_state_of_world' })
      }
    }
  })
}

type ClaimLabels = { readonly namespace: string; readonly persistentvolumeclaim: string }

function createGauges(metrics: Metrics) {
  const labels = ['namespace', 'persistentvolumeclaim'] as const
  const gauge = (name: string, help: string) => metrics.gauge(`kubelet_volume_stats_${name}`, help, labels)
  const parts = [
    [gauge('capacity_bytes', 'Capacity in bytes of the volume'), (usage: Usage) => usage.capacityBytes],
    [gauge('available_bytes', 'Number of available bytes in the volume'), (usage: Usage) => usage.availableBytes],
    [gauge('used_bytes', 'Number of used bytes in the volume'), (usage: Usage) => usage.usedBytes],
    [gauge('inodes', 'Maximum number of inodes in the volume'), (usage: Usage) => usage.inodes],
    [gauge('inodes_free', 'Number of free inodes in the volume'), (usage: Usage) => usage.inodesFree],
    [gauge('inodes_used', 'Number of used inodes in the volume'), (usage: Usage) => usage.inodesUsed],
  ] as const
  return {
    reset: () => {
      for (const [each] of parts) each.reset()
    },
    set(claim: ClaimLabels, usage: Usage) {
      for (const [each, pick] of parts) {
        const value = pick(usage)
        if (value !== undefined) each.set(claim, Number(value))
      }
    },
  }
}
