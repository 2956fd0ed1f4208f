// Who grows a volume at the controller? This job calls ControllerExpandVolume, then the PersistentVolume is written,
// then the claim: a crash in between leaves a larger volume and work that resumes (SIDE-35 … SIDE-38, XRS-1 … XRS-8).
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { annotation, keyOf, refKey, uidOf, withAnnotations } from '../../api/meta.ts'
import { claimKeysOf, hasEnded } from '../../api/pod-claims.ts'
import { quantityOfBytes } from '../../api/quantity.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError, refused } from '../../volume/effect.ts'
import { expandVerdict } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { controllerCapability } from '../values.ts'
import { createJobHistory } from './job-history.ts'
import type { JobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import { onSpaceFreed } from './freed-space.ts'
import type { JobLoop } from './job-loop.ts'
import { change, readSecret, recordOnClaim, slowRetryMs, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import { failedFinally, finished, handedOver, planResize, resizeStatusOf, started } from './resize-plan.ts'
import type { ResizeMemory, ResizePlan } from './resize-plan.ts'

type ClaimKey = ObjectKey<'PersistentVolumeClaim'>

interface Resizer {
  readonly deps: JobDeps
  readonly history: JobHistory
  /** The driver has no controller expansion: only the node grows anything (XRS-8). */
  readonly trivial: boolean
  /** By the claim's uid. */
  readonly memory: Map<string, ResizeMemory>
}

export function createResizer(deps: JobDeps): AsyncDisposable {
  const { clock, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const volumes = informers.of('PersistentVolume')
  const podsOf = informers.of('Pod').index(claimKeysOf)
  const trivial = !deps.controller.has('EXPAND_VOLUME')
  const resizer: Resizer = { deps, history: createJobHistory(deps, 'expand'), trivial, memory: new Map() }
  const loop = stack.use(
    createLoopWithHistory<ClaimKey>(deps, {
      ...{ name: 'resizer', workers, history: resizer.history, failure: 'expansion failed' },
      needs: () => [],
      async sync(key, signal) {
        const claim = claims.get(refKey(key))
        if (!claim) return
        const volume = claim.spec?.volumeName ? volumes.get(claim.spec.volumeName) : undefined
        if (volume && !deps.owns().volume(volume)) return
        const memory = resizer.memory.get(uidOf(claim))
        const isUsed = isAnyRunning(podsOf.get(refKey(key)))
        const facts = { claim, volume, driver: driver.name, trivial, memory, isUsed, now: clock.now() }
        const plan = planResize(facts)
        if (plan) return carryOut(resizer, { claim, volume: volume! }, plan, signal)
      },
    }),
  )
  follow(resizer, stack, loop)
  return stack
}

function follow({ deps, memory }: Resizer, stack: AsyncDisposableStack, loop: JobLoop<ClaimKey>): void {
  const { driver, informers } = deps
  const claims = informers.of('PersistentVolumeClaim')
  const wake = (claim: PersistentVolumeClaim) => loop.wake(objectKey('PersistentVolumeClaim', claim))
  stack.use(
    claims.subscribe(({ object, previous }) => {
      if (!object) memory.delete(previous.metadata.uid ?? '')
      else if (!previous || needsSync(object, previous)) wake(object)
    }),
  )
  stack.use(
    informers.of('PersistentVolume').subscribe(({ object }) => {
      const { namespace, name } = object?.spec?.claimRef ?? {}
      if (object?.spec?.csi?.driver === driver.name && namespace && name)
        loop.wake({ kind: 'PersistentVolumeClaim', namespace, name })
    }),
  )
  stack.use(
    onSpaceFreed(informers, driver.name, () => {
      if (!memory.values().some(({ slow }) => slow)) return
      for (const claim of claims.items.values()) {
        const known = memory.get(claim.metadata.uid ?? '')
        if (!known?.slow) continue
        const { slow: _, ...rest } = known
        memory.set(uidOf(claim), rest)
        wake(claim)
      }
    }),
  )
  stack.use(
    informers.of('Pod').subscribe(({ object, previous }) => {
      const ended = object ? hasEnded(object) && previous !== undefined && !hasEnded(previous) : true
      for (const key of ended ? claimKeysOf(object ?? previous!) : []) {
        const claim = claims.get(key)
        if (claim && memory.get(claim.metadata.uid ?? '')?.inUse) wake(claim)
      }
    }),
  )
}

interface Pair {
  readonly claim: PersistentVolumeClaim
  readonly volume: PersistentVolume
}

async function carryOut(
  resizer: Resizer,
  pair: Pair,
  { forgetOldSize, action }: ResizePlan,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { deps, history } = resizer
  const { claim, volume } = pair
  if (forgetOldSize) {
    const forget = (each: PersistentVolume) => withAnnotations(each, { [annotations.preResizeCapacity]: undefined })
    await change(deps.client, 'PersistentVolume', volume, forget, {}, signal)
  }
  switch (action.kind) {
    case 'nothing':
      return
    case 'wait':
      return { again: action.until }
    case 'waitForPods': {
      const text = `Unable to expand ${keyOf(claim)} because CSI driver ${deps.driver.name} only supports offline expansion and volume is currently in-use`
      recordOnClaim(deps, claim, 'Warning', 'VolumeResizeFailed', text)
      history.failed(objectKey('PersistentVolumeClaim', claim), refused('GrowsOnlyUnused', text, 'none'))
      return
    }
    case 'expand':
      return expand(resizer, pair, action.target, signal)
    default:
      return action satisfies never
  }
}

async function expand(resizer: Resizer, pair: Pair, target: bigint, signal: AbortSignal): Promise<Looked | void> {
  const { deps, memory } = resizer
  const { claim, volume } = pair
  const begun = await begin(deps, claim, target, signal)
  if (!begun) return
  recordOnClaim(deps, begun, 'Normal', 'Resizing', `External resizer is resizing volume ${volume.metadata.name}`)
  try {
    const answer = resizer.trivial
      ? { capacityBytes: target, nodeExpansionRequired: true }
      : await resizer.history.calling(objectKey('PersistentVolumeClaim', claim), 'ControllerExpandVolume', () =>
          callDriver(deps, volume, target, signal),
        )
    memory.delete(uidOf(claim))
    const bytes = answer.capacityBytes === 0n ? target : answer.capacityBytes
    await save(deps, { claim: begun, volume }, bytes, answer.nodeExpansionRequired, signal)
    const [reason, text] = answer.nodeExpansionRequired
      ? (['FileSystemResizeRequired', 'Require file system resize of volume on node'] as const)
      : (['VolumeResizeSuccessful', 'Resize volume succeeded'] as const)
    recordOnClaim(deps, begun, 'Normal', reason, text)
    deps.log.info('volume expanded', { driver: deps.driver.name, claim: keyOf(claim), bytes: answer.capacityBytes })
  } catch (error) {
    return failed(resizer, begun, target, error, signal)
  }
}

async function callDriver(deps: JobDeps, volume: PersistentVolume, sizeBytes: bigint, signal: AbortSignal) {
  const csi = volume.spec?.csi
  const request = {
    volumeId: csi?.volumeHandle ?? '',
    sizeBytes,
    capability: controllerCapability(volume.spec ?? {}, deps.controller.has('SINGLE_NODE_MULTI_WRITER')),
    secrets: await readSecret(deps.client, csi?.controllerExpandSecretRef, signal),
  }
  return deps.driver.controller(timeouts.resizer).expand(request, signal)
}

async function failed(
  { deps, history, memory }: Resizer,
  claim: PersistentVolumeClaim,
  target: bigint,
  error: unknown,
  signal: AbortSignal,
): Promise<Looked> {
  const { client, clock } = deps
  const verdict = expandVerdict(error)
  const { message } = asVolumeError(error)
  recordOnClaim(deps, claim, 'Warning', 'VolumeResizeFailed', message)
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
  history.failed(objectKey('PersistentVolumeClaim', claim), error, until)
  if (verdict === 'infeasible') return { again: until }
  throw error
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
async function save(
  deps: JobDeps,
  { claim, volume }: Pair,
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

/** Sizes, their status, the volume or the resizer changed (XRS-1). */
function needsSync(now: PersistentVolumeClaim, before: PersistentVolumeClaim): boolean {
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

function isAnyRunning(pods: Iterable<Pod>): boolean {
  for (const pod of pods) if (!hasEnded(pod)) return true
  return false
}
