// Who makes the claims of generic ephemeral volumes? A loop over pods; the claim's owner reference does the rest.
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { refKey } from '../../api/meta.ts'
import { claimsOf } from '../../api/pod-claims.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import type { FreshCache } from '../../client/fresh-cache.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Recorder } from '../../client/recorder.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { createControllerLoop } from '../shared/controller-loop.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import type { Waiting } from '../shared/waiting.ts'
import { planEphemeral } from './plan.ts'
import type { EphemeralAction } from './plan.ts'

export interface EphemeralDeps extends ControllerDeps {
  readonly options?: { readonly workers?: number }
}

export function createEphemeralController(deps: EphemeralDeps): Controller {
  const { informers } = deps
  const stack = new AsyncDisposableStack()
  const pods = informers.of('Pod')
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const podsByClaim = pods.index(ephemeralClaimKeys)
  const carryOut = createCarryOut(deps, claims)
  const loop = createControllerLoop<ObjectKey<'Pod'>>(deps, {
    name: 'ephemeral',
    workers: deps.options?.workers ?? 5,
    exists: (key) => pods.get(refKey(key)) !== undefined,
    async sync(key, signal) {
      const pod = pods.get(refKey(key))
      if (pod !== undefined) for (const action of planEphemeral(pod, claims.get)) await carryOut(pod, action, signal)
      return []
    },
    failure: (error) => ({ reason: reasonOf(error), message: errorText(error) }),
  })
  const wake = (pod: Pod) => {
    if (ephemeralClaimKeys(pod).length > 0) loop.wake(objectKey('Pod', pod))
  }
  stack.use(
    pods.subscribe(({ object, previous }) => {
      if (object !== undefined) wake(object)
      else loop.forget(objectKey('Pod', previous))
    }),
  )
  stack.use(
    claims.subscribe(({ key, object }) => {
      if (object === undefined) for (const pod of podsByClaim.get(key)) wake(pod)
    }),
  )
  return loop.start({
    stack,
    synced: Promise.all([pods.synced, claims.synced]),
    begin() {
      for (const pod of pods.items.values()) wake(pod)
    },
  })
}

type CarryOut = (pod: Pod, action: EphemeralAction, signal: AbortSignal) => Promise<void>

function createCarryOut(deps: EphemeralDeps, claims: FreshCache<PersistentVolumeClaim>): CarryOut {
  const { client, metrics } = deps
  const recorder = deps.recorder('ephemeral_volume')
  const created = metrics.counter(
    'ephemeral_volume_controller_create_total',
    'Number of PersistentVolumeClaim creation requests',
  )
  const failures = metrics.counter(
    'ephemeral_volume_controller_create_failures_total',
    'Number of PersistentVolumeClaim creation requests that failed',
  )
  const create = async (pod: Pod, claim: PersistentVolumeClaim, signal: AbortSignal) => {
    const { name } = claim.metadata
    created.inc()
    try {
      claims.wrote(await client.create('PersistentVolumeClaim', claim, {}, signal))
      const object = objectKey('PersistentVolumeClaim', claim)
      deps.onTransition?.({ controller: 'ephemeral', object, what: 'create' })
    } catch (error) {
      failures.inc()
      // Another process was faster, or our cache is old: the next sync sees whose claim it is.
      if (isAlreadyExists(error)) throw error
      const volume = name.slice(pod.metadata.name.length + 1)
      throw failed(recorder, pod, volume, `create PVC ${name}: ${errorText(error)}`, 'retrying')
    }
  }
  return async (pod, action, signal) => {
    switch (action.kind) {
      case 'create':
        return create(pod, action.claim, signal)
      case 'foreign':
        throw failed(recorder, pod, action.volume, action.message, 'foreignClaim')
      default:
        return action satisfies never
    }
  }
}

type FailureReason = Extract<Waiting['reason'], 'foreignClaim' | 'retrying'>

class EphemeralVolumeError extends Error {
  readonly reason: FailureReason
  constructor(message: string, reason: FailureReason) {
    super(message)
    this.reason = reason
  }
}

function failed(recorder: Recorder, pod: Pod, volume: string, message: string, reason: FailureReason): Error {
  recorder.event({ kind: 'Pod', object: pod }, 'Warning', 'FailedBinding', `ephemeral volume ${volume}: ${message}`)
  return new EphemeralVolumeError(message, reason)
}

/** Only a claim that belongs to somebody else needs a person; anything else is tried again. */
function reasonOf(error: unknown): FailureReason {
  return error instanceof EphemeralVolumeError ? error.reason : 'retrying'
}

function ephemeralClaimKeys(pod: Pod): readonly string[] {
  return claimsOf(pod).flatMap(({ ephemeral, key }) => (ephemeral ? [key] : []))
}
