// Can this node reach the pod's volumes, or could they be had there (SCH-4 … SCH-9, SZN, SLM, SRS, RWP)? Pure.
import { annotations, labels, noProvisioner } from '../../api/annotations.ts'
import { annotation, keyOf } from '../../api/meta.ts'
import { factsOfNode } from '../../api/node-selector.ts'
import { addAmounts, compareAmounts, parseQuantity } from '../../api/quantity.ts'
import type { Amount } from '../../api/quantity.ts'
import { matchesSelector } from '../../api/selectors.ts'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts'
import { classOf } from '../../api/storage-class.ts'
import { findVolume, isReachable, requestOf } from '../shared/match.ts'
import { claimsOf } from '../../api/pod-claims.ts'
import type { ClusterView, Refusals } from './cluster-view.ts'

export const reasons = {
  affinity: "node(s) didn't match PersistentVolume's node affinity",
  bindConflict: "node(s) didn't find available persistent volumes to bind",
  noDriver: "node(s) didn't have the CSI driver of the volume",
  noSpace: 'node(s) did not have enough free storage',
  volumeMissing: 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
  zone: 'node(s) had no available volume zone',
  limit: 'node(s) exceed max volume count',
  singlePod:
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
  diskConflict: 'node(s) had no available disk',
} as const

/** What would be done on this node for the pod's delayed claims. */
export interface NodeOffer {
  readonly node: Node
  readonly refusals: Refusals
  /** Free or reserved volumes chosen for claims, in order of size. */
  readonly takes: readonly { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }[]
  /** Claims to be provisioned for this node. */
  readonly provisions: readonly PersistentVolumeClaim[]
}

export interface VolumeDemand {
  readonly pod: Pod
  readonly bound: readonly PersistentVolumeClaim[]
  readonly delayed: readonly PersistentVolumeClaim[]
}

export function offerOfNode(demand: VolumeDemand, node: Node, view: ClusterView): NodeOffer {
  const boundVolumes = demand.bound.map((claim) => view.volume(claim.spec.volumeName ?? ''))
  const { takes, provisions, conflict, noDriver, noSpace } = forDelayed(demand.delayed, node, view)
  const drivers = driversOf(demand.pod, [...boundVolumes, ...takes.map(({ volume }) => volume)])
  // SCH-9: in this order.
  const refusals = [
    ...(boundVolumes.some((volume) => volume && !isReachable(volume, node)) ? [reasons.affinity] : []),
    ...(conflict ? [reasons.bindConflict] : []),
    ...(noDriver || drivers.some((driver) => !mayHaveDriver(driver, node, view)) ? [reasons.noDriver] : []),
    ...(noSpace ? [reasons.noSpace] : []),
    ...(boundVolumes.includes(undefined) ? [reasons.volumeMissing] : []),
    ...(boundVolumes.some((volume) => volume && !isInZone(volume, node)) ? [reasons.zone] : []),
    ...(exceedsLimit(demand, node, view) ? [reasons.limit] : []),
    ...(conflictsOnDisk(demand.pod, view.podsOn(node.metadata.name)) ? [reasons.diskConflict] : []),
  ]
  return { node, refusals, takes, provisions }
}

/** Drivers whose volumes are there already, or are made with the pod. */
const driversOf = (pod: Pod, volumes: readonly (PersistentVolume | undefined)[]): readonly string[] => [
  ...volumes.flatMap((volume) => volume?.spec.csi?.driver ?? []),
  ...(pod.spec?.volumes ?? []).flatMap(({ csi }) => csi?.driver ?? []),
]

/** RWP-2: wherever the other pod runs; ephemeral claims included (WC-28). */
export function singlePodConflict(pod: Pod, view: ClusterView): boolean {
  return claimsOf(pod).some((use) => {
    const claim = view.claim(use.key)
    if (claim?.spec.accessModes?.includes('ReadWriteOncePod') !== true) return false
    return Array.from(view.placedPodsOf(use.key)).some((other) => other.metadata.uid !== pod.metadata.uid)
  })
}

/** Claims with delayed binding take a free volume that the node reaches, or one is made there (SCH-5, SCH-6). */
function forDelayed(delayed: readonly PersistentVolumeClaim[], node: Node, view: ClusterView) {
  const takes: { claim: PersistentVolumeClaim; volume: PersistentVolume }[] = []
  const provisions: PersistentVolumeClaim[] = []
  const chosen = new Set<string>()
  const requested = new Map<string, Amount>()
  let conflict = false
  let noDriver = false
  let noSpace = false
  for (const claim of delayed) {
    const selected = annotation(claim, annotations.selectedNode)
    if (selected && selected !== node.metadata.name) {
      conflict = true
      continue
    }
    if (!selected) {
      const excluded = (name: string) => chosen.has(name) || view.isSpokenFor(name)
      const match = findVolume(view.freeVolumes, { claim, delayed: true, node, excluded })
      if (match.kind === 'reserved' || match.kind === 'free') {
        chosen.add(match.volume.metadata.name)
        takes.push({ claim, volume: match.volume })
        continue
      }
      // WC-16: a volume reserved for the claim out of this node's reach forbids making a second one.
      if (match.kind === 'wrongNode') {
        conflict = true
        continue
      }
    }
    const verdict = mayProvision(claim, node, view, requested)
    if (verdict === 'yes') provisions.push(claim)
    else if (verdict === 'noDriver') noDriver = true
    else if (verdict === 'noSpace') noSpace = true
    else conflict = true
  }
  return { takes, provisions, conflict, noDriver, noSpace }
}

/** SCH-7, SCH-8; WC-25: what the pod's claims ask of one class is added up. */
function mayProvision(
  claim: PersistentVolumeClaim,
  node: Node,
  view: ClusterView,
  requested: Map<string, Amount>,
): 'yes' | 'no' | 'noDriver' | 'noSpace' {
  const className = classOf(claim)
  const storageClass = view.storageClass(className)
  if (storageClass === undefined || !storageClass.provisioner || storageClass.provisioner === noProvisioner) return 'no'
  if (!isAllowed(storageClass, node)) return 'no'
  if (!mayHaveDriver(storageClass.provisioner, node, view)) return 'noDriver'
  const sum = addAmounts(requested.get(className) ?? parseQuantity('0'), parseQuantity(requestOf(claim)))
  requested.set(className, sum)
  if (view.csiDriver(storageClass.provisioner)?.spec.storageCapacity !== true) return 'yes'
  const single = parseQuantity(requestOf(claim))
  const nodeLabels = node.metadata.labels ?? {}
  for (const capacity of view.capacities(className)) {
    if (capacity.nodeTopology === undefined || !matchesSelector(capacity.nodeTopology, nodeLabels)) continue
    const largest = capacity.maximumVolumeSize ?? capacity.capacity
    const fitsAlone = largest !== undefined && compareAmounts(parseQuantity(largest), single) >= 0
    const fitsAll = capacity.capacity === undefined || compareAmounts(parseQuantity(capacity.capacity), sum) >= 0
    if (fitsAlone && fitsAll) return 'yes'
  }
  return 'noSpace'
}

/**
 * Only nodes that registered the driver can use its volumes. A provisioner that no node registered is not a CSI driver,
 * or is about to register its first node: then every node may be tried.
 */
function mayHaveDriver(driver: string, node: Node, view: ClusterView): boolean {
  const registered = Array.from(view.csiNodesOf(driver), ({ metadata }) => metadata.name)
  return registered.length === 0 || registered.includes(node.metadata.name)
}

/** Terms are alternatives; no list allows every node, an empty term none. */
function isAllowed(storageClass: StorageClass, node: Node): boolean {
  const terms = storageClass.allowedTopologies ?? []
  const { labels: has } = factsOfNode(node)
  return (
    terms.length === 0 ||
    terms.some((term) => {
      const wanted = term.matchLabelExpressions ?? []
      return wanted.length > 0 && wanted.every(({ key, values }) => values.includes(has[key] ?? '\0'))
    })
  )
}

/** The volume's zone and region labels name the node's (SZN-1). */
function isInZone(volume: PersistentVolume, node: Node): boolean {
  const has = node.metadata.labels ?? {}
  const general = { [labels.betaZone]: labels.zone, [labels.betaRegion]: labels.region } as Record<string, string>
  const keys = [labels.zone, labels.region, labels.betaZone, labels.betaRegion]
  if (keys.every((key) => has[key] === undefined)) return true
  return keys.every((key) => {
    const wanted = volume.metadata.labels?.[key]
    if (wanted === undefined) return true
    const value = has[key] ?? has[general[key] ?? key]
    return value !== undefined && wanted.split('__').includes(value)
  })
}

/** The node would have more volumes of a driver than its CSINode allows (SLM-1). */
function exceedsLimit({ pod, bound, delayed }: VolumeDemand, node: Node, view: ClusterView): boolean {
  const drivers = view.csiNode(node.metadata.name)?.spec.drivers ?? []
  const limits = new Map(drivers.map((driver) => [driver.name, driver.allocatable?.count]))
  if ([...limits.values()].every((limit) => limit === undefined)) return false
  const added = csiVolumesOf([...bound, ...delayed], view)
  if (added.size === 0) return false
  const present = new Map<string, string>()
  for (const other of view.podsOn(node.metadata.name)) {
    if (other.metadata.uid === pod.metadata.uid) continue
    // Claims that do not exist are ignored for pods that already run (SLM-3).
    const claims = claimsOf(other).flatMap((use) => view.claim(use.key) ?? [])
    for (const [volume, driver] of csiVolumesOf(claims, view)) present.set(volume, driver)
  }
  for (const attachment of view.attachmentsOn(node.metadata.name)) {
    const source = view.volume(attachment.spec.source.persistentVolumeName ?? '')?.spec.csi
    if (source !== undefined) present.set(`${source.driver}/${source.volumeHandle}`, source.driver)
  }
  return [...limits].some(([driver, limit]) => {
    const fresh = [...added].filter(([volume, of]) => of === driver && !present.has(volume)).length
    const old = [...present.values()].filter((of) => of === driver).length
    return limit !== undefined && fresh > 0 && fresh + old > limit
  })
}

/** Distinct volumes by driver; a claim without a volume counts as one of its class's provisioner. */
function csiVolumesOf(claims: readonly PersistentVolumeClaim[], view: ClusterView): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const claim of claims) {
    const source = claim.spec.volumeName ? view.volume(claim.spec.volumeName)?.spec.csi : undefined
    const provisioner = view.storageClass(classOf(claim))?.provisioner
    if (source !== undefined) found.set(`${source.driver}/${source.volumeHandle}`, source.driver)
    else if (!claim.spec.volumeName && provisioner !== undefined) found.set(`claim ${keyOf(claim)}`, provisioner)
  }
  return found
}

/** SRS-1: the same inline disk twice on a node. */
function conflictsOnDisk(pod: Pod, others: Iterable<Pod>): boolean {
  const mine = inlineDisks(pod)
  if (mine.size === 0) return false
  for (const other of others) {
    if (other.metadata.uid === pod.metadata.uid) continue
    for (const [disk, readOnly] of inlineDisks(other))
      if (mine.has(disk) && !(readOnly && mine.get(disk) === true)) return true
  }
  return false
}

/** Disk → may it be shared (read-only)? EBS never may. */
function inlineDisks(pod: Pod): ReadonlyMap<string, boolean> {
  const disks = new Map<string, boolean>()
  for (const { gcePersistentDisk, awsElasticBlockStore, iscsi, rbd } of pod.spec?.volumes ?? []) {
    if (gcePersistentDisk) disks.set(`gce ${gcePersistentDisk.pdName}`, gcePersistentDisk.readOnly === true)
    if (awsElasticBlockStore) disks.set(`ebs ${awsElasticBlockStore.volumeID}`, false)
    if (iscsi) disks.set(`iscsi ${iscsi.iqn} ${iscsi.lun}`, iscsi.readOnly === true)
    if (rbd) disks.set(`rbd ${(rbd.monitors ?? []).join()} ${rbd.pool} ${rbd.image}`, rbd.readOnly === true)
  }
  return disks
}
