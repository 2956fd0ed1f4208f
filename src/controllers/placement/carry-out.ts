// How is a placement carried out? Volumes are reserved, then claims name the node, then the pod is bound to it.
import { annotations } from '../../api/annotations.ts'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { annotation, findCondition, keyOf, refOf, withAnnotations, withCondition } from '../../api/meta.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { Recorder } from '../../client/recorder.ts'
import { timestamp } from '../../clock/clock.ts'
import type { ControllerDeps } from '../shared/controller.ts'
import { volumeTaken } from '../shared/writes.ts'
import type { NodeOffer } from './volume-filters.ts'

export interface CarryOutDeps extends Pick<ControllerDeps, 'client' | 'clock' | 'onTransition'> {
  readonly recorder: Recorder
  readonly claims: FreshCache<PersistentVolumeClaim>
  readonly volumes: FreshCache<PersistentVolume>
}

export interface CarryOut {
  /** Volumes first, then claims (SCH-11, SCH-12); what succeeded is not rolled back (SCH-13). */
  reserve(offer: NodeOffer, signal: AbortSignal): Promise<void>
  bindPod(pod: Pod, node: Node, signal: AbortSignal): Promise<void>
  /** Tells the pod's user why there is no node. */
  refuse(pod: Pod, message: string, signal: AbortSignal): Promise<void>
}

export function createCarryOut(deps: CarryOutDeps): CarryOut {
  const { client, clock, recorder, claims, volumes } = deps
  return {
    async reserve({ node, takes, provisions }, signal) {
      const { name } = node.metadata
      for (const { claim, volume } of takes) {
        const taken = volumeTaken(volume, claim)
        if (taken !== volume) volumes.wrote(await client.update('PersistentVolume', taken, {}, signal))
      }
      for (const claim of provisions) {
        if (annotation(claim, annotations.selectedNode) === name) continue
        const named = withAnnotations(claim, { [annotations.selectedNode]: name })
        claims.wrote(await client.update('PersistentVolumeClaim', named, {}, signal))
      }
    },
    async bindPod(pod, node, signal) {
      const target = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name }
      const { namespace, name, uid } = pod.metadata
      const body = { apiVersion: 'v1', kind: 'Binding', metadata: { namespace, name, uid }, target }
      try {
        await client.post('Pod', refOf(pod), 'binding', body, signal)
      } catch (error) {
        // Gone, or another scheduler was faster: the informer tells.
        if (isNotFound(error) || isConflict(error)) return
        throw error
      }
      const message = `Successfully assigned ${keyOf(pod)} to ${node.metadata.name}`
      recorder.event({ kind: 'Pod', object: pod }, 'Normal', 'Scheduled', message)
      deps.onTransition?.({
        controller: 'placement',
        object: objectKey('Pod', pod),
        uid: pod.metadata.uid,
        what: message,
      })
    },
    async refuse(pod, message, signal) {
      if (pod.spec?.nodeName) {
        recorder.event({ kind: 'Pod', object: pod }, 'Warning', 'FailedScheduling', message)
        return
      }
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
    },
  }
}
