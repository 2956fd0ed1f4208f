// Who changes a volume's attributes while it lives? ControllerModifyVolume follows the claim's VolumeAttributesClass
// (SIDE-39, MOD-1 … MOD-4). The claim's status names the change before the call.
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { annotation, keyOf, refKey, withCondition, withoutCondition } from '../../api/meta.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { CsiError } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { createJobHistory } from './job-history.ts'
import type { JobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import type { JobLoop } from './job-loop.ts'
import { change, readSecret, recordOnClaim, slowRetryMs } from './job.ts'
import type { JobDeps } from './job.ts'
import { planModify } from './modify-plan.ts'
import type { ModifyPlan } from './modify-plan.ts'

type Status = NonNullable<PersistentVolumeClaim['status']>
type ClaimKey = ObjectKey<'PersistentVolumeClaim'>

interface Modifier {
  readonly deps: JobDeps
  readonly history: JobHistory
  /** Claims (`namespace/name`) whose last change the driver refused for good: nothing is in progress. */
  readonly refused: Set<string>
}

export function createModifier(deps: JobDeps): AsyncDisposable {
  const { driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const classes = informers.of('VolumeAttributesClass')
  const modifier: Modifier = { deps, history: createJobHistory(deps, 'modify'), refused: new Set() }
  const loop = stack.use(
    createLoopWithHistory<ClaimKey>(deps, {
      ...{ name: 'modifier', workers: 8, history: modifier.history, failure: 'modification failed' },
      needs: () => [],
      async sync(key, signal) {
        const claim = claims.get(refKey(key))
        if (!claim) return
        const volume = claim.spec?.volumeName ? volumes.get(claim.spec.volumeName) : undefined
        if (volume && !deps.owns().volume(volume)) return
        const plan = planModify({
          claim,
          volume,
          driver: driver.name,
          wasRefused: modifier.refused.has(refKey(key)),
          attributesClass: classes.get,
        })
        return carryOut(modifier, claim, plan, signal)
      },
    }),
  )
  follow(modifier, stack, loop)
  return stack
}

function follow({ deps, refused }: Modifier, stack: AsyncDisposableStack, loop: JobLoop<ClaimKey>): void {
  const claims = deps.informers.of('PersistentVolumeClaim')
  stack.use(
    claims.subscribe(({ object, previous, key }) => {
      const wanted = (claim: PersistentVolumeClaim | undefined) => claim?.spec?.volumeAttributesClassName
      const phase = (claim: PersistentVolumeClaim | undefined) => claim?.status?.phase
      if (!object) refused.delete(key)
      else if (!previous || wanted(object) !== wanted(previous) || phase(object) !== phase(previous))
        loop.wake(objectKey('PersistentVolumeClaim', object))
    }),
  )
  stack.use(
    deps.informers.of('VolumeAttributesClass').subscribe(({ object }) => {
      if (!object) return
      for (const claim of claims.items.values())
        if (claim.spec?.volumeAttributesClassName === object.metadata.name)
          loop.wake(objectKey('PersistentVolumeClaim', claim))
    }),
  )
}

async function carryOut(
  modifier: Modifier,
  claim: PersistentVolumeClaim,
  plan: ModifyPlan,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { deps } = modifier
  switch (plan.kind) {
    case 'nothing':
      return
    case 'cancel': {
      const clear = (status: Status) => ({
        ...status,
        conditions: withoutCondition(status.conditions, 'ModifyingVolume'),
      })
      await writeStatus(deps, claim, clear, signal)
      return recordOnClaim(deps, claim, 'Normal', 'VolumeModifyCanceled', 'Cancelled modify of volume attributes')
    }
    case 'postpone': {
      const modifyVolumeStatus = { targetVolumeAttributesClassName: plan.target, status: 'Pending' as const }
      await writeStatus(deps, claim, (status) => ({ ...status, modifyVolumeStatus }), signal)
      return recordOnClaim(deps, claim, 'Warning', 'VolumeModifyFailed', plan.message)
    }
    case 'refuse': {
      await writeStatus(deps, claim, (status) => refusedStatus(status, plan.target, plan.message, 'Infeasible'), signal)
      return recordOnClaim(deps, claim, 'Warning', 'VolumeModifyFailed', plan.message)
    }
    case 'modify':
      return modify(modifier, claim, plan, signal)
    default:
      return plan satisfies never
  }
}

async function modify(
  modifier: Modifier,
  claim: PersistentVolumeClaim,
  plan: Extract<ModifyPlan, { kind: 'modify' }>,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { deps, history, refused } = modifier
  const { target, volume } = plan
  const { name } = claim.metadata
  const begun = await begin(deps, claim, target, signal)
  if (!begun) return
  recordOnClaim(
    deps,
    claim,
    'Normal',
    'VolumeModify',
    `external resizer is modifying volume ${name} with vac ${target}`,
  )
  try {
    const secrets = await readSecret(deps.client, secretOf(volume), signal)
    const volumeId = volume.spec?.csi?.volumeHandle ?? ''
    const request = { volumeId, mutableParameters: plan.parameters, secrets }
    const call = () => deps.driver.controller(timeouts.resizer).modify(request, signal)
    await history.calling(objectKey('PersistentVolumeClaim', claim), 'ControllerModifyVolume', call)
  } catch (error) {
    return failed(modifier, begun, target, error, signal)
  }
  refused.delete(keyOf(claim))
  const modified = (each: PersistentVolume) => ({ ...each, spec: { ...each.spec, volumeAttributesClassName: target } })
  await change(deps.client, 'PersistentVolume', volume, modified, {}, signal)
  await writeStatus(deps, begun, (status) => finishedStatus(status, target), signal)
  const text = `external resizer modified volume ${name} with vac ${target} successfully`
  recordOnClaim(deps, claim, 'Normal', 'VolumeModifySuccessful', text)
  // The claim may want another class by now than the one that was in progress.
  const wanted = deps.informers.of('PersistentVolumeClaim').get(keyOf(claim))?.spec?.volumeAttributesClassName ?? target
  if (wanted !== target) return { again: deps.clock.now() }
}

/** The change is named in the claim's status before the driver is asked. */
function begin(deps: JobDeps, claim: PersistentVolumeClaim, target: string, signal: AbortSignal) {
  const lastTransitionTime = timestamp(deps.clock.now())
  const condition = { type: 'ModifyingVolume', status: 'True', lastTransitionTime } as const
  const start = (status: Status): Status => ({
    ...status,
    modifyVolumeStatus: { targetVolumeAttributesClassName: target, status: 'InProgress' },
    conditions: withCondition(status.conditions, condition),
  })
  return writeStatus(deps, claim, start, signal)
}

async function failed(
  { deps, history, refused }: Modifier,
  claim: PersistentVolumeClaim,
  target: string,
  error: unknown,
  signal: AbortSignal,
): Promise<Looked> {
  const { message, effect } = asVolumeError(error)
  recordOnClaim(deps, claim, 'Warning', 'VolumeModifyFailed', message)
  if (effect === 'unknown') {
    refused.delete(keyOf(claim))
    throw error
  }
  refused.add(keyOf(claim))
  const infeasible = error instanceof CsiError && error.status === 'INVALID_ARGUMENT'
  const outcome = infeasible ? 'Infeasible' : 'InProgress'
  const refuse = (status: Status): Status => refusedStatus(status, target, message, outcome)
  await writeStatus(deps, claim, refuse, signal)
  if (!infeasible) throw error
  const again = deps.clock.now() + slowRetryMs
  history.failed(objectKey('PersistentVolumeClaim', claim), error, again)
  return { again }
}

function secretOf(volume: PersistentVolume) {
  const name = annotation(volume, annotations.modifySecretName)
  const namespace = annotation(volume, annotations.modifySecretNamespace)
  return name && namespace ? { name, namespace } : undefined
}

function refusedStatus(status: Status, target: string, message: string, outcome: 'Infeasible' | 'InProgress'): Status {
  const text = `failed to modify volume with ${message}`
  const condition = { type: 'ModifyVolumeError', status: 'True', message: text } as const
  return {
    ...status,
    conditions: withCondition(status.conditions, condition),
    modifyVolumeStatus: { targetVolumeAttributesClassName: target, status: outcome },
  }
}

function finishedStatus(status: Status, target: string): Status {
  const { modifyVolumeStatus: _done, ...rest } = status
  const conditions = withoutCondition(withoutCondition(status.conditions, 'ModifyingVolume'), 'ModifyVolumeError')
  return { ...rest, currentVolumeAttributesClassName: target, conditions }
}

function writeStatus(
  { client }: JobDeps,
  claim: PersistentVolumeClaim,
  apply: (status: Status) => Status,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const write = (each: PersistentVolumeClaim) => ({ ...each, status: apply(each.status ?? {}) })
  return change(client, 'PersistentVolumeClaim', claim, write, { subresource: 'status' }, signal)
}
