// Who grows a volume at the controller? This job calls ControllerExpandVolume, then the PersistentVolume is written,
// then the claim: a crash in between leaves a larger volume and work that resumes (SIDE-35 … SIDE-38, XRS-1 … XRS-8).
import { annotations } from '../../api/annotations.ts'
import { annotation, conditionIsTrue, keyOf, uidOf, withAnnotations } from '../../api/meta.ts'
import { quantityOfBytes } from '../../api/quantity.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { expandVerdict } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { capabilityOf } from './attacher.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { change, jobBackoff, readSecret, refused, slowRetryMs, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import {
  failedFinally,
  finished,
  handedOver,
  resizeStatusOf,
  resizeTarget,
  sizeOf,
  started,
  volumeSize,
} from './resize-plan.ts'

export function createResizer(deps: JobDeps): AsyncDisposable {
  const { client, clock, log, recorder, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const pods = informers.of('Pod')
  const podsOf = pods.index((pod) => claimKeys(pod))
  const trivial = !deps.controller.has('EXPAND_VOLUME')
  const memory = new Map<
    string,
    { readonly final: boolean; readonly inUse: boolean; readonly slow?: { size: bigint; until: number } }
  >()
  const controller = driver.controller(timeouts.resizer)
  const story = createJobStory(deps, 'expand')
  const objectsOf = (key: string) => [reference('PersistentVolumeClaim', key)]
  const say = (claim: PersistentVolumeClaim, type: 'Normal' | 'Warning', reason: string, text: string) =>
    recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, type, reason, text)

  const look = async (key: string, signal: AbortSignal): Promise<Looked | void> => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const claim = claims.get(key)
    const volume = claim?.spec?.volumeName ? volumes.get(claim.spec.volumeName) : undefined
    if (!claim || !volume || claim.status?.phase !== 'Bound' || volume.spec?.csi?.driver !== driver.name) return
    if (volume.spec.claimRef?.uid !== claim.metadata.uid) return
    await tidy(deps, claim, volume, signal)
    const requested = sizeOf(claim.spec?.resources?.requests) ?? 0n
    if (requested <= (sizeOf(claim.status.capacity) ?? 0n)) return
    const known = memory.get(uidOf(claim))
    const target = resizeTarget({
      volumeBytes: volumeSize(volume),
      requestedBytes: requested,
      allocatedBytes: sizeOf(claim.status.allocatedResources),
      status: resizeStatusOf(claim),
      lastWasFinal: known?.final ?? false,
      fileSystemResizePending: conditionIsTrue(claim.status.conditions, 'FileSystemResizePending'),
      trivial,
    })
    if (target === undefined) return
    if (known?.slow && known.slow.size === target && known.slow.until > clock.now()) return { again: known.slow.until }
    if (known?.inUse && isUsed(podsOf.get(key))) {
      const text = `Unable to expand ${key} because CSI driver ${driver.name} only supports offline expansion and volume is currently in-use`
      say(claim, 'Warning', 'VolumeResizeFailed', text)
      story.failed(objectsOf(key), key, refused('GrowsOnlyUnused', text))
      return // a pod that ends wakes the claim
    }
    return expand(claim, volume, target, signal)
  }
  const expand = async (
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    target: bigint,
    signal: AbortSignal,
  ): Promise<Looked | void> => {
    const begun = await begin(deps, claim, target, signal)
    if (!begun) return
    say(begun, 'Normal', 'Resizing', `External resizer is resizing volume ${volume.metadata.name}`)
    const csi = volume.spec?.csi
    try {
      const answer = trivial
        ? { capacityBytes: target, nodeExpansionRequired: true }
        : await controller.expand(
            {
              volumeId: csi?.volumeHandle ?? '',
              sizeBytes: target,
              capability: capabilityOf(volume.spec ?? {}, deps.controller.has('SINGLE_NODE_MULTI_WRITER')),
              secrets: await readSecret(client, csi?.controllerExpandSecretRef, signal),
            },
            signal,
          )
      memory.delete(uidOf(claim))
      await record(
        deps,
        begun,
        volume,
        answer.capacityBytes === 0n ? target : answer.capacityBytes,
        answer.nodeExpansionRequired,
        signal,
      )
      const [reason, text] = answer.nodeExpansionRequired
        ? ['FileSystemResizeRequired', 'Require file system resize of volume on node']
        : ['VolumeResizeSuccessful', 'Resize volume succeeded']
      say(begun, 'Normal', reason!, text!)
      log.info('volume expanded', { driver: driver.name, claim: keyOf(claim), bytes: answer.capacityBytes })
    } catch (error) {
      return failed(begun, target, error, signal)
    }
  }
  const failed = async (
    claim: PersistentVolumeClaim,
    target: bigint,
    error: unknown,
    signal: AbortSignal,
  ): Promise<Looked> => {
    const verdict = expandVerdict(error)
    const { message } = asVolumeError(error)
    say(claim, 'Warning', 'VolumeResizeFailed', message)
    if (verdict === 'uncertain') throw error
    const until = clock.now() + slowRetryMs
    memory.set(uidOf(claim), {
      final: true,
      inUse: verdict === 'inUse',
      ...(verdict === 'infeasible' && { slow: { size: target, until } }),
    })
    const now = timestamp(clock.now())
    const mark = (each: PersistentVolumeClaim) => failedFinally(each, message, verdict === 'infeasible', now)
    await change(client, 'PersistentVolumeClaim', claim, mark, { subresource: 'status' }, signal)
    story.failed(objectsOf(keyOf(claim)), keyOf(claim), error, until)
    if (verdict === 'infeasible') return { again: until }
    throw error
  }
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `resizer ${driver.name}`,
      clock,
      workers,
      backoff: jobBackoff,
      look,
      onError: (key, error, retryAt) =>
        log.warn('expansion failed', { driver: driver.name, claim: key, error, retryAt }),
    }),
  )
  stack.use(
    claims.subscribe(({ object, previous, key }) => {
      if (!object) memory.delete(previous.metadata.uid ?? '')
      else if (!previous || worthLooking(object, previous)) loop.wake(key)
    }),
  )
  stack.use(
    volumes.subscribe(({ object }) => {
      const ref = object?.spec?.claimRef
      if (object?.spec?.csi?.driver === driver.name && ref?.name) loop.wake(`${ref.namespace ?? ''}/${ref.name}`)
    }),
  )
  stack.use(
    pods.subscribe(({ object, previous }) => {
      const ended = object ? isOver(object) && previous !== undefined && !isOver(previous) : true
      if (ended)
        for (const key of claimKeys(object ?? previous!))
          if (memory.get(claims.get(key)?.metadata.uid ?? '')?.inUse) loop.wake(key)
    }),
  )
  return stack
}

/** Announced before the call, so that a restart knows which size was under way. */
async function begin({ client, clock }: JobDeps, claim: PersistentVolumeClaim, target: bigint, signal: AbortSignal) {
  const now = timestamp(clock.now())
  const cleared = await change(
    client,
    'PersistentVolumeClaim',
    claim,
    (each) =>
      annotation(each, annotations.nodeExpansionNotRequired) === undefined
        ? undefined
        : withAnnotations(each, { [annotations.nodeExpansionNotRequired]: undefined }),
    {},
    signal,
  )
  return (
    cleared &&
    change(
      client,
      'PersistentVolumeClaim',
      cleared,
      (each) => started(each, target, now),
      { subresource: 'status' },
      signal,
    )
  )
}

/** The volume first, the claim after it: the order is what makes a crash harmless. */
async function record(
  deps: JobDeps,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  bytes: bigint,
  nodeRequired: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { client } = deps
  const now = timestamp(deps.clock.now())
  const before = claim.status?.capacity?.['storage']
  const grow = (each: PersistentVolume): PersistentVolume => {
    const grown = {
      ...each,
      spec: { ...each.spec, capacity: { ...each.spec?.capacity, storage: quantityOfBytes(bytes) } },
    }
    const marked = nodeRequired && before !== undefined && annotation(each, annotations.preResizeCapacity) === undefined
    return marked ? withAnnotations(grown, { [annotations.preResizeCapacity]: before }) : grown
  }
  await change(client, 'PersistentVolume', volume, grow, {}, signal)
  const claimNow = nodeRequired
    ? claim
    : await change(
        client,
        'PersistentVolumeClaim',
        claim,
        (each) => withAnnotations(each, { [annotations.nodeExpansionNotRequired]: 'true' }),
        {},
        signal,
      )
  if (!claimNow) return
  const end = (each: PersistentVolumeClaim) => (nodeRequired ? handedOver(each, now) : finished(each, bytes))
  await change(client, 'PersistentVolumeClaim', claimNow, end, { subresource: 'status' }, signal)
}

/** The old size is remembered only as long as the node has not caught up. */
async function tidy(
  { client }: JobDeps,
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<void> {
  if (annotation(volume, annotations.preResizeCapacity) === undefined) return
  if ((sizeOf(claim.status?.capacity) ?? 0n) < volumeSize(volume)) return
  await change(
    client,
    'PersistentVolume',
    volume,
    (each) => withAnnotations(each, { [annotations.preResizeCapacity]: undefined }),
    {},
    signal,
  )
}

/** XRS-1 */
function worthLooking(now: PersistentVolumeClaim, before: PersistentVolumeClaim): boolean {
  const plain = (claim: PersistentVolumeClaim) =>
    JSON.stringify([
      claim.spec?.resources?.requests,
      claim.spec?.volumeName,
      claim.status?.phase,
      claim.status?.capacity,
      resizeStatusOf(claim),
      annotation(claim, annotations.storageResizer),
    ])
  return plain(now) !== plain(before)
}

function claimKeys(pod: Pod): string[] {
  const namespace = pod.metadata.namespace ?? ''
  return (pod.spec?.volumes ?? []).flatMap((volume) => {
    const name =
      volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined)
    return name === undefined ? [] : [`${namespace}/${name}`]
  })
}

const isOver = (pod: Pod) => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'

function isUsed(pods: Iterable<Pod>): boolean {
  for (const pod of pods) if (!isOver(pod)) return true
  return false
}
