// What is still to come for a bound claim? More room, other attributes, and a volume that is well.
import { bytesOfQuantity } from '../api/quantity.ts'
import type { PersistentVolumeClaim } from '../api/generated/types.ts'
import { classOf } from '../api/storage-class.ts'
import { claimNames, claimTarget } from './claim-names.ts'
import type { CauseNames } from './causes.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts } from './facts.ts'
import { classNamed, failureOf, isRegistered, parse, podsOfClaim, runningOf, volumeOf, waitsOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, failureFacts, sinceFacts, waitFacts, wordsIn, wordsOf } from './link.ts'
import { causeOfCode } from './reasons.ts'

export function growthLinks(facts: Facts, claim: PersistentVolumeClaim): readonly Link[] {
  const wanted = sizeOf(claim.spec?.resources?.requests?.['storage'])
  const present = sizeOf(claim.status?.capacity?.['storage'])
  if (wanted <= present) return []
  const title = `it is expanded to ${wantedSize(claim)}`
  const names = { ...claimNames(facts, claim), ...sizes(facts, claim) }
  const pending = conditionOf(claim, 'FileSystemResizePending')
  // The claim says whose turn it is; what the other half said before is over.
  const turn = claim.status?.allocatedResourceStatuses?.['storage'] ?? ''
  const onNode = failureOf(facts, { kind: 'PersistentVolume', name: claim.spec?.volumeName }, ['volume_fs_resize'])
  const atDriver = failureOf(facts, claimTarget(claim), ['expand'])
  const failure =
    (turn.startsWith('Controller') ? undefined : onNode) ?? (turn.startsWith('Node') ? undefined : atDriver)
  const away = turn.startsWith('Node') ? undefined : driverTrouble(facts, title, names.driver, names)
  if (away) return [away]
  if (failure) {
    const said = causeOfCode(failure.status?.error?.code, 'expansionFailed')
    const cause = said === 'outOfCapacity' ? 'noRoomToGrow' : said
    const aboutSize = cause === 'noRoomToGrow' || cause === 'outOfRange'
    const told = aboutSize ? { ...names, size: wantedSize(claim), ...wordsIn(failure) } : names
    return [blocked(title, failure.spec.actor, cause, told, failureFacts(failure))]
  }
  const running =
    runningOf(facts, claimTarget(claim), ['expand']) ??
    runningOf(facts, { kind: 'PersistentVolume', name: claim.spec?.volumeName }, ['volume_fs_resize'])
  if (running) return [runningLink(facts, title, running, 'askedResizer', names)]
  const mounted = pending && refusedWhileMounted(facts, claim, title, names)
  if (mounted) return [mounted]
  if (pending) return [blocked(title, 'node', 'nodeMustExpand', names, sinceFacts(parse(pending.lastTransitionTime)))]
  const storageClass = classNamed(facts, classOf(claim))
  const [wait] = waitsOf(facts, claimTarget(claim), (actor) => actor === 'expansion')
  if (wait?.reason === 'retrying')
    return [blocked(title, 'expansion', 'expansionFailed', names, { ...waitFacts(wait), ...wordsOf(wait) })]
  if (!wait && storageClass && storageClass.allowVolumeExpansion !== true)
    return [blocked(title, 'you', 'classForbidsExpansion', names)]
  const { driver = '' } = names
  if (driver !== '' && !isRegistered(facts, driver)) {
    const detail = `expand the volume of claim ${names.claim}`
    return [blocked(title, `csi ${driver}`, 'driverAbsent', { ...names, detail }, waitFacts(wait))]
  }
  return [blocked(title, `csi ${driver}`, 'askedResizer', names, waitFacts(wait))]
}

/** The node has asked the driver, which wants the volume unmounted first: nothing is tried until then (CSI-16). */
function refusedWhileMounted(
  facts: Facts,
  claim: PersistentVolumeClaim,
  title: string,
  names: CauseNames,
): Link | undefined {
  const refused = conditionOf(claim, 'NodeResizeError')
  const user = podsOfClaim(facts, claim).find(({ spec }) => spec?.nodeName)
  const { nodeName: node } = user?.spec ?? {}
  if (refused === undefined || user === undefined || node === undefined) return undefined
  const { detail: _sizes, ...others } = names
  const told = {
    ...others,
    node,
    pod: user.metadata.name ?? '',
    ...(refused.message ? { detail: refused.message } : {}),
  }
  return blocked(title, `node ${node}`, 'growsAtNextMount', told, sinceFacts(parse(refused.lastTransitionTime)))
}

const conditionOf = ({ status }: PersistentVolumeClaim, wanted: string) =>
  (status?.conditions ?? []).find((each) => each.type === wanted && each.status === 'True')

/** What it has now, and what the storage has been expanded to. */
function sizes(facts: Facts, claim: PersistentVolumeClaim): CauseNames {
  const has = claim.status?.capacity?.['storage'] ?? 'nothing'
  const storage = volumeOf(facts, claim.spec?.volumeName)?.spec?.capacity?.['storage'] ?? has
  return { detail: `the volume has ${storage}, the filesystem ${has}` }
}

/** The volume is to have the attributes of another class. */
export function changeLinks(facts: Facts, claim: PersistentVolumeClaim): readonly Link[] {
  const { currentVolumeAttributesClassName: current = '', modifyVolumeStatus: under } = claim.status ?? {}
  const wanted = claim.spec?.volumeAttributesClassName ?? ''
  const target = under?.targetVolumeAttributesClassName ?? wanted
  if (target === '' || (!under && wanted === current)) return []
  const title = `its attributes are those of class ${target}`
  const names = { ...claimNames(facts, claim), class: target }
  const { driver = '' } = names
  const actor = `csi ${driver}`
  const attributes = facts.attributesClasses.find(({ metadata }) => metadata.name === target)
  if (!attributes) return [blocked(title, 'you', 'attributesClassMissing', names)]
  if (attributes.driverName !== driver)
    return [blocked(title, 'you', 'attributesClassForeign', { ...names, detail: attributes.driverName })]
  const away = driverTrouble(facts, title, driver, names)
  if (away) return [away]
  const failure = failureOf(facts, claimTarget(claim), ['modify'])
  if (failure) {
    const cause = causeOfCode(failure.status?.error?.code, 'modifyFailed')
    return [blocked(title, failure.spec.actor, cause, names, failureFacts(failure))]
  }
  if (!isRegistered(facts, driver)) {
    const detail = `modify the volume of claim ${names.claim}`
    return [blocked(title, actor, 'driverAbsent', { ...names, detail })]
  }
  const running = runningOf(facts, claimTarget(claim), ['modify'])
  if (running) return [runningLink(facts, title, running, 'modifying', names)]
  return [blocked(title, actor, 'modifying', names, { transient: true })]
}

/** Drivers that watch their volumes say when one is not well. */
export function healthLinks(facts: Facts, claim: PersistentVolumeClaim): readonly Link[] {
  const wait = waitsOf(facts, claimTarget(claim)).find(({ reason }) => reason === 'volumeAbnormal')
  if (!wait) return []
  const names = { ...claimNames(facts, claim), detail: wait.message ?? '' }
  return [blocked('it is healthy', wait.actor, 'volumeIll', names, waitFacts(wait))]
}

const wantedSize = ({ spec }: PersistentVolumeClaim) => spec?.resources?.requests?.['storage'] ?? ''
const sizeOf = (quantity: string | undefined) => (quantity === undefined ? 0n : bytesOfQuantity(quantity))
