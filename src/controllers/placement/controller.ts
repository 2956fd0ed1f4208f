// Who gives a pod its node? A scheduler in miniature: choose, reserve volumes and name the node on the claims, wait for
// the binding by events (WC-7), then bind the pod. After a restart the claims themselves remember the node (SCH-5).
// Claims of a pod that set spec.nodeName itself are bound to that node, which Kubernetes leaves undone.
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { keyOf, refKey } from '../../api/meta.ts'
import { claimKeysOf, isTerminated } from '../../api/pod-claims.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Index, Informer } from '../../client/informer.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { createControllerLoop } from '../shared/controller-loop.ts'
import type { ControllerLoop } from '../shared/controller-loop.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import { createVolumeIndex } from '../shared/volume-index.ts'
import type { VolumeIndex } from '../shared/volume-index.ts'
import { createCarryOut } from './carry-out.ts'
import { createClusterView } from './cluster-view.ts'
import type { DecidedPod } from './decision.ts'
import { isReady } from './node-filters.ts'
import { isFullyBound } from './pod-volumes.ts'
import { createRejections } from './rejections.ts'
import type { Rejections } from './rejections.ts'
import { createSync } from './sync.ts'

export interface PlacementOptions {
  /** How long the volumes of a chosen node may take to be bound (SCH-12). */
  readonly bindTimeoutMs?: number
  readonly schedulerName?: string
  /** Leave pods alone that set spec.nodeName, as Kubernetes does: their claims wait for somebody else. */
  readonly strict?: boolean
}

export interface PlacementDeps extends ControllerDeps {
  readonly options?: PlacementOptions
}

/** What the subscriptions keep up to date. */
interface PlacementState {
  readonly pods: Informer<Pod>
  readonly nodes: Informer<Node>
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  readonly podsByClaim: Index<Pod>
  readonly freeVolumes: VolumeIndex
  /** By uid. */
  readonly decisions: Map<string, DecidedPod>
  readonly rejections: Rejections
  /** Pods that wait for us, by `namespace/name`: for a node, or for the claims on the node that they set themselves. */
  readonly unplaced: Map<string, ObjectKey<'Pod'>>
  isMine(pod: Pod): boolean
}

export function createPlacementController(deps: PlacementDeps): Controller {
  const { informers } = deps
  const schedulerName = deps.options?.schedulerName ?? 'default-scheduler'
  const stack = new AsyncDisposableStack()
  const pods = informers.of('Pod')
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const volumes = stack.use(createFreshCache(informers.of('PersistentVolume')))
  const state: PlacementState = {
    ...{ pods, claims, volumes },
    nodes: informers.of('Node'),
    podsByClaim: pods.index(claimKeysOf),
    freeVolumes: createVolumeIndex(),
    decisions: new Map(),
    rejections: createRejections(),
    unplaced: new Map(),
    isMine: (pod) =>
      isOurs(pod, schedulerName) &&
      (!pod.spec?.nodeName || (deps.options?.strict !== true && hasUnboundClaim(pod, claims.get))),
  }
  const spokenFor = new Set<string>()
  const podsByNode = pods.index((pod) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []))
  const view = createClusterView({ ...state, informers, podsByNode, spokenFor })
  const carryOut = createCarryOut({ ...deps, claims, volumes, recorder: deps.recorder(schedulerName) })
  const bindTimeoutMs = deps.options?.bindTimeoutMs ?? 600_000
  const loop = createControllerLoop<ObjectKey<'Pod'>>(deps, {
    name: 'placement',
    workers: 8,
    exists: (key) => pods.get(refKey(key)) !== undefined,
    sync: createSync({ ...state, clock: deps.clock, spokenFor, view, carryOut, bindTimeoutMs }),
  })
  const wakeAll = () => {
    for (const key of state.unplaced.values()) loop.wake(key)
  }
  followPods(stack, state, loop, wakeAll)
  followCluster(stack, deps, state, loop, wakeAll)
  return loop.start({ stack, synced: informers.synced(), begin: wakeAll })
}

function isOurs(pod: Pod, schedulerName: string): boolean {
  return (
    (pod.spec?.schedulerName ?? 'default-scheduler') === schedulerName &&
    // Whoever set a gate removes it when the pod may be placed; that change brings the pod back here.
    (pod.spec?.schedulingGates ?? []).length === 0 &&
    !isTerminated(pod)
  )
}

/** A claim that is not there yet may still come. */
function hasUnboundClaim(pod: Pod, claimOf: (key: string) => PersistentVolumeClaim | undefined): boolean {
  return claimKeysOf(pod).some((key) => {
    const claim = claimOf(key)
    return claim === undefined || !isFullyBound(claim)
  })
}

function followPods(
  stack: AsyncDisposableStack,
  { pods, unplaced, decisions, rejections, ...state }: PlacementState,
  loop: ControllerLoop<ObjectKey<'Pod'>>,
  wakeAll: () => void,
): void {
  stack.use(
    pods.subscribe(({ key, object, previous }) => {
      const podKey = objectKey('Pod', object ?? previous)
      const freed = (object === undefined || isTerminated(object)) && previous?.spec?.nodeName
      if (object === undefined || !state.isMine(object)) {
        unplaced.delete(key)
        const uid = (object ?? previous)?.metadata.uid ?? ''
        decisions.delete(uid)
        rejections.forget(uid)
        if (object === undefined) loop.forget(podKey)
        else loop.setWaiting(podKey, [])
      } else {
        const isNew = !unplaced.has(key)
        unplaced.set(key, podKey)
        // The pod's own status is ours to write; only a new or changed pod needs another sync.
        if (isNew || previous === undefined || previous.spec !== object.spec) loop.wake(podKey)
      }
      if (freed) wakeAll()
    }),
  )
}

function followCluster(
  stack: AsyncDisposableStack,
  { informers }: PlacementDeps,
  { volumes, claims, nodes, freeVolumes, podsByClaim, unplaced }: PlacementState,
  loop: ControllerLoop<ObjectKey<'Pod'>>,
  wakeAll: () => void,
): void {
  stack.use(
    volumes.subscribe(({ key, object }) => {
      if (object === undefined) freeVolumes.remove(key)
      else freeVolumes.put(object)
      if (!volumes.isOwnWrite) wakeAll()
    }),
  )
  stack.use(
    claims.subscribe(({ key }) => {
      if (claims.isOwnWrite) return
      for (const pod of podsByClaim.get(key)) {
        const podKey = unplaced.get(keyOf(pod))
        if (podKey !== undefined) loop.wake(podKey)
      }
    }),
  )
  stack.use(nodes.subscribe(({ object, previous }) => void (nodeMatters(object, previous) && wakeAll())))
  for (const kind of ['StorageClass', 'CSINode', 'CSIDriver', 'CSIStorageCapacity', 'VolumeAttachment'] as const)
    stack.use(
      informers
        .of(kind)
        .subscribe(({ kind: change }) => void ((kind !== 'VolumeAttachment' || change === 'removed') && wakeAll())),
    )
}

/** Did anything change that a placement depends on? Heartbeats do not count. */
function nodeMatters(node: Node | undefined, previous: Node | undefined): boolean {
  const facts = (each: Node | undefined) =>
    each &&
    JSON.stringify([
      each.metadata.labels,
      each.metadata.deletionTimestamp,
      each.spec,
      each.status?.allocatable,
      isReady(each),
    ])
  return facts(node) !== facts(previous)
}
