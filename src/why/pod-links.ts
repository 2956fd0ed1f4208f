// How far is a pod, and what holds it up? Claims, place, attach, mount, start; or, when it goes, stop and unmount.
import { claimsOf, hasEnded } from '../api/pod-claims.ts'
import type { OperationRecord, PersistentVolume, PersistentVolumeClaim, Pod } from '../api/generated/types.ts'
import type { Cause, CauseNames } from './causes.ts'
import { healthLinks } from './claim-changes.ts'
import { claimLinks } from './claim-links.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts, Waited } from './facts.ts'
import { claimOf, doneOf, failureOf, isRegistered, parse, podsOfClaim } from './facts.ts'
import { recordsOf, timeOf, runningOf, volumeOf, waitsOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts, waitFacts, wordsOf } from './link.ts'
import { mountOperations } from './operation-names.ts'
import { ownVolumeName, podNames, podTarget, withWords } from './pod-names.ts'
import { causeOfCode, causeOfController, causeOnNode } from './reasons.ts'
import { attachLink, volumeNames } from './volume-links.ts'
import {
  deafLink,
  hasStarted,
  hasVolumes,
  quietMs,
  readyLinks,
  startLink,
  troubleLink,
  stopLinks,
} from './container-links.ts'

export function podLinks(facts: Facts, pod: Pod): readonly Link[] {
  const { name, creationTimestamp, deletionTimestamp } = pod.metadata
  const made = done(`pod ${name} is created`, 'you', undefined, parse(creationTimestamp))
  if (deletionTimestamp) return [made, ...stopLinks(facts, pod)]
  if (hasEnded(pod)) return [made, ...placeLinks(facts, pod), startLink(facts, pod)]
  // A pod that runs has no use for a claim that is not there: no container of it names that volume.
  const isNeeded = (claim: string) => !hasStarted(pod) || claimOf(facts, pod.metadata.namespace, claim) !== undefined
  const claims = claimsOf(pod).flatMap(({ claimName: claim }) =>
    isNeeded(claim) ? [claimOfPodLink(facts, pod, claim)] : [],
  )
  const node = pod.spec?.nodeName
  const placed = placeLinks(facts, pod)
  if (!node) return [made, ...claims, ...placed, later('volumes are mounted', 'node'), later('it runs', 'node')]
  const volumes = [...volumesOf(facts, pod)]
  const trouble = troubleLink(facts, pod, 'its directories are created')
  return unlessSilent(facts, pod, [
    made,
    ...claims,
    ...placed,
    ...(trouble ? [trouble] : []),
    ...volumes
      .filter((volume) => needsAttach(facts, volume))
      .map((volume) => withNames(attachLink(facts, volume, node), podNames(pod))),
    ...volumes.map((volume) => mountLink(facts, pod, volume, node)),
    ...ownVolumesLink(facts, pod, node),
    startLink(facts, pod),
    ...readyLinks(facts, pod),
    ...illLinks(facts, pod),
  ])
}

/** What is wrong with the volumes of a pod is told where its user looks. */
const illLinks = (facts: Facts, pod: Pod): readonly Link[] =>
  claimsOf(pod).flatMap(({ claimName: claim }) => {
    const found = claimOf(facts, pod.metadata.namespace, claim)
    return found ? healthLinks(facts, found).map((link) => ({ ...link, name: `claim ${claim} is healthy` })) : []
  })

const withNames = (link: Link, names: CauseNames): Link =>
  link.block ? { ...link, block: { ...link.block, names: { ...link.block.names, ...names } } } : link

/** Nothing blocks, nothing is under way, and it has been so for a while: then whoever is next does not speak. */
function unlessSilent(facts: Facts, pod: Pod, links: readonly Link[]): readonly Link[] {
  if (links.some(({ state }) => state === 'blocked' || state === 'working')) return links
  const next = links.findIndex(({ state }) => state === 'later')
  const last = Math.max(...links.map(({ at }) => at ?? 0))
  const link = links[next]
  if (link === undefined || facts.now - last < quietMs) return links
  const cause = link.actor === 'attachment' ? 'nobodyAttaches' : 'nodeSilent'
  const block = blocked(link.name, link.actor, cause, podNames(pod), sinceFacts(last))
  return links.map((each, index) => (index === next ? block : each))
}

/** The claim as one step of the pod; its own steps are told by `why pvc/…`. */
function claimOfPodLink(facts: Facts, pod: Pod, name: string): Link {
  const title = `claim ${name} is bound`
  const names = { ...podNames(pod), claim: name }
  const claim = claimOf(facts, pod.metadata.namespace, name)
  const since = sinceFacts(parse(pod.metadata.creationTimestamp))
  if (isEphemeral(pod, name) && !(claim && isOwned(claim, pod))) {
    const [wait] = waitsOf(facts, podTarget(pod), (actor) => actor === 'ephemeral')
    const cause = claim || wait?.reason === 'foreignClaim' ? 'foreignClaim' : 'claimNotMade'
    return blocked(title, 'ephemeral', cause, names, { ...since, ...waitFacts(wait), ...wordsOf(wait) })
  }
  if (!claim) return blocked(title, 'you', 'claimMissing', names, since)
  if (claim.metadata.deletionTimestamp && !hasStarted(pod))
    return blocked(title, 'protection', 'claimDeleting', names, sinceFacts(parse(claim.metadata.deletionTimestamp)))
  const bound = claimLinks(facts, claim).find((link) => link.name === 'it is bound')!
  // The claim waits for this pod's place: then the place is the step to look at.
  const waitsForUs = bound.block && (bound.block.cause === 'podUnscheduled' || bound.block.cause === 'firstConsumer')
  return waitsForUs ? later(title, 'binding') : { ...bound, name: title }
}

const isEphemeral = (pod: Pod, claim: string) =>
  (pod.spec?.volumes ?? []).some(({ name, ephemeral }) => ephemeral && `${pod.metadata.name}-${name}` === claim)

/** A claim made for a pod names it as its owner; a claim of the same name that does not is somebody else's. */
const isOwned = ({ metadata }: PersistentVolumeClaim, pod: Pod) =>
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === pod.metadata.uid)

function placeLinks(facts: Facts, pod: Pod): readonly Link[] {
  const title = 'it is scheduled'
  const node = pod.spec?.nodeName
  if (!node) return [unplaced(facts, pod, title)]
  const scheduled = (pod.status?.conditions ?? []).find(({ type }) => type === 'PodScheduled')
  const at = parse(scheduled?.lastTransitionTime)
  const record = doneOf(facts, podTarget(pod), ['place'])
  const placed: Link = {
    // Without a word of ours somebody else chose the node: another scheduler, or whoever wrote spec.nodeName.
    ...done(title, record ? 'placement' : 'spec.nodeName', record, at),
    detail: `on ${node}`,
  }
  // A pod that has ended needs its node no more.
  const deaf = hasEnded(pod) ? undefined : deafLink(facts, pod, node)
  return deaf ? [placed, deaf] : [placed]
}

function unplaced(facts: Facts, pod: Pod, title: string): Link {
  const names = podNames(pod)
  const since = sinceFacts(parse(pod.metadata.creationTimestamp))
  const gates = (pod.spec?.schedulingGates ?? []).map(({ name }) => name)
  if (gates.length > 0) return blocked(title, 'you', 'schedulingGated', { ...names, detail: gates.join(', ') }, since)
  if (facts.nodes.length === 0) return blocked(title, 'placement', 'noNodes', names, since)
  const [wait] = waitsOf(facts, podTarget(pod), (actor) => actor === 'placement')
  const unschedulable = (pod.status?.conditions ?? []).find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  )
  const cause: Cause | undefined = causeOfController(wait?.reason) ?? (unschedulable ? 'noNodeFits' : undefined)
  if (cause === undefined) return blocked(title, 'placement', 'noScheduler', names, since)
  const holder = cause === 'noNodeFits' ? otherWriter(facts, pod) : undefined
  if (holder)
    return blocked(title, 'placement', 'singlePodWriter', { ...names, ...holder }, { ...since, ...waitFacts(wait) })
  const detail = wait?.message ?? unschedulable?.message
  const told = detail === undefined ? names : { ...names, detail }
  const transient = cause === 'volumesBeingBound'
  return blocked(title, 'placement', cause, told, { ...since, ...waitFacts(wait), transient })
}

/** A claim of the pod that one pod at a time may use, and the other pod that has it. */
function otherWriter(facts: Facts, pod: Pod, only?: string): CauseNames | undefined {
  for (const { claimName: name } of claimsOf(pod)) {
    const claim = claimOf(facts, pod.metadata.namespace, name)
    if ((only !== undefined && only !== name) || !claim?.spec.accessModes?.includes('ReadWriteOncePod')) continue
    const other = podsOfClaim(facts, claim).find(
      ({ metadata, spec }) => metadata.uid !== pod.metadata.uid && spec?.nodeName,
    )
    if (other) return { claim: name, holder: other.metadata.name ?? '' }
  }
  return undefined
}

function* volumesOf(facts: Facts, pod: Pod): Generator<PersistentVolume> {
  for (const { claimName } of claimsOf(pod)) {
    const volume = volumeOf(facts, claimOf(facts, pod.metadata.namespace, claimName)?.spec?.volumeName)
    if (volume) yield volume
  }
}

function needsAttach(facts: Facts, volume: PersistentVolume): boolean {
  const { csi } = volume.spec ?? {}
  if (csi) return facts.csiDrivers.find(({ metadata }) => metadata.name === csi.driver)?.spec.attachRequired !== false
  return recordsOf(facts, { kind: 'PersistentVolume', name: volume.metadata.name }).some(
    ({ spec }) => spec.operation === 'volume_attach',
  )
}

function mountLink(facts: Facts, pod: Pod, volume: PersistentVolume, node: string): Link {
  const { name } = volume.metadata
  const title = `claim ${volume.spec?.claimRef?.name ?? name} is mounted`
  const actor = `node ${node}`
  const target = { kind: 'PersistentVolume', namespace: undefined, name }
  const uid = pod.metadata.uid
  const names: CauseNames = { ...volumeNames(volume, name), ...podNames(pod) }
  if (hasVolumes(pod)) return done(title, actor, doneOf(facts, target, mountOperations))
  if (isMisused(pod, volume))
    return blocked(title, actor, 'modeMismatch', names, sinceFacts(parse(pod.metadata.creationTimestamp)))
  const waits = waitsOf(facts, target, (each) => each === actor).filter((each) => !each.pod || each.pod === uid)
  const failure = failureOf(facts, target, mountOperations, ({ spec }) => spec.actor === actor && isOf(spec.pod, uid))
  const [wait] = waits
  const driver = volume.spec?.csi?.driver
  const away = driverTrouble(facts, title, driver, names, node)
  if (away) return away
  if (failure) {
    const cause = causeOfCode(failure.status?.error?.code, 'mountFailed')
    const holder = cause === 'singlePodWriter' ? otherWriter(facts, pod, names.claim) : {}
    const told = { ...withWords(names, failure.status?.error?.message), ...holder }
    return blocked(title, actor, cause, told, failureFacts(failure, wait))
  }
  if (driver && !isRegistered(facts, driver, node))
    return blocked(title, actor, 'driverNotOnNode', names, waitFacts(wait))
  if (wait && wait.reason !== 'busy') return fromNode(title, actor, names, wait)
  const mounted = doneOf(facts, target, mountOperations)
  if (mounted && mounted.spec.actor === actor && isOf(mounted.spec.pod, uid)) return done(title, actor, mounted)
  const running = runningOf(facts, target, mountOperations, ({ spec }) => spec.actor === actor && isOf(spec.pod, uid))
  if (running) return runningLink(facts, title, running, 'mountRunning', names)
  const busy = wait && fromNode(title, actor, names, wait)
  return unresolved(facts, pod, title, actor, names) ?? busy ?? later(title, actor)
}

/** A record of the whole volume concerns each of its pods. */
const isOf = (recorded: string | undefined, uid: string | undefined) => recorded === undefined || recorded === uid

function fromNode(title: string, actor: string, names: CauseNames, wait: Waited): Link {
  const cause = causeOnNode(wait.reason) ?? 'retrying'
  return blocked(title, actor, cause, names, { ...waitFacts(wait), ...wordsOf(wait), transient: cause === 'busy' })
}

/** Volumes that need no claim: ConfigMaps, Secrets, scratch space, paths of the node, inline CSI. */
function ownVolumesLink(facts: Facts, pod: Pod, node: string): readonly Link[] {
  const own = (pod.spec?.volumes ?? []).filter(
    ({ persistentVolumeClaim, ephemeral }) => !persistentVolumeClaim && !ephemeral,
  )
  const hasClaims = claimsOf(pod).length > 0
  if (own.length === 0 && hasClaims) return []
  const title = hasClaims ? 'its other volumes are mounted' : 'its volumes are mounted'
  const actor = `node ${node}`
  const names = podNames(pod)
  const failure = failureOf(facts, podTarget(pod), mountOperations, isOwnVolume)
  const [wait] = waitsOf(facts, podTarget(pod), (each) => each === actor)
  const told = failure ? failureFacts(failure, wait) : waitFacts(wait)
  const failed = (name: string, { spec, status }: OperationRecord) => {
    const cause = causeOfCode(status?.error?.code, 'mountFailed')
    const about = { ...names, ...ownVolumeName(pod, spec.volume) }
    return blocked(name, actor, cause, withWords(about, status?.error?.message), told)
  }
  if (hasVolumes(pod)) {
    const mounted = recordsOf(facts, podTarget(pod)).filter(isOwnVolume)
    const last = mounted.toSorted((one, other) => timeOf(other) - timeOf(one)).find(isMounted)
    // Contents from the API are written again when they change; a pod that runs goes on with the old ones.
    // What somebody deleted meanwhile is nothing that they wait for.
    const stale = failure && !isMissing(failure) ? [failed('its volumes are kept up to date', failure)] : []
    return own.length === 0 ? [] : [done(title, actor, last), ...stale]
  }
  for (const { csi } of own) {
    const away = driverTrouble(facts, title, csi?.driver, names, node)
    if (away) return [away]
  }
  const [missing] = facts.missing
  if (missing !== undefined) return [blocked(title, actor, 'configMissing', { ...names, detail: missing }, told)]
  if (failure) return [failed(title, failure)]
  const running = runningOf(facts, podTarget(pod), mountOperations, isOwnVolume)
  if (running) {
    const about = { ...names, ...ownVolumeName(pod, running.spec.volume) }
    return [runningLink(facts, title, running, 'mountRunning', about)]
  }
  const link = unresolved(facts, pod, title, actor, names)
  return link ? [link] : own.length === 0 ? [] : [later(title, actor)]
}

const isMissing = ({ status }: OperationRecord) =>
  ['configMissing', 'keyMissing'].includes(causeOfCode(status?.error?.code, 'mountFailed'))

const isMounted = ({ spec, status }: OperationRecord) =>
  mountOperations.includes(spec.operation) && status?.phase === 'Succeeded'

const isOwnVolume = ({ spec }: OperationRecord) => !(spec.objects ?? []).some(({ kind }) => kind === 'PersistentVolume')

function unresolved(facts: Facts, pod: Pod, title: string, actor: string, names: CauseNames): Link | undefined {
  const wait = waitsOf(facts, podTarget(pod), (each) => each === actor).find(
    ({ reason }) => reason === 'volumesUnresolved' || reason === 'pluginMissing',
  )
  return wait && fromNode(title, actor, names, wait)
}

function isMisused(pod: Pod, volume: PersistentVolume): boolean {
  const claimName = volume.spec?.claimRef?.name
  const names = claimsOf(pod).flatMap((each) => (each.claimName === claimName ? [each.volume] : []))
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  const mounts = containers.some((each) => (each.volumeMounts ?? []).some(({ name }) => names.includes(name)))
  const devices = containers.some((each) => (each.volumeDevices ?? []).some(({ name }) => names.includes(name)))
  return volume.spec?.volumeMode === 'Block' ? mounts : devices
}
