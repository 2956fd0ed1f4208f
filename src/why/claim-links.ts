// How far is a claim, and what holds it up? The steps from the wish for storage to a bound claim, its growth and its end.
import { annotations, finalizers } from '../api/annotations.ts'
import type { OperationRecord, PersistentVolumeClaim, Pod } from '../api/generated/types.ts'
import { classOf, hasNoClassDecision } from '../api/storage-class.ts'
import type { Cause, CauseNames } from './causes.ts'
import { changeLinks, growthLinks, healthLinks } from './claim-changes.ts'
import { claimNames, claimTarget, driverOf } from './claim-names.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts, Waited } from './facts.ts'
import {
  claimOf,
  classNamed,
  doneOf,
  failureOf,
  isRegistered,
  parse,
  podsNaming,
  podsOfClaim,
  runningOf,
} from './facts.ts'
import { volumeOf, waitsOf } from './facts.ts'
import { denial, reservedButUnfit, unfitWhenNamed, whoHas, whyNoneFits } from './fit.ts'
import type { BlockFacts, Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts, waitFacts, wordsIn, wordsOf } from './link.ts'
import { podTarget } from './pod-names.ts'
import { causeOfCode, causeOfController } from './reasons.ts'

export function claimLinks(facts: Facts, claim: PersistentVolumeClaim): readonly Link[] {
  const name = claim.metadata.name ?? ''
  const made = done(`claim ${name} is created`, 'you', undefined, parse(claim.metadata.creationTimestamp))
  const bound = boundLink(facts, claim)
  // Whoever deletes a claim that has no volume wants it gone, not bound.
  if (claim.metadata.deletionTimestamp)
    return [made, ...(bound.state === 'done' ? [bound] : []), deletionLink(facts, claim)]
  const after = bound.state === 'done' ? [...growthLinks(facts, claim), ...changeLinks(facts, claim)] : []
  return [made, ...madeLink(facts, claim, bound), bound, ...after, ...healthLinks(facts, claim)]
}

/** The volume was made to order: its own step, with the driver's duration. */
function madeLink(facts: Facts, claim: PersistentVolumeClaim, bound: Link): readonly Link[] {
  const record = doneOf(facts, claimTarget(claim), ['provision'])
  const driver = driverOf(facts, claim)
  if (record) return [done(`its volume is provisioned`, record.spec.actor, record)]
  const willBeMade = bound.state !== 'done' && !claim.spec?.volumeName && driver !== undefined
  return willBeMade ? [later('its volume is provisioned', `csi ${driver}`)] : []
}

function boundLink(facts: Facts, claim: PersistentVolumeClaim): Link {
  const title = 'it is bound'
  const names = claimNames(facts, claim)
  if (claim.status?.phase === 'Bound') {
    const record = doneOf(facts, claimTarget(claim), ['bind'])
    return { ...done(title, 'binding', record), detail: `to ${claim.spec?.volumeName ?? ''}` }
  }
  const age = sinceFacts(parse(claim.metadata.creationTimestamp))
  if (claim.status?.phase === 'Lost') return lostLink(facts, claim, title, names)
  const unfit = reservedButUnfit(facts, claim)
  if (unfit && !claim.spec?.volumeName) {
    const told = { ...names, volume: unfit.volume.metadata.name ?? '', detail: unfit.reason }
    return blocked(title, 'binding', 'reservedUnfit', told, age)
  }
  const [wait] = waitsOf(facts, claimTarget(claim), (actor) => actor === 'binding')
  const failure = failureOf(facts, claimTarget(claim), ['provision'])
  const asked = wait === undefined || askedReasons.has(wait.reason)
  const away = asked && isAsked(facts, claim, wait, failure) && driverTrouble(facts, title, names.driver, names)
  if (away) return away
  // A claim whose node had no room waits for another node; what the driver said is the cause.
  const isGivenBack = wait?.reason === 'firstConsumer' && failure?.status?.error?.code === 'RESOURCE_EXHAUSTED'
  if (failure && (asked || isGivenBack)) return failedLink(facts, claim, title, { failure, wait })
  const byHand = placedByHand(facts, claim, wait)
  if (byHand) return placedLink(facts, byHand, title, names, { ...age, ...waitFacts(wait) })
  const cause = wait === undefined ? derived(facts, claim) : fromReason(facts, claim, wait)
  const running = cause === 'provisioning' && runningOf(facts, claimTarget(claim), ['provision'])
  if (running) return runningLink(facts, title, running, cause, names)
  const elsewhere = cause === 'askedProvisioner' ? nodeWithoutDriver(facts, claim) : undefined
  if (elsewhere) return blocked(title, 'you', 'driverNotOnNode', { ...names, node: elsewhere }, { ...age })
  // What the controller says while it waits for the driver is not the driver's word.
  const error = causeOfController(wait?.reason) === cause && cause !== 'askedProvisioner' ? wordsOf(wait) : {}
  const actor = cause === 'askedProvisioner' || cause === 'provisionerAbsent' ? `csi ${names.driver}` : 'binding'
  const transient = transientCauses.has(cause)
  const told = { ...names, ...detailOf(facts, claim, cause) }
  return blocked(title, actor, cause, told, { ...age, ...waitFacts(wait), ...error, transient })
}

/** Was the driver asked to make the volume, or would it be by now? */
function isAsked(
  facts: Facts,
  claim: PersistentVolumeClaim,
  wait: Waited | undefined,
  failure: OperationRecord | undefined,
): boolean {
  if (failure || wait) return true
  const cause = derived(facts, claim)
  return cause === 'askedProvisioner' || cause === 'provisioning'
}

function failedLink(
  facts: Facts,
  claim: PersistentVolumeClaim,
  title: string,
  { failure, wait }: { readonly failure: OperationRecord; readonly wait: Waited | undefined },
): Link {
  const { names, cause } = refusal(facts, claim, failure)
  const age = sinceFacts(parse(claim.metadata.creationTimestamp))
  return blocked(title, failure.spec.actor, cause, names, { ...age, ...provisionFacts(failure, wait) })
}

function refusal(facts: Facts, claim: PersistentVolumeClaim, failure: OperationRecord) {
  const cause = causeOfCode(failure.status?.error?.code, 'provisioningFailed')
  const node = claim.metadata.annotations?.[annotations.chosenNode]
  const names = { ...claimNames(facts, claim), ...(node === undefined ? {} : { node }) }
  if (cause === 'outOfRange') return { cause, names: { ...names, ...wordsIn(failure) } }
  if (cause !== 'outOfCapacity') return { cause, names: { ...names, ...sourceDetail(facts, claim, cause) } }
  return { cause: node === undefined ? cause : ('nodeFull' as const), names: { ...names, ...wordsIn(failure) } }
}

/** With this code a driver says of CreateVolume that nothing is under way (SIDE-16); of other calls it does not. */
function provisionFacts(failure: OperationRecord, wait?: Waited): BlockFacts {
  const { error, ...rest } = failureFacts(failure, wait)
  if (error === undefined) return rest
  return { ...rest, error: error.code === 'RESOURCE_EXHAUSTED' ? { ...error, effect: 'none' } : error }
}

/** The source by its name, and the two sizes. */
function sourceDetail(facts: Facts, claim: PersistentVolumeClaim, cause: Cause): CauseNames {
  const { kind = '', name = '' } = claim.spec.dataSource ?? claim.spec.dataSourceRef ?? {}
  const words = kind === 'VolumeSnapshot' ? `snapshot ${name}` : `claim ${name}`
  if (cause === 'sourceMissing') return { detail: words }
  if (cause !== 'sourceTooLarge') return {}
  const { namespace } = claim.metadata
  const snapshot = facts.snapshots.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
  const size =
    kind === 'VolumeSnapshot'
      ? snapshot?.status?.restoreSize
      : claimOf(facts, namespace, name)?.spec.resources?.requests?.['storage']
  return { detail: `${claim.spec.resources?.requests?.['storage']}, and ${words} has ${size ?? 'more'}` }
}

/** The node that was chosen for the claim, if the driver is on others only. */
function nodeWithoutDriver(facts: Facts, claim: PersistentVolumeClaim): string | undefined {
  const node = claim.metadata.annotations?.[annotations.selectedNode]
  const driver = driverOf(facts, claim)
  return node !== undefined && driver !== undefined && !isRegistered(facts, driver, node) ? node : undefined
}

/** The volume is gone, or it is there and denies the claim. */
function lostLink(facts: Facts, claim: PersistentVolumeClaim, title: string, names: CauseNames): Link {
  const volume = volumeOf(facts, claim.spec?.volumeName)
  const [wait] = waitsOf(facts, claimTarget(claim), (actor) => actor === 'binding')
  const told = { ...waitFacts(wait), ...wordsOf(wait) }
  if (volume) return blocked(title, 'binding', 'misbound', { ...names, detail: denial(volume, claim) }, told)
  const detail = claim.spec?.volumeName ? `volume ${claim.spec.volumeName} does not exist` : 'it names no volume'
  return blocked(title, 'binding', 'volumeLost', { ...names, detail }, told)
}

/** What the objects themselves tell about the cause. */
function detailOf(facts: Facts, claim: PersistentVolumeClaim, cause: Cause): CauseNames {
  const volume = volumeOf(facts, claim.spec?.volumeName)
  switch (cause) {
    case 'noVolumeFits':
    case 'noDefaultClass':
    case 'noProvisioner':
      return { detail: whyNoneFits(facts, claim) }
    case 'namedVolumeUnfit':
      return { detail: (volume && unfitWhenNamed(volume, claim)) ?? 'did not fit when it was last checked' }
    case 'namedVolumeTaken':
      return { detail: (volume && whoHas(volume, claim)) ?? 'was bound to another claim when it was last checked' }
    case 'misbound':
      return { detail: volume ? denial(volume, claim) : 'does not exist' }
    default:
      return {}
  }
}

/** The claims of such a pod are bound to its node, unless that node cannot have them or pods with a node are left alone. */
function placedLink(facts: Facts, pod: Pod, title: string, names: CauseNames, told: BlockFacts): Link {
  const named = { ...names, pod: pod.metadata.name ?? '' }
  const [wait] = waitsOf(facts, podTarget(pod), (actor) => actor === 'placement')
  if (wait === undefined) return blocked(title, 'you', 'placedByHand', named, told)
  const cause = causeOfController(wait.reason) ?? 'noNodeFits'
  return blocked(title, 'placement', cause, { ...named, detail: wait.message ?? '' }, { ...told, ...waitFacts(wait) })
}

/** A pod that uses the claim and chose its node itself. */
function placedByHand(facts: Facts, claim: PersistentVolumeClaim, wait: Waited | undefined): Pod | undefined {
  const isDelayed = classNamed(facts, classOf(claim))?.volumeBindingMode === 'WaitForFirstConsumer'
  const isChosen = claim.metadata.annotations?.[annotations.selectedNode] !== undefined
  if (!isDelayed || isChosen || claim.spec?.volumeName) return undefined
  if (wait !== undefined && wait.reason !== 'podUnscheduled' && wait.reason !== 'firstConsumer') return undefined
  return podsOfClaim(facts, claim).find(({ spec }) => spec?.nodeName)
}

const askedReasons: ReadonlySet<string> = new Set(['externalProvisioner', 'provisioning', 'provisioningFailed'])
const transientCauses: ReadonlySet<Cause> = new Set(['volumeBusy', 'provisioning'])

function fromReason(facts: Facts, claim: PersistentVolumeClaim, { reason }: Waited): Cause {
  const cause = causeOfController(reason) ?? 'retrying'
  if (cause === 'askedProvisioner') return asked(facts, claim)
  if (cause === 'noVolumeFits') return hasNoClassDecision(claim) ? 'noDefaultClass' : 'noVolumeFits'
  return cause === 'classMissing' ? unmade(facts, claim) : cause
}

/** A class name without an object marks volumes that somebody makes by hand: where there are some, none fits. */
function unmade({ volumes }: Facts, claim: PersistentVolumeClaim): Cause {
  const className = classOf(claim)
  return volumes.some((volume) => classOf(volume) === className) ? 'noVolumeFits' : 'classMissing'
}

function asked(facts: Facts, claim: PersistentVolumeClaim): Cause {
  if (runningOf(facts, claimTarget(claim), ['provision'])) return 'provisioning'
  const driver = driverOf(facts, claim) ?? ''
  return isRegistered(facts, driver) ? 'askedProvisioner' : 'provisionerAbsent'
}

/** Without a word from the controllers, the objects alone still tell much. */
function derived(facts: Facts, claim: PersistentVolumeClaim): Cause {
  const wanted = claim.spec?.volumeName
  if (wanted) {
    const volume = volumeOf(facts, wanted)
    if (!volume) return 'namedVolumeMissing'
    const { claimRef } = volume.spec ?? {}
    const isOurs = claimRef?.name === claim.metadata.name && claimRef?.namespace === claim.metadata.namespace
    if (claimRef && !isOurs) return 'namedVolumeTaken'
    return claimRef?.uid !== undefined && claimRef.uid !== claim.metadata.uid ? 'misbound' : 'retrying'
  }
  const className = classOf(claim)
  if (className === '') return hasNoClassDecision(claim) ? 'noDefaultClass' : 'noVolumeFits'
  const storageClass = classNamed(facts, className)
  if (!storageClass) return unmade(facts, claim)
  const isDelayed = storageClass.volumeBindingMode === 'WaitForFirstConsumer'
  if (isDelayed && !claim.metadata.annotations?.[annotations.selectedNode])
    return podsOfClaim(facts, claim).length === 0 ? 'firstConsumer' : 'podUnscheduled'
  return storageClass.provisioner === 'kubernetes.io/no-provisioner' ? 'noProvisioner' : asked(facts, claim)
}

function deletionLink(facts: Facts, claim: PersistentVolumeClaim): Link {
  const title = 'it is deleted'
  const since = sinceFacts(parse(claim.metadata.deletionTimestamp))
  // A pod that has ended counts until its object is gone.
  const users = podsNaming(facts, claim).map(({ metadata }) => metadata.name ?? '')
  const names = claimNames(facts, claim)
  if (users.length > 0)
    return blocked(
      title,
      'protection',
      'claimProtected',
      { ...names, pod: users[0]!, detail: users.slice(0, 5).join(', ') },
      since,
    )
  const copies = copiesOf(claim.metadata.finalizers ?? [])
  if (copies !== undefined) return blocked(title, 'protection', 'claimIsSource', { ...names, detail: copies }, since)
  // A volume that may be half made is waited for: its claim is the only record of it.
  const failure = failureOf(facts, claimTarget(claim), ['provision'])
  if (failure) {
    const told = refusal(facts, claim, failure)
    return blocked(title, failure.spec.actor, told.cause, told.names, { ...since, ...provisionFacts(failure) })
  }
  const running = runningOf(facts, claimTarget(claim), ['provision'])
  if (running) return runningLink(facts, title, running, 'provisioning', names)
  const [wait] = waitsOf(facts, claimTarget(claim), (actor) => actor === 'protection')
  if (wait?.reason === 'retrying')
    return blocked(title, 'protection', 'retrying', names, { ...since, ...waitFacts(wait), ...wordsOf(wait) })
  const detail = (claim.metadata.finalizers ?? []).join(', ')
  return blocked(title, 'the owner of the finalizer', 'finalizersHold', { ...names, detail }, since)
}

function copiesOf(held: readonly string[]): string | undefined {
  if (held.includes(finalizers.cloningProtection)) return 'another claim is created from it'
  return held.includes(finalizers.claimAsSnapshotSource) ? 'a snapshot is taken of it' : undefined
}
