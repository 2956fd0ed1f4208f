// Who makes pods leave a node with a NoExecute taint? The pod is marked and deleted with its own grace period, as by anybody else;
// never by force: on a node that does not answer it stays, being deleted, until the agent has stopped it (FD-2).
import type { Pod } from '../../api/generated/types.ts'
import { keyOf, refKey, refOf } from '../../api/meta.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Recorder } from '../../client/recorder.ts'
import { createObjectLoop, objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import { noExecuteTaints, planEviction } from './plan.ts'

export type EvictionDeps = Pick<ControllerDeps, 'client' | 'informers' | 'clock' | 'log' | 'recorder'>

export function createEvictionController(deps: EvictionDeps): Controller {
  const { informers, clock, log } = deps
  const stack = new AsyncDisposableStack()
  const pods = informers.of('Pod')
  const nodes = informers.of('Node')
  const podsByNode = pods.index((pod) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []))
  const recorder = deps.recorder('taint-eviction-controller')
  /** By uid: since when a pod is known to be on a node with taints. */
  const seenSince = new Map<string, number>()
  const loop = stack.use(
    createObjectLoop<ObjectKey<'Pod'>>({
      name: 'eviction',
      clock,
      workers: 4,
      async look(key, signal) {
        const pod = pods.get(refKey(key))
        if (pod === undefined) return
        const uid = pod.metadata.uid ?? ''
        const node = nodes.get(pod.spec?.nodeName ?? '')
        if (noExecuteTaints(node).length === 0) return void seenSince.delete(uid)
        const plan = planEviction(pod, node, seenSince.getOrInsert(uid, clock.now()), clock.now())
        if (plan.kind === 'leaveAt') return { again: plan.at }
        if (plan.kind === 'leave') await evict({ ...deps, events: recorder }, pod, signal)
      },
      onError: (key, error, retryAt) => log.warn('pod not evicted', { pod: refKey(key), error, retryAt }),
    }),
  )
  const synced = informers.synced().then(() => {
    for (const pod of pods.items.values()) loop.wake(objectKey('Pod', pod))
  })
  stack.use(
    pods.subscribe(({ object, previous }) => {
      if (object === undefined) {
        seenSince.delete(previous.metadata.uid ?? '')
        loop.forget(objectKey('Pod', previous))
      } else if (previous?.spec !== object.spec) loop.wake(objectKey('Pod', object))
    }),
  )
  stack.use(
    nodes.subscribe(({ object, previous }) => {
      const name = (object ?? previous)?.metadata.name ?? ''
      if (JSON.stringify(noExecuteTaints(object)) === JSON.stringify(noExecuteTaints(previous))) return
      for (const pod of podsByNode.get(name)) loop.wake(objectKey('Pod', pod))
    }),
  )
  return {
    name: 'eviction',
    waiting: () => new Map(),
    async idle() {
      await synced
      await loop.idle()
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** The mark comes first: whoever sees the pod go can read why. A pod of the same name that is made meanwhile is another one. */
async function evict(
  { client, clock, events }: EvictionDeps & { readonly events: Recorder },
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True' as const,
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
    lastTransitionTime: timestamp(clock.now()),
  }
  const { uid } = pod.metadata
  try {
    const body = { metadata: { uid }, status: { conditions: [condition] } }
    await client.patch('Pod', refOf(pod), { type: 'strategic', body }, { subresource: 'status' }, signal)
    events.event(
      { kind: 'Pod', object: pod },
      'Normal',
      'TaintManagerEviction',
      `Marking for deletion Pod ${keyOf(pod)}`,
    )
    await client.remove('Pod', refOf(pod), uid === undefined ? {} : { uid }, signal)
  } catch (error) {
    if (isNotFound(error)) return
    // Another pod has the name by now; it is looked at by itself.
    if (isConflict(error)) return
    throw error
  }
}
