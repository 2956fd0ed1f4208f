// What must be true once faults have stopped and time has passed? Everything wanted is there, everything else is gone,
// and everything that waits has a reason that can still end.
import type { Node, Pod, VolumeAttachment } from '../../api/generated/types.ts'
import type { AttachmentWaiting } from '../../controllers/attachment/plan.ts'
import type { Machine } from '../model/node.ts'
import type { ModelStorage } from '../model/storage.ts'

export interface SettledCluster {
  readonly pods: readonly Pod[]
  readonly nodes: readonly Node[]
  readonly attachments: readonly VolumeAttachment[]
  readonly machines: ReadonlyMap<string, Machine>
  readonly storage: ModelStorage
  readonly waiting: ReadonlyMap<string, readonly AttachmentWaiting[]>
  /** The volumes behind a pod's claims. */
  volumesOf(pod: Pod): readonly WantedBy[]
}

export interface WantedBy {
  readonly volume: string
  readonly handle: string
  /** One node at a time. */
  readonly exclusive: boolean
  /** One pod at a time. */
  readonly singlePod: boolean
}

/** Each sentence names something that should have settled and did not. */
export function unsettled(cluster: SettledCluster): readonly string[] {
  const wanted = wishes(cluster)
  return [
    ...stuckPods(cluster, wanted),
    ...leftAttached(cluster, wanted),
    ...wrongReports(cluster),
    ...pointlessWaits(cluster, wanted),
  ]
}

interface Wish {
  readonly nodes: Set<string>
  readonly exclusive: boolean
  readonly handle: string
  pods: number
}

type Wishes = ReadonlyMap<string, Readonly<Wish>>

function wishes({ pods, volumesOf }: SettledCluster): Wishes {
  const wanted = new Map<string, Wish>()
  for (const pod of pods) {
    for (const { volume, handle, exclusive } of volumesOf(pod)) {
      const wish = wanted.get(volume) ?? { nodes: new Set(), exclusive, handle, pods: 0 }
      wanted.set(volume, wish)
      wish.nodes.add(pod.spec?.nodeName ?? '')
      wish.pods++
    }
  }
  return wanted
}

/** A pod runs, unless a volume of it is rightly with another node or pod that wants it too. */
function stuckPods({ pods, machines, volumesOf }: SettledCluster, wanted: Wishes): string[] {
  return pods.flatMap((pod) => {
    if (pod.metadata.deletionTimestamp) return [`pod ${pod.metadata.name} never finished leaving`]
    const machine = machines.get(pod.spec?.nodeName ?? '')
    if (machine?.running.has(pod.metadata.uid ?? '')) return []
    const contested = volumesOf(pod).some(({ volume, exclusive, singlePod }) => {
      const { nodes, pods: users } = wanted.get(volume)!
      return (exclusive && nodes.size > 1) || (singlePod && users > 1)
    })
    return contested ? [] : [`pod ${pod.metadata.name} on ${pod.spec?.nodeName} does not run`]
  })
}

function leftAttached({ attachments, storage, machines }: SettledCluster, wanted: Wishes): string[] {
  const problems: string[] = []
  const expected = [...wanted.values()].reduce((sum, { nodes, exclusive }) => sum + (exclusive ? 1 : nodes.size), 0)
  if (attachments.length !== expected) problems.push(`${attachments.length} attachments, ${expected} wanted`)
  if (storage.published !== expected) problems.push(`${storage.published} published, ${expected} wanted`)
  for (const { metadata, status } of attachments) {
    if (!status?.attached || metadata.deletionTimestamp) problems.push(`attachment ${metadata.name} did not settle`)
  }
  for (const [volume, { nodes, handle }] of wanted) {
    for (const holder of storage.holders(handle))
      if (!nodes.has(holder)) problems.push(`${volume} is still on ${holder}`)
  }
  for (const [node, { mounted }] of machines) {
    for (const volume of mounted)
      if (!wanted.get(volume)?.nodes.has(node)) problems.push(`${volume} is still mounted on ${node}`)
  }
  return problems
}

/** Node status tells the truth: attached is what the storage holds there, in use covers what is mounted. */
function wrongReports({ nodes, storage, machines }: SettledCluster): string[] {
  return nodes.flatMap(({ metadata, status }) => {
    const problems: string[] = []
    for (const { name } of status?.volumesAttached ?? []) {
      const handle = name.slice(name.indexOf('^') + 1)
      if (!storage.holders(handle).has(metadata.name))
        problems.push(`${metadata.name} reports ${name}, which is not there`)
    }
    const inUse = new Set(status?.volumesInUse ?? [])
    for (const volume of machines.get(metadata.name)?.mounted ?? []) {
      if (!inUse.has(volume)) problems.push(`${metadata.name} uses ${volume} and does not say so`)
    }
    return problems
  })
}

/** In the end only contested exclusive volumes may wait. */
function pointlessWaits({ waiting }: SettledCluster, wanted: Wishes): string[] {
  return [...waiting].flatMap(([volume, reasons]) => {
    const wish = wanted.get(volume)
    const contested = wish !== undefined && wish.exclusive && wish.nodes.size > 1
    return reasons
      .filter(({ reason }) => !(contested && (reason === 'attachedElsewhere' || reason === 'anotherNodeFirst')))
      .map(({ reason, node }) => `${volume} still waits on ${node}: ${reason}`)
  })
}
