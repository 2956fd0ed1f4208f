// How full are the volumes? Asked of their plugins on demand and remembered for a minute; claims also as metrics.
import type { PodUid, UniqueVolumeName } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { hasTag } from '../../volume/effect.ts'
import { pluginLabel } from '../../volume/identity.ts'
import type { NodePlugin, Usage } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { ActualWorld } from '../volumes/actual.ts'
import type { DesiredWorld } from '../volumes/desired.ts'
import type { VolumeManager } from '../volumes/manager.ts'

export interface VolumeStats {
  /** Outer name → usage, for volumes whose plugin can tell; unknown when its storage fails or does not answer in time. */
  ofPod(pod: PodUid, signal: AbortSignal): Promise<ReadonlyMap<string, Usage | 'unknown'>>
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
/** Somebody waits for the summary. */
const summaryMs = 5_000
/** Nobody waits for the metrics, and a large tree takes its time. */
const metricsMs = 60_000
/** So many claims are asked at once: a few dead ones do not hold up the others. */
const atOnce = 8

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
  /** Every volume has a deadline of its own: one that does not answer must not keep the others from being told. */
  const ask = async (volume: UniqueVolumeName, pod: PodUid, timeoutMs: number, signal: AbortSignal) => {
    using deadline = clock.deadline(timeoutMs, signal)
    try {
      return await usageOf(volume, pod, deadline.signal)
    } catch (error) {
      if (hasTag(error, 'notSupported')) return undefined
      deps.log.debug('volume usage unknown', { volume, error })
      return 'unknown'
    }
  }
  return {
    async ofPod(pod, signal) {
      const volumes = [...manager.mountedVolumes(pod)]
      const usages = await Promise.all(volumes.map(([, { volume }]) => ask(volume, pod, summaryMs, signal)))
      return new Map(
        volumes.flatMap(([name], index) => {
          const usage = usages[index]
          return usage ? [[name, usage]] : []
        }),
      )
    },
    async refreshClaims(signal) {
      for (const volume of remembered.keys()) if (!desired.items.has(volume)) remembered.delete(volume)
      const answered: [ClaimLabels, Usage][] = []
      const waiting = [...desired.items.values()].values()
      const askInTurn = async () => {
        for (const { volume, pods } of waiting) {
          const [mount] = pods.values()
          const claim = mount?.spec.persistentVolume?.spec?.claimRef
          if (!mount || !claim?.name || signal.aborted) continue
          const usage = await ask(volume, mount.uid, metricsMs, signal)
          if (usage === undefined || usage === 'unknown') continue
          const labels = { namespace: claim.namespace ?? '', persistentvolumeclaim: claim.name }
          answered.push([labels, usage])
          gauges.set(labels, usage)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, askInTurn))
      if (signal.aborted) return
      // Only now the figures of those go that did not answer, or are no more: meanwhile the old ones are better than none.
      gauges.reset()
      for (const [labels, usage] of answered) gauges.set(labels, usage)
    },
  }
}

/** MEA-8: one per volume and pod; what is in doubt does not count as mounted. */
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
