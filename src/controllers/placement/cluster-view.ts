// What does the placement know of the cluster? Lookups only; the filters over them are pure.
import type {
  CSIDriver,
  CSINode,
  CSIStorageCapacity,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  VolumeAttachment,
} from '../../api/generated/types.ts'
import { hasEnded, isTerminated } from '../../api/pod-claims.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Index, Informers } from '../../client/informer.ts'
import type { VolumeIndex } from '../shared/volume-index.ts'
import type { DecidedPod } from './decision.ts'

export interface ClusterView {
  claim(key: string): PersistentVolumeClaim | undefined
  volume(name: string): PersistentVolume | undefined
  storageClass(name: string): StorageClass | undefined
  csiDriver(name: string): CSIDriver | undefined
  csiNode(nodeName: string): CSINode | undefined
  /** CSINodes on which this driver is registered. */
  csiNodesOf(driver: string): Iterable<CSINode>
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

export interface ViewParts {
  readonly informers: Informers
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  readonly podsByNode: Index<Pod>
  readonly podsByClaim: Index<Pod>
  readonly freeVolumes: VolumeIndex
  readonly decisions: ReadonlyMap<string, DecidedPod>
  readonly spokenFor: ReadonlySet<string>
}

export function createClusterView(parts: ViewParts): ClusterView {
  const { informers, claims, volumes, podsByNode, podsByClaim, decisions } = parts
  const classes = informers.of('StorageClass')
  const drivers = informers.of('CSIDriver')
  const csiNodes = informers.of('CSINode')
  const csiNodesByDriver = csiNodes.index(({ spec }) => spec.drivers.map(({ name }) => name))
  const attachmentsByNode = informers.of('VolumeAttachment').index((attachment) => [attachment.spec.nodeName])
  const capacitiesByClass = informers.of('CSIStorageCapacity').index((capacity) => [capacity.storageClassName])
  const sentTo = (nodeName: string) =>
    Array.from(decisions.values()).flatMap(({ pod, decision }) =>
      !pod.spec?.nodeName && decision.node.metadata.name === nodeName ? [pod] : [],
    )
  return {
    claim: claims.get,
    volume: volumes.get,
    storageClass: classes.get,
    csiDriver: drivers.get,
    csiNode: csiNodes.get,
    csiNodesOf: (driver) => csiNodesByDriver.get(driver),
    podsOn: (nodeName) => [
      ...Array.from(podsByNode.get(nodeName)).filter((pod) => !isTerminated(pod)),
      ...sentTo(nodeName),
    ],
    placedPodsOf: (key) =>
      Array.from(podsByClaim.get(key)).filter(
        // A terminating pod still counts; one that succeeded or failed does not (RWP-2).
        (pod) => (pod.spec?.nodeName && !hasEnded(pod)) || decisions.has(pod.metadata.uid ?? ''),
      ),
    attachmentsOn: (nodeName) => attachmentsByNode.get(nodeName),
    capacities: (className) => capacitiesByClass.get(className),
    freeVolumes: parts.freeVolumes,
    isSpokenFor: (name) => parts.spokenFor.has(name),
  }
}
