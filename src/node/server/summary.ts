// How much do the node and its pods use? The kubelet's /stats/summary: above all the volumes, of which only we know.
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Usage } from '../../volume/plugin.ts'
import type { PodView } from '../pods/pods.ts'
import type { VolumeStats } from '../report/volume-stats.ts'

/** What the machine says of itself; what it cannot tell is absent. */
export interface MachineUsage {
  readonly cpu?: { readonly usageCoreNanoSeconds: number }
  readonly memory?: { readonly availableBytes: number; readonly usageBytes: number; readonly workingSetBytes: number }
  /** The filesystem of the node's root. */
  readonly fs?: FilesystemUsage
}

export interface FilesystemUsage {
  readonly availableBytes: number
  readonly capacityBytes: number
  readonly usedBytes: number
  readonly inodesFree: number
  readonly inodes: number
  readonly inodesUsed: number
}

export interface SummaryDeps {
  readonly clock: Clock
  readonly node: string
  readonly startedAt: number
  readonly stats: VolumeStats
  pods(): readonly PodView[]
  machine(): Promise<MachineUsage>
}

export async function summaryOf(deps: SummaryDeps, signal: AbortSignal): Promise<object> {
  const { clock, node, startedAt } = deps
  const time = timestamp(clock.now())
  const { cpu, memory, fs } = await deps.machine()
  const pods = await Promise.all(deps.pods().map((view) => podSummary(deps, view, signal)))
  return {
    node: {
      nodeName: node,
      startTime: timestamp(startedAt),
      ...(cpu ? { cpu: { time, ...cpu } } : {}),
      ...(memory ? { memory: { time, ...memory } } : {}),
      ...(fs ? { fs: { time, ...fs } } : {}),
    },
    pods: pods.flatMap((pod) => pod ?? []),
  }
}

async function podSummary(deps: SummaryDeps, view: PodView, signal: AbortSignal): Promise<object | undefined> {
  const { pod, uid, containers } = view
  const { name, namespace } = pod.metadata
  const started = [...containers].flatMap(([container, { record }]) =>
    record ? [{ name: container, startTime: timestamp(record.startedAt) }] : [],
  )
  const startTime = pod.status?.startTime
  return {
    podRef: { name, namespace, uid },
    ...(startTime === undefined ? {} : { startTime }),
    containers: started,
    volume: await volumesOf(deps, pod, uid, signal),
  }
}

async function volumesOf(
  { stats, clock }: SummaryDeps,
  pod: Pod,
  uid: PodUid,
  signal: AbortSignal,
): Promise<readonly object[]> {
  const usages = await stats.ofPod(uid, signal)
  // One that did not answer is named, without a figure.
  const unknown = { time: timestamp(clock.now()) }
  return [...usages].map(([name, usage]) => ({
    ...(usage === 'unknown' ? unknown : volumeStats(usage)),
    name,
    ...claimOf(pod, name),
  }))
}

function volumeStats(usage: Usage): object {
  const { time, capacityBytes, usedBytes, availableBytes, inodes, inodesFree, inodesUsed } = usage
  const known = { capacityBytes, usedBytes, availableBytes, inodes, inodesFree, inodesUsed }
  const numbers = Object.entries(known).flatMap(([name, value]) => (value === undefined ? [] : [[name, Number(value)]]))
  return { time: timestamp(time), ...(Object.fromEntries(numbers) as object) }
}

function claimOf(pod: Pod, volume: string): { readonly pvcRef?: object } {
  const found = pod.spec?.volumes?.find(({ name }) => name === volume)
  const { namespace, name: podName } = pod.metadata
  const name = found?.persistentVolumeClaim?.claimName ?? (found?.ephemeral ? `${podName}-${volume}` : undefined)
  return name === undefined ? {} : { pvcRef: { name, namespace } }
}
