// When is what was applied there? Claims are bound and pods run. One after the other, but a wait in vain of any of them ends all.
import type { Pod } from '../api/generated/types.ts'
import type { KindName } from '../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import { claimKeysOf } from '../api/pod-claims.ts'
import type { Client } from '../client/client.ts'
import { boundTo, findClass } from './commands/volume/options.ts'
import type { Context } from './context.ts'
import { inNamespace } from './hints.ts'
import { watchCause } from './wait-cause.ts'
import type { Look } from './wait.ts'
import { waitUntil } from './wait.ts'

export interface AppliedObject {
  readonly kind: KindName
  readonly ref: ObjectRef
  /** As the server answered. */
  readonly object: KubeObject
}

export async function waitForApplied(
  context: Context,
  client: Client,
  applied: readonly AppliedObject[],
  timeoutMs: number,
): Promise<void> {
  const used = new Set(applied.flatMap(({ kind, object }) => (kind === 'Pod' ? claimKeysOf(object as Pod) : [])))
  const targets: AppliedObject[] = []
  for (const each of applied) if (await isWaitedFor(context, client, each, used)) targets.push(each)
  using stack = new DisposableStack()
  const inVain = AbortSignal.any(
    targets.map(({ kind, ref }) => stack.use(watchCause(client, kind, ref, () => {})).inVain),
  )
  const end = performance.now() + timeoutMs
  for (const { kind, ref } of targets) {
    const request = { ref, timeoutMs: Math.max(1, Math.ceil(end - performance.now())), signal: inVain }
    if (kind === 'Pod') {
      await waitUntil(context, client, { ...request, kind: 'Pod' }, runs)
      context.print(`pod/${ref.name} runs`)
    } else {
      const claim = { ...request, kind: 'PersistentVolumeClaim' } as const
      const volume = await waitUntil(context, client, claim, boundTo)
      context.print(`persistentvolumeclaim/${ref.name} bound to ${volume}`)
    }
  }
}

/** A claim that is bound with its first pod is not waited for when no such pod was applied: nothing is wrong with it. */
async function isWaitedFor(
  context: Context,
  client: Client,
  { kind, ref }: AppliedObject,
  used: ReadonlySet<string>,
): Promise<boolean> {
  if (kind === 'Pod') return true
  if (kind !== 'PersistentVolumeClaim') return false
  const claim = await client.get('PersistentVolumeClaim', ref)
  const storageClass = await findClass(client, claim)
  if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer' || used.has(`${ref.namespace}/${ref.name}`))
    return true
  if (claim.status?.phase === 'Bound') return true
  context.note(
    `class ${storageClass.metadata.name} provisions the volume of ${ref.name} when the first pod uses the claim`,
  )
  context.note(`  try: hawser run --claim ${ref.name}:/data${inNamespace(ref.namespace ?? '')} -- ls -la /data`)
  return false
}

function runs(pod: Pod | undefined): Look<true> {
  if (!pod) return { done: 'failed', message: 'the pod was deleted meanwhile' }
  const { phase, reason, message } = pod.status ?? {}
  if (phase === 'Failed')
    return { done: 'failed', message: `pod ${pod.metadata.name} failed: ${message ?? reason ?? 'a container failed'}` }
  if (phase === 'Running' || phase === 'Succeeded') return { done: true, value: true }
  return { done: false, waiting: `waiting for pod ${pod.metadata.name} to run` }
}
