// Who changes a volume's attributes while it lives? ControllerModifyVolume follows the claim's VolumeAttributesClass
// (SIDE-39, MOD-1 … MOD-4).
//
// What is in progress is finished before another change is begun, unless the driver's last word on it was final: the claim's
// status says what is in progress, so a restart changes nothing (MOD-3).
import { annotations } from '../../api/annotations.ts'
import { annotation, withCondition, withoutCondition } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { CsiError } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { change, jobBackoff, readSecret, slowRetryMs } from './job.ts'
import type { JobDeps } from './job.ts'

type Status = NonNullable<PersistentVolumeClaim['status']>

export function createModifier(deps: JobDeps): AsyncDisposable {
  const { client, clock, log, recorder, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const classes = informers.of('VolumeAttributesClass')
  const controller = driver.controller(timeouts.resizer)
  const settled = new Set<string>() // claims whose last change was refused for good: nothing is under way
  const say = (claim: PersistentVolumeClaim, type: 'Normal' | 'Warning', reason: string, text: string) =>
    recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, type, reason, text)
  const writeStatus = (claim: PersistentVolumeClaim, apply: (status: Status) => Status, signal: AbortSignal) =>
    change(
      client,
      'PersistentVolumeClaim',
      claim,
      (each) => ({ ...each, status: apply(each.status ?? {}) }),
      { subresource: 'status' },
      signal,
    )

  const story = createJobStory(deps, 'modify')
  const objectsOf = (key: string) => [reference('PersistentVolumeClaim', key)]
  const look = async (key: string, signal: AbortSignal): Promise<Looked | void> => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const claim = claims.get(key)
    const volume = claim?.spec?.volumeName ? volumes.get(claim.spec.volumeName) : undefined
    if (!claim || claim.status?.phase !== 'Bound' || volume?.spec?.csi?.driver !== driver.name) return
    const wanted = claim.spec?.volumeAttributesClassName ?? ''
    const current = claim.status.currentVolumeAttributesClassName ?? ''
    const under = claim.status.modifyVolumeStatus
    if (under === undefined && wanted === current) return
    if (wanted === '' && under?.status !== 'InProgress') return cancel(claim, signal)
    const unfinished =
      under?.status === 'InProgress' && !settled.has(key) ? under.targetVolumeAttributesClassName : undefined
    const target = unfinished ?? (wanted === '' ? (under?.targetVolumeAttributesClassName ?? '') : wanted)
    const attributes = classes.get(target)
    if (!attributes) return postpone(claim, target, `VAC "${target}" does not exist.`, signal)
    if (attributes.driverName !== driver.name)
      return postpone(claim, target, `VAC "${target}" is for driver ${attributes.driverName}.`, signal)
    return modify(key, claim, volume, target, attributes.parameters ?? {}, signal)
  }
  /** MOD-1: the class's own change wakes the claim again. */
  const postpone = async (claim: PersistentVolumeClaim, target: string, text: string, signal: AbortSignal) => {
    const modifyVolumeStatus = { targetVolumeAttributesClassName: target, status: 'Pending' as const }
    await writeStatus(claim, (status) => ({ ...status, modifyVolumeStatus }), signal)
    say(claim, 'Warning', 'VolumeModifyFailed', text)
  }
  const cancel = async (claim: PersistentVolumeClaim, signal: AbortSignal) => {
    if (!claim.status?.conditions?.some(({ type }) => type === 'ModifyingVolume')) return
    await writeStatus(
      claim,
      (status) => ({ ...status, conditions: withoutCondition(status.conditions, 'ModifyingVolume') }),
      signal,
    )
    say(claim, 'Normal', 'VolumeModifyCanceled', 'Cancelled modify of volume attributes')
  }
  const modify = async (
    key: string,
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    target: string,
    mutableParameters: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Looked | void> => {
    const lastTransitionTime = timestamp(clock.now())
    const begun = await writeStatus(
      claim,
      (status) => ({
        ...status,
        modifyVolumeStatus: { targetVolumeAttributesClassName: target, status: 'InProgress' },
        conditions: withCondition(status.conditions, { type: 'ModifyingVolume', status: 'True', lastTransitionTime }),
      }),
      signal,
    )
    if (!begun) return
    say(
      claim,
      'Normal',
      'VolumeModify',
      `external resizer is modifying volume ${claim.metadata.name} with vac ${target}`,
    )
    try {
      const name = annotation(volume, annotations.modifySecretName)
      const namespace = annotation(volume, annotations.modifySecretNamespace)
      const secrets = await readSecret(client, name && namespace ? { name, namespace } : undefined, signal)
      const request = { volumeId: volume.spec?.csi?.volumeHandle ?? '', mutableParameters, secrets }
      const call = () => controller.modify(request, signal)
      await story.calling(objectsOf(key), key, 'ControllerModifyVolume', call)
    } catch (error) {
      return failed(key, begun, target, error, signal)
    }
    settled.delete(key)
    await change(
      client,
      'PersistentVolume',
      volume,
      (each) => ({ ...each, spec: { ...each.spec, volumeAttributesClassName: target } }),
      {},
      signal,
    )
    await writeStatus(begun, (status) => settledStatus(status, target), signal)
    say(
      claim,
      'Normal',
      'VolumeModifySuccessful',
      `external resizer modified volume ${claim.metadata.name} with vac ${target} successfully`,
    )
    // What was finished first may not be what the claim wants by now.
    const wanted = claims.get(key)?.spec?.volumeAttributesClassName ?? target
    if (wanted !== target) return { again: clock.now() }
  }
  const failed = async (
    key: string,
    claim: PersistentVolumeClaim,
    target: string,
    error: unknown,
    signal: AbortSignal,
  ): Promise<Looked> => {
    const { message, effect } = asVolumeError(error)
    say(claim, 'Warning', 'VolumeModifyFailed', message)
    if (effect === 'unknown') {
      settled.delete(key)
      throw error
    }
    settled.add(key)
    const infeasible = error instanceof CsiError && error.status === 'INVALID_ARGUMENT'
    const condition = {
      type: 'ModifyVolumeError',
      status: 'True' as const,
      message: `failed to modify volume with ${message}`,
    }
    await writeStatus(
      claim,
      (status) => ({
        ...status,
        conditions: withCondition(status.conditions, condition),
        modifyVolumeStatus: {
          targetVolumeAttributesClassName: target,
          status: infeasible ? 'Infeasible' : 'InProgress',
        },
      }),
      signal,
    )
    if (!infeasible) throw error
    const again = clock.now() + slowRetryMs
    story.failed(objectsOf(key), key, error, again)
    return { again }
  }
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `modifier ${driver.name}`,
      clock,
      workers: 8,
      backoff: jobBackoff,
      look,
      onError: (key, error, retryAt) =>
        log.warn('modification failed', { driver: driver.name, claim: key, error, retryAt }),
    }),
  )
  stack.use(
    claims.subscribe(({ object, previous, key }) => {
      const wanted = (claim: PersistentVolumeClaim | undefined) => claim?.spec?.volumeAttributesClassName
      const phase = (claim: PersistentVolumeClaim | undefined) => claim?.status?.phase
      if (!object) settled.delete(key)
      else if (!previous || wanted(object) !== wanted(previous) || phase(object) !== phase(previous)) loop.wake(key)
    }),
  )
  stack.use(
    classes.subscribe(({ object }) => {
      if (!object) return
      for (const [key, claim] of claims.items)
        if (claim.spec?.volumeAttributesClassName === object.metadata.name) loop.wake(key)
    }),
  )
  return stack
}

function settledStatus(status: Status, target: string): Status {
  const { modifyVolumeStatus: _done, ...rest } = status
  const conditions = withoutCondition(withoutCondition(status.conditions, 'ModifyingVolume'), 'ModifyVolumeError')
  return { ...rest, currentVolumeAttributesClassName: target, conditions }
}
