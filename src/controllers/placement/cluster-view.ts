// What does the placement know of the cluster? Lookups only; the filters over it are pure.
import type {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  VolumeAttachment,
} from '../../api/types.ts'
import type { VolumeIndex } from '../binding/volume-index.ts'

export interface ClusterView {
  claim(key: string): PersistentVolumeClaim | undefined
  volume(name: string): PersistentVolume | undefined
  storageClass(name: string): StorageClass | undefined
  csiDriver(name: string): CSIDriver | undefined
  csiNode(nodeName: string): CSINode | undefined
  /** Pods on the node, those we have just sent there included, without those that are over. */
  podsOn(nodeName: string): Iterable<Pod>
  /** Placed pods that name this claim, on any node. */
  placedPodsOf(claimKey: string): Iterable<Pod>
  attachmentsOn(nodeName: string): Iterable<VolumeAttachment>
  capacities(className: string): Iterable<CSIStorageCapacity>
  readonly freeVolumes: VolumeIndex
  /** Volumes chosen for another pod and not yet written. */
  isSpokenFor(volumeName: string): boolean
}

/** Why a node cannot take a pod, in the words users know; several may hold. */
export type Refusals = readonly string[]

export type NodeFilter = (pod: Pod, node: Node) => Refusals
