// Who makes the claims of generic ephemeral volumes? A key loop over pods; the claim's owner reference does the rest.
import { isAlreadyExists } from '../../api/status-error.ts'
import { keyOf } from '../../api/meta.ts'
import type { Pod } from '../../api/types.ts'
import { createFreshCache } from '../../client/fresh-cache.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { createWaitingList } from '../binding/waiting.ts'
import { oneLoopController } from '../controller.ts'
import type { Controller, ControllerDeps } from '../controller.ts'
import { claimsOf } from '../pod-claims.ts'
import { planEphemeral } from './plan.ts'

export interface EphemeralDeps extends ControllerDeps {
  readonly options?: { readonly workers?: number }
}

type WaitReason = 'foreignClaim' | 'retrying'

/** Only a claim that belongs to somebody else needs a person; whatever else went wrong is tried again. */
const reasonOf = (error: unknown): WaitReason =>
  error instanceof Error && 'reason' in error && error.reason === 'foreignClaim' ? 'foreignClaim' : 'retrying'
const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

export function createEphemeralController(deps: EphemeralDeps): Controller {
  const { client, informers, clock } = deps
  const stack = new AsyncDisposableStack()
  const pods = informers.of('Pod')
  const claims = stack.use(createFreshCache(informers.of('PersistentVolumeClaim')))
  const ephemeralKeys = (pod: Pod) => claimsOf(pod).flatMap(({ ephemeral, key }) => (ephemeral ? [key] : []))
  const podsByClaim = pods.index(ephemeralKeys)
  const recorder = deps.recorder('ephemeral_volume')
  const waiting = createWaitingList((key, list) => deps.onWaiting?.('ephemeral', key, list))
  const created = deps.metrics.counter(
    'ephemeral_volume_controller_create_total',
    'Number of PersistentVolumeClaim creation requests',
  )
  const failures = deps.metrics.counter(
    'ephemeral_volume_controller_create_failures_total',
    'Number of PersistentVolumeClaim creation requests that failed',
  )
  const fail = (pod: Pod, volume: string, message: string, reason: WaitReason = 'retrying'): never => {
    recorder.event({ kind: 'Pod', object: pod }, 'Warning', 'FailedBinding', `ephemeral volume ${volume}: ${message}`)
    throw Object.assign(new Error(message), { reason })
  }
  const create = async (pod: Pod, claim: Parameters<typeof keyOf>[0] & { spec: object }, signal: AbortSignal) => {
    const name = claim.metadata.name
    created.inc()
    try {
      claims.wrote(await client.create('PersistentVolumeClaim', claim, {}, signal))
      const object = `PersistentVolumeClaim/${keyOf(claim)}`
      deps.onTransition?.({ controller: 'ephemeral', object, rule: 'EPH-2', what: 'create' })
    } catch (error) {
      failures.inc()
      // Somebody was faster, or our cache is old: whose claim it is will be seen at the next look.
      if (isAlreadyExists(error)) throw error
      const volume = name.slice(pod.metadata.name.length + 1)
      fail(pod, volume, `create PVC ${name}: ${textOf(error)}`)
    }
  }
  const gate = { isOpen: false }
  const loop = createKeyLoop<string>({
    name: 'ephemeral',
    clock,
    workers: deps.options?.workers ?? 5,
    async look(key, signal) {
      const pod = pods.get(key)
      waiting.set(`Pod/${key}`, [])
      if (pod === undefined) return
      for (const action of planEphemeral(pod, claims.get)) {
        switch (action.kind) {
          case 'create':
            await create(pod, action.claim, signal)
            break
          case 'foreign':
            fail(pod, action.volume, action.message, 'foreignClaim')
            break
          default:
            action satisfies never
        }
      }
    },
    onError: (key, error, until) =>
      waiting.set(`Pod/${key}`, [{ reason: reasonOf(error), rule: 'EPH-3', message: textOf(error), until }]),
  })
  const wakePod = (pod: Pod) => {
    if (gate.isOpen && ephemeralKeys(pod).length > 0) loop.wake(keyOf(pod))
  }
  stack.use(
    pods.subscribe(({ key, object }) => {
      if (object !== undefined) return wakePod(object)
      waiting.set(`Pod/${key}`, [])
      loop.forget(key)
    }),
  )
  stack.use(
    claims.subscribe(({ key, object }) => {
      if (object === undefined) for (const pod of podsByClaim.get(key)) wakePod(pod)
    }),
  )
  return oneLoopController({
    name: 'ephemeral',
    gate,
    loop,
    waiting,
    subscriptions: stack,
    synced: Promise.all([pods.synced, claims.synced]),
    begin() {
      for (const pod of pods.items.values()) wakePod(pod)
    },
  })
}
