// Who keeps objects alive while they are in use? One key loop over claims, volumes and volume attributes classes.
// A claim's finalizer goes only after the server itself, not only our cache, shows no pod that uses it (PCP-3, I-8).
import { finalizers } from '../../api/annotations.ts'
import { keyOf, withCondition, withFinalizer, withoutFinalizer } from '../../api/meta.ts'
import type { KindMap } from '../../api/kinds.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttributesClass } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Waiting } from '../binding/waiting.ts'
import { createWaitingList } from '../binding/waiting.ts'
import { oneLoopController } from '../controller.ts'
import type { Controller, ControllerDeps } from '../controller.ts'
import { claimKeysOf } from '../pod-claims.ts'
import {
  classesNamedBy,
  planClaimProtection,
  planClassProtection,
  planVolumeProtection,
  podReferences,
  podUses,
  unusedCondition,
} from './plan.ts'
import { createPodLists } from './pod-lists.ts'

export interface ProtectionDeps extends ControllerDeps {
  readonly options?: {
    readonly workers?: number
    /** The `Unused` condition of newer releases (PCP-5); off for the reference behaviour of 1.35. */
    readonly unusedCondition?: boolean
  }
}

type Protected = 'PersistentVolumeClaim' | 'PersistentVolume' | 'VolumeAttributesClass'

const guards: Readonly<Record<Protected, string>> = {
  PersistentVolumeClaim: finalizers.claimProtection,
  PersistentVolume: finalizers.volumeProtection,
  VolumeAttributesClass: finalizers.attributesClassProtection,
}

export function createProtectionController(deps: ProtectionDeps): Controller {
  const { client, informers, clock } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const classes = informers.of('VolumeAttributesClass')
  const pods = informers.of('Pod')
  const podsByClaim = pods.index(claimKeysOf)
  const claimsByClass = claims.index(classesNamedBy)
  const volumesByClass = volumes.index(classesNamedBy)
  const waiting = createWaitingList((key, list) => deps.onWaiting?.('protection', key, list))
  const podLists = createPodLists(client)
  const showUnused = deps.options?.unusedCondition === true

  const put = async <K extends Protected>(
    kind: K,
    object: KindMap[K],
    rule: string,
    what: string,
    signal: AbortSignal,
  ) => {
    await client.update(kind, object, {}, signal)
    deps.onTransition?.({ controller: 'protection', object: `${kind}/${keyOf(object)}`, rule, what })
  }
  const add = <K extends Protected>(kind: K, object: KindMap[K], rule: string, signal: AbortSignal) =>
    put(kind, withFinalizer(object, guards[kind]), rule, 'protect', signal)
  const remove = <K extends Protected>(kind: K, object: KindMap[K], rule: string, signal: AbortSignal) =>
    put(kind, withoutFinalizer(object, guards[kind]), rule, 'stop protecting', signal)

  /** PCP-3: the index answers yes at once; its no must be confirmed by one list of the server, not older than the claim. */
  const findUser = async (
    claim: PersistentVolumeClaim,
    uses: (pod: Pod, claim: PersistentVolumeClaim) => boolean,
    signal: AbortSignal,
  ): Promise<Pod | undefined> => {
    for (const pod of podsByClaim.get(keyOf(claim))) if (uses(pod, claim)) return pod
    const live = await podLists.since(claim, signal)
    return live.find((pod) => uses(pod, claim))
  }
  const lookAtClaim = async (claim: PersistentVolumeClaim, signal: AbortSignal): Promise<readonly Waiting[]> => {
    let current = claim
    if (showUnused) current = await writeUnused(claim, signal) // PCP-6: an error here stops the pass
    const plan = planClaimProtection(current)
    if (plan.kind === 'add') await add('PersistentVolumeClaim', current, plan.rule, signal)
    if (plan.kind !== 'removeIfUnused') return []
    const user = await findUser(current, podUses, signal)
    if (user !== undefined) return [{ reason: 'protectedByPods', rule: 'PCP-2', on: `Pod/${keyOf(user)}` }]
    await remove('PersistentVolumeClaim', current, 'PCP-2', signal)
    return []
  }
  const writeUnused = async (claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim> => {
    if (claim.status?.phase !== 'Bound' || claim.metadata.deletionTimestamp !== undefined) return claim
    const used = (await findUser(claim, podReferences, signal)) !== undefined
    const condition = unusedCondition(claim, used, timestamp(clock.now()))
    if (condition === undefined) return claim
    const status = { ...claim.status, conditions: withCondition(claim.status.conditions, condition) }
    return client.update('PersistentVolumeClaim', { ...claim, status }, { subresource: 'status' }, signal)
  }
  const lookAtVolume = async (volume: PersistentVolume, signal: AbortSignal): Promise<readonly Waiting[]> => {
    const plan = planVolumeProtection(volume)
    if (plan.kind === 'add') await add('PersistentVolume', volume, plan.rule, signal)
    // The write carries the version that was judged: a phase that changed meanwhile ends in a conflict (PVP-3).
    if (plan.kind === 'remove') await remove('PersistentVolume', volume, plan.rule, signal)
    return plan.kind === 'keep' ? [{ reason: 'protectedByClaim', rule: 'PVP-2' }] : []
  }
  const lookAtClass = async (attributes: VolumeAttributesClass, signal: AbortSignal): Promise<readonly Waiting[]> => {
    const plan = planClassProtection(attributes)
    if (plan.kind === 'add') await add('VolumeAttributesClass', attributes, plan.rule, signal)
    if (plan.kind !== 'removeIfUnused') return []
    const { name } = attributes.metadata
    if (claimsByClass.has(name) || volumesByClass.has(name)) return [{ reason: 'protectedByReferences', rule: 'VCP-1' }]
    await remove('VolumeAttributesClass', attributes, 'VCP-1', signal)
    return []
  }
  const lookAt = async (key: string, signal: AbortSignal): Promise<readonly Waiting[]> => {
    const [kind, name] = [key.slice(0, key.indexOf('/')), key.slice(key.indexOf('/') + 1)]
    const [claim, volume, attributes] = [claims.get(name), volumes.get(name), classes.get(name)]
    if (kind === 'PersistentVolumeClaim') return claim === undefined ? [] : lookAtClaim(claim, signal)
    if (kind === 'PersistentVolume') return volume === undefined ? [] : lookAtVolume(volume, signal)
    return attributes === undefined ? [] : lookAtClass(attributes, signal)
  }
  const gate = { isOpen: false }
  const loop = createKeyLoop<string>({
    name: 'protection',
    clock,
    workers: deps.options?.workers ?? 16,
    async look(key, signal) {
      try {
        waiting.set(key, await lookAt(key, signal))
      } catch (error) {
        if (!isNotFound(error)) throw error
        waiting.set(key, []) // gone meanwhile: nothing to protect
      }
    },
    onError: (key, error, until) =>
      waiting.set(key, [{ reason: 'retrying', rule: 'PCP-3', message: String(error), until }]),
  })
  const wake = (key: string) => {
    if (gate.isOpen) loop.wake(key)
  }
  stack.use(
    claims.subscribe(({ key, object, previous }) => {
      if (object === undefined) waiting.set(`PersistentVolumeClaim/${key}`, [])
      else if (showUnused || needsLook(object, guards.PersistentVolumeClaim)) wake(`PersistentVolumeClaim/${key}`)
      if (previous !== undefined) wakeDropped(previous, object)
    }),
  )
  stack.use(
    volumes.subscribe(({ key, object, previous }) => {
      if (object === undefined) waiting.set(`PersistentVolume/${key}`, [])
      else if (needsLook(object, guards.PersistentVolume)) wake(`PersistentVolume/${key}`)
      if (previous !== undefined) wakeDropped(previous, object)
    }),
  )
  /** VCP-2: a reference that disappeared may have been the last. */
  const wakeDropped = (
    before: PersistentVolume | PersistentVolumeClaim,
    after: PersistentVolume | PersistentVolumeClaim | undefined,
  ) => {
    const still = after === undefined ? [] : classesNamedBy(after)
    for (const name of classesNamedBy(before)) if (!still.includes(name)) wake(`VolumeAttributesClass/${name}`)
  }
  stack.use(classes.subscribe(({ key }) => wake(`VolumeAttributesClass/${key}`)))
  stack.use(
    pods.subscribe(({ object, previous }) => {
      for (const pod of [object, previous]) {
        for (const key of pod === undefined ? [] : claimKeysOf(pod)) {
          const claim = claims.get(key)
          if (claim !== undefined && (showUnused || needsLook(claim, guards.PersistentVolumeClaim)))
            wake(`PersistentVolumeClaim/${key}`)
        }
      }
    }),
  )
  return oneLoopController({
    name: 'protection',
    gate,
    loop,
    waiting,
    subscriptions: stack,
    synced: Promise.all([claims.synced, volumes.synced, classes.synced, pods.synced]),
    begin() {
      for (const key of claims.items.keys()) loop.wake(`PersistentVolumeClaim/${key}`)
      for (const key of volumes.items.keys()) loop.wake(`PersistentVolume/${key}`)
      for (const key of classes.items.keys()) loop.wake(`VolumeAttributesClass/${key}`)
    },
  })
}

/** Only an unprotected object, or a protected one that is going away, is worth a look. */
function needsLook(object: PersistentVolume | PersistentVolumeClaim, guard: string): boolean {
  const isProtected = object.metadata.finalizers?.includes(guard) === true
  return (object.metadata.deletionTimestamp !== undefined) === isProtected
}
