// How does the controller hear of the cluster? First everything as it is, in the order nodes, attachments, pods (AD-1),
// then every change as it comes: each wakes only the volumes it concerns.
import { keyFor } from '../../api/meta.ts'
import { nodeName } from '../../api/names.ts'
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { Node, VolumeAttachment } from '../../api/generated/types.ts'
import type { Change, Informers } from '../../client/informer.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Pending } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { ActualWorld } from './actual.ts'
import { presenceOn } from './actual.ts'
import type { Audit } from './audit.ts'
import type { DesiredWorld } from './desired.ts'
import type { NodeIndex } from './node-index.ts'
import type { NodeStatusWriter } from './node-status.ts'
import type { NodeWorld } from './nodes.ts'
import { nameOf } from './nodes.ts'
import { createPodFollower } from './pods.ts'
import { claimKeysOf } from '../../api/pod-claims.ts'
import { explain, recoverAttachment, recoverNode, volumeOf } from './recover.ts'

export interface FollowDeps {
  readonly informers: Informers
  readonly registry: Registry<ClusterPlugin>
  readonly desired: DesiredWorld
  readonly actual: ActualWorld
  readonly nodes: NodeWorld
  readonly index: NodeIndex
  readonly nodeStatus: NodeStatusWriter
  readonly pending: Pending
  readonly audit: Audit
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  wake(volume: UniqueVolumeName): void
  forgetNode(node: NodeName): void
}

export async function followCluster(deps: FollowDeps): Promise<void> {
  const { informers, registry, desired, actual, nodes, clock, log, signal, wake } = deps
  const caches = {
    pods: informers.of('Pod'),
    nodes: informers.of('Node'),
    claims: informers.of('PersistentVolumeClaim'),
    volumes: informers.of('PersistentVolume'),
    attachments: informers.of('VolumeAttachment'),
    drivers: informers.of('CSIDriver'),
  }
  await Promise.all(Object.values(caches).map((cache) => cache.synced))
  if (signal.aborted) return

  // From here to the end nothing is awaited: the worlds are filled before any key is looked at.
  const lookups = { claim: caches.claims.get, volume: caches.volumes.get }
  const pods = createPodFollower({ desired, nodes, lookups, registry, clock, log })
  const podsByClaim = caches.pods.index(claimKeysOf)
  const podsByNode = caches.pods.index((pod) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []))
  const podsOf = (claimKey: string) => {
    for (const pod of podsByClaim.get(claimKey)) pods.seen(pod)
  }

  for (const node of caches.nodes.items.values()) recoverNode(actual, node)
  const followNode = nodeFollower(deps, podsByNode.has, (node) => {
    for (const pod of podsByNode.get(node)) pods.seen(pod)
  })
  for (const attachment of caches.attachments.items.values()) {
    recoverAttachment(actual, attachment, lookups.volume, registry)
  }
  const subscriptions = [
    caches.nodes.subscribe(followNode),
    caches.pods.subscribe((change) => (change.object ? pods.seen(change.object) : pods.gone(change.previous))),
    caches.claims.subscribe(({ key, object }) => {
      if (object?.status?.phase === 'Bound') podsOf(key)
    }),
    // A volume may be heard of after the claim that is bound to it: the two caches do not wait for each other.
    caches.volumes.subscribe(({ object }) => {
      if (!object) return
      const claim = object.spec?.claimRef
      if (claim?.name) podsOf(keyFor(claim.namespace, claim.name))
      explain(actual, object, registry)
    }),
    caches.attachments.subscribe((change) => followAttachment(deps, change, lookups.volume)),
    caches.drivers.subscribe((change) => {
      pods.recheck()
      // What became attachable is wanted now; only a driver that appears or changes can do that.
      if (change.kind !== 'added') for (const pod of caches.pods.items.values()) pods.seen(pod)
    }),
    // FlexVolume drivers come and go; what one no longer attaches it has to detach all the same, so nothing is taken back.
    registry.subscribe(() => {
      for (const pod of caches.pods.items.values()) pods.seen(pod)
    }),
  ]
  for (const volume of actual.items.keys()) wake(volume)
  signal.addEventListener('abort', () => subscriptions.forEach((each) => each[Symbol.dispose]()), { once: true })
}

/** AD-8, AD-9: what a Node says becomes facts; a new or re-created Node gets its list again. */
function nodeFollower(deps: FollowDeps, hasPods: (node: NodeName) => boolean, becameManaged: (node: NodeName) => void) {
  const { nodes, nodeStatus, index, wake, forgetNode } = deps
  const versions = new Map<NodeName, string | undefined>()
  return (change: Change<Node>): void => {
    const name = nameOf(change.object ?? change.previous)
    const before = nodes.items.get(name)
    if (change.object) {
      versions.set(name, change.object.metadata.resourceVersion)
      // We never heard of it, yet it has a past: something was attached to it, or pods were there before it.
      const hasPast = hasPods(name) || index.concerns(name)
      const fresh = before === undefined && hasPast
      nodes.apply({ kind: 'nodeSeen', name, node: change.object, fresh })
      if (change.kind === 'added') nodeStatus.nodeAppeared(name, change.object)
      if (!before?.managed && nodes.items.get(name)?.managed) becameManaged(name)
    } else {
      // A deletion carries a version of its own; the version we knew means the watch missed it and the last words with it.
      const missed = change.previous.metadata.resourceVersion === versions.get(name)
      versions.delete(name)
      nodes.apply({ kind: 'nodeGone', name, last: missed ? undefined : change.previous })
      nodeStatus.nodeGone(name)
      forgetNode(name)
    }
    for (const volume of index.waitingFor(name)) wake(volume)
  }
}

/** An attachment that became attached ends a back-off; one that vanished or let go under us is asked about at once. */
function followAttachment(
  { actual, desired, pending, audit, registry, wake }: FollowDeps,
  change: Change<VolumeAttachment>,
  volumeByName: Parameters<typeof volumeOf>[1],
): void {
  if (change.kind === 'added') return
  const attachment = change.object ?? change.previous
  const found = volumeOf(attachment, volumeByName, registry)
  if (!found) return
  const { volume } = found
  const node = nodeName(attachment.spec.nodeName)
  const presence = presenceOn(actual.items.get(volume), node)
  const isAttached = change.object?.status?.attached === true && !change.object.metadata.deletionTimestamp
  if (isAttached && presence !== 'attached' && desired.items.get(volume)?.nodes.has(node)) {
    pending.forget(volume)
    wake(volume)
  }
  // Somebody else takes it away: the answer comes when the object is gone, and only then can it be made again.
  const isLeaving = change.object?.metadata.deletionTimestamp !== undefined
  if (!isAttached && !isLeaving && presence === 'attached' && !pending.isPending([volume])) audit.now(node)
  // The end of an attachment we doubt: the next try to detach finds it gone.
  if (!change.object && presence === 'uncertain') {
    pending.forget(volume)
    wake(volume)
  }
}
