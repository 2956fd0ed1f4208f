// Who gives a pod its node? A scheduler in miniature: choose, reserve volumes and name the node on the claims, wait for
// the binding by events (W-7), then bind the pod. After a restart the claims themselves remember the node (SCH-5).
import { annotations } from '../../api/annotations.ts'
import { findCondition, isDeleting, keyOf, refOf, withAnnotations, withCondition } from '../../api/meta.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/types.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import type { Index } from '../../client/informer.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { createVolumeIndex } from '../binding/volume-index.ts'
import { createWaitingList } from '../binding/waiting.ts'
import { volumeTaken } from '../binding/writes.ts'
import { oneLoopController } from '../controller.ts'
import type { Controller, ControllerDeps } from '../controller.ts'
import { claimKeysOf, isTerminated } from '../pod-claims.ts'
import type { ClusterView } from './cluster-view.ts'
import { progressOf } from './decision.ts'
import type { Decision } from './decision.ts'
import { isReady } from './node-filters.ts'
import { selectNode } from './select-node.ts'
import type { NodeOffer } from './volume-filters.ts'

export interface PlacementOptions {
  /** SCH-12 */
  readonly bindTimeoutMs?: number
  readonly schedulerName?: string
}

export interface PlacementDeps extends ControllerDeps {
  readonly options?: PlacementOptions
}

export function createPlacementController(deps: PlacementDeps): Controller {
  const { client, informers, clock } = deps
  const schedulerName = deps.options?.schedulerName ?? 'default-scheduler'
  const bindTimeoutMs = deps.options?.bindTimeoutMs ?? 600_000
  const stack = new AsyncDisposableStack()
  const pods = informers.of('Pod')
  const nodes = informers.of('Node')
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const volumes = stack.use(createFreshCache(informers.of('PersistentVolume')))
  const podsByNode = pods.index((pod) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []))
  const podsByClaim = pods.index(claimKeysOf)
  const recorder = deps.recorder(schedulerName)
  const waiting = createWaitingList((key, list) => deps.onWaiting?.('placement', key, list))
  const freeVolumes = createVolumeIndex()
  /** Pods with a node in mind, by uid: they count on that node until the informer shows them there. */
  const decisions = new Map<string, { readonly pod: Pod; readonly decision: Decision }>()
  const spokenFor = new Set<string>()
  const unplaced = new Set<string>()
  const view = clusterView({ ...deps, claims, volumes, podsByNode, podsByClaim, freeVolumes, decisions, spokenFor })

  const isMine = (pod: Pod) =>
    !pod.spec?.nodeName &&
    (pod.spec?.schedulerName ?? 'default-scheduler') === schedulerName &&
    // Whoever set a gate lifts it when the pod may be placed; that change brings the pod back here.
    (pod.spec?.schedulingGates ?? []).length === 0 &&
    !isTerminated(pod)

  /** SCH-11, SCH-12: volumes first, then claims; what succeeded is not rolled back (SCH-13). */
  const reserve = async ({ node, takes, provisions }: NodeOffer, signal: AbortSignal) => {
    for (const { claim, volume } of takes) {
      const taken = volumeTaken(volume, claim)
      if (taken !== volume) volumes.wrote(await client.update('PersistentVolume', taken, {}, signal))
    }
    for (const claim of provisions) {
      const chosen = { [annotations.selectedNode]: node.metadata.name }
      if (claim.metadata.annotations?.[annotations.selectedNode] === node.metadata.name) continue
      const written = await client.update('PersistentVolumeClaim', withAnnotations(claim, chosen), {}, signal)
      claims.wrote(written)
    }
  }
  const bindPod = async (pod: Pod, node: Node, signal: AbortSignal) => {
    const target = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name }
    const { namespace, name, uid } = pod.metadata
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { namespace, name, uid }, target }
    try {
      await client.post('Pod', refOf(pod), 'binding', body, signal)
    } catch (error) {
      // Gone, or somebody else was faster: the informer will tell.
      if (isNotFound(error) || isConflict(error)) return
      throw error
    }
    const message = `Successfully assigned ${keyOf(pod)} to ${node.metadata.name}`
    recorder.event({ kind: 'Pod', object: pod }, 'Normal', 'Scheduled', message)
    deps.onTransition?.({ controller: 'placement', object: `Pod/${keyOf(pod)}`, rule: 'SCH-12', what: message })
  }
  const refuse = async (pod: Pod, message: string, signal: AbortSignal) => {
    const known = findCondition(pod.status?.conditions, 'PodScheduled')
    if (known?.status === 'False' && known.message === message) return
    recorder.event({ kind: 'Pod', object: pod }, 'Warning', 'FailedScheduling', message)
    const condition = {
      type: 'PodScheduled',
      status: 'False' as const,
      reason: 'Unschedulable',
      message,
      lastTransitionTime: timestamp(clock.now()),
    }
    const status = { ...pod.status, conditions: withCondition(pod.status?.conditions, condition) }
    await client.update('Pod', { ...pod, status }, { subresource: 'status' }, signal)
  }
  const choose = async (pod: Pod, signal: AbortSignal): Promise<Decision | undefined> => {
    const candidates = Array.from(nodes.items.values()).filter((node) => !isDeleting(node))
    const selection = selectNode(pod, candidates, view)
    if (selection.kind === 'none') {
      waiting.set(`Pod/${keyOf(pod)}`, [{ reason: 'noNodeFits', rule: 'SCH-9', message: selection.message }])
      await refuse(pod, selection.message, signal)
      return undefined
    }
    const { offer } = selection
    const decision: Decision = {
      node: offer.node,
      claims: [...offer.takes.map(({ claim }) => keyOf(claim)), ...offer.provisions.map(keyOf)],
      volumes: new Map(offer.takes.map(({ claim, volume }) => [keyOf(claim), volume.metadata.name])),
      until: clock.now() + bindTimeoutMs,
    }
    const names = [...decision.volumes.values()]
    for (const name of names) spokenFor.add(name)
    decisions.set(pod.metadata.uid ?? '', { pod, decision })
    try {
      await reserve(offer, signal)
    } catch (error) {
      decisions.delete(pod.metadata.uid ?? '')
      throw error
    } finally {
      for (const name of names) spokenFor.delete(name)
    }
    return decision
  }
  const look = async (key: string, signal: AbortSignal) => {
    const pod = pods.get(key)
    waiting.set(`Pod/${key}`, [])
    if (pod === undefined || !isMine(pod) || isDeleting(pod)) return {}
    const uid = pod.metadata.uid ?? ''
    const decision = decisions.get(uid)?.decision ?? (await choose(pod, signal))
    if (decision === undefined) return {}
    const progress = clock.now() >= decision.until ? timedOut : progressOf(decision, view)
    switch (progress.kind) {
      case 'bound':
        return bindPod(pod, decision.node, signal)
      case 'waiting':
        waiting.set(`Pod/${key}`, [
          { reason: 'bindingVolumes', rule: 'SCH-12', on: progress.on, until: decision.until },
        ])
        return { again: decision.until }
      case 'rejected':
        decisions.delete(uid)
        await refuse(pod, progress.message, signal)
        throw new Error(progress.message) // comes back with back-off and chooses again
      default:
        return progress satisfies never
    }
  }
  const gate = { isOpen: false }
  const loop = createKeyLoop<string>({
    name: 'placement',
    clock,
    workers: 8,
    look: async (key, signal) => (await look(key, signal)) ?? {},
    onError: (key, error, until) =>
      waiting.set(`Pod/${key}`, [{ reason: 'retrying', rule: 'SCH-12', message: String(error), until }]),
  })
  const wakeAll = () => {
    if (gate.isOpen) for (const key of unplaced) loop.wake(key)
  }
  const wakePodsOf = (claimKey: string) => {
    if (gate.isOpen) for (const pod of podsByClaim.get(claimKey)) if (unplaced.has(keyOf(pod))) loop.wake(keyOf(pod))
  }
  stack.use(
    pods.subscribe(({ key, object, previous }) => {
      const freed = (object === undefined || isTerminated(object)) && previous?.spec?.nodeName
      if (object === undefined || !isMine(object)) {
        unplaced.delete(key)
        decisions.delete((object ?? previous)?.metadata.uid ?? '')
        if (object === undefined) loop.forget(key)
        waiting.set(`Pod/${key}`, [])
      } else {
        const isNew = !unplaced.has(key)
        unplaced.add(key)
        // The pod's own status is ours to write; only a new or changed pod is worth another look.
        if (gate.isOpen && (isNew || previous === undefined || previous.spec !== object.spec)) loop.wake(key)
      }
      if (freed) wakeAll()
    }),
  )
  stack.use(
    volumes.subscribe(({ key, object }) => {
      if (object === undefined) freeVolumes.remove(key)
      else freeVolumes.put(object)
      if (!volumes.isOwnWrite) wakeAll()
    }),
  )
  stack.use(
    claims.subscribe(({ key }) => {
      if (!claims.isOwnWrite) wakePodsOf(key)
    }),
  )
  stack.use(nodes.subscribe(({ object, previous }) => void (nodeMatters(object, previous) && wakeAll())))
  for (const kind of ['StorageClass', 'CSINode', 'CSIDriver', 'CSIStorageCapacity', 'VolumeAttachment'] as const)
    stack.use(
      informers
        .of(kind)
        .subscribe(({ kind: change }) => void ((kind !== 'VolumeAttachment' || change === 'removed') && wakeAll())),
    )
  return oneLoopController({
    name: 'placement',
    gate,
    loop,
    waiting,
    subscriptions: stack,
    synced: informers.synced(),
    begin: wakeAll,
  })
}

const timedOut = { kind: 'rejected', message: 'binding volumes: context deadline exceeded' } as const

interface ViewParts extends ControllerDeps {
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
  readonly podsByNode: Index<Pod>
  readonly podsByClaim: Index<Pod>
  readonly freeVolumes: ReturnType<typeof createVolumeIndex>
  readonly decisions: ReadonlyMap<string, { readonly pod: Pod; readonly decision: Decision }>
  readonly spokenFor: ReadonlySet<string>
}

function clusterView(parts: ViewParts): ClusterView {
  const { informers, claims, volumes, podsByNode, podsByClaim, decisions } = parts
  const classes = informers.of('StorageClass')
  const drivers = informers.of('CSIDriver')
  const csiNodes = informers.of('CSINode')
  const attachmentsByNode = informers.of('VolumeAttachment').index((attachment) => [attachment.spec.nodeName])
  const capacitiesByClass = informers.of('CSIStorageCapacity').index((capacity) => [capacity.storageClassName])
  const sentTo = (nodeName: string) =>
    Array.from(decisions.values()).flatMap(({ pod, decision }) =>
      decision.node.metadata.name === nodeName ? [pod] : [],
    )
  return {
    claim: claims.get,
    volume: volumes.get,
    storageClass: classes.get,
    csiDriver: drivers.get,
    csiNode: csiNodes.get,
    podsOn: (nodeName) => [
      ...Array.from(podsByNode.get(nodeName)).filter((pod) => !isTerminated(pod)),
      ...sentTo(nodeName),
    ],
    placedPodsOf: (key) =>
      Array.from(podsByClaim.get(key)).filter(
        (pod) => (pod.spec?.nodeName && !isOver(pod)) || decisions.has(pod.metadata.uid ?? ''),
      ),
    attachmentsOn: (nodeName) => attachmentsByNode.get(nodeName),
    capacities: (className) => capacitiesByClass.get(className),
    freeVolumes: parts.freeVolumes,
    isSpokenFor: (name) => parts.spokenFor.has(name),
  }
}

/** RWP-2: a terminating pod still counts; one that succeeded or failed does not. */
function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
}

/** Heartbeats are not news. */
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
