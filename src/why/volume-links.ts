// How far is a volume, and what holds it up? Its claim, its nodes, its end; and the same for one attachment.
import { annotations } from '../api/annotations.ts'
import type { OperationRecord, PersistentVolume, VolumeAttachment } from '../api/generated/types.ts'
import { classOf } from '../api/storage-class.ts'
import type { Cause, CauseNames } from './causes.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts, Waited } from './facts.ts'
import { claimOf, doneOf, failureOf, isRegistered, parse, recordsOf, runningOf, volumeOf, waitsOf } from './facts.ts'
import { denial, unfit, whoHas } from './fit.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts, waitFacts, wordsOf } from './link.ts'
import { causeOfAttachment, causeOfCode, causeOfController } from './reasons.ts'

const targetOf = (name: string | undefined) => ({ kind: 'PersistentVolume', namespace: undefined, name })

export function volumeLinks(facts: Facts, volume: PersistentVolume): readonly Link[] {
  const { name = '', creationTimestamp, deletionTimestamp } = volume.metadata
  const nodes = facts.attachments.filter(({ spec }) => spec.source.persistentVolumeName === name)
  return [
    madeLink(facts, volume, parse(creationTimestamp)),
    phaseLink(facts, volume),
    ...nodes.flatMap((attachment) => attachmentLinks(facts, attachment).slice(1)),
    ...waitingForNodes(facts, volume, nodes),
    ...(deletionTimestamp ? [deletionLink(facts, volume)] : []),
  ]
}

/** To order, by the driver, or by hand. */
function madeLink(facts: Facts, { metadata, spec }: PersistentVolume, at: number | undefined): Link {
  const title = `volume ${metadata.name} is created`
  const { namespace, name } = spec?.claimRef ?? {}
  const record = doneOf(facts, { kind: 'PersistentVolumeClaim', namespace, name }, ['provision'])
  const isOrdered = metadata.annotations?.[annotations.provisionedBy] !== undefined
  return isOrdered && record ? done(title, record.spec.actor, record) : done(title, 'you', undefined, at)
}

export function volumeNames(volume: PersistentVolume | undefined, name: string | undefined): CauseNames {
  const { claimRef, csi } = volume?.spec ?? {}
  const className = volume && classOf(volume)
  return {
    ...(name ? { volume: name } : {}),
    ...(claimRef?.name ? { claim: claimRef.name } : {}),
    ...(claimRef?.namespace ? { namespace: claimRef.namespace } : {}),
    ...(csi ? { driver: csi.driver } : {}),
    ...(className ? { class: className } : {}),
  }
}

function phaseLink(facts: Facts, volume: PersistentVolume): Link {
  const { name } = volume.metadata
  const names = volumeNames(volume, name)
  const phase = volume.status?.phase
  const since = sinceFacts(parse(volume.status?.lastPhaseTransitionTime))
  const [wait] = waitsOf(facts, targetOf(name), (actor) => actor === 'binding')
  if (phase === 'Bound') {
    const at = parse(volume.status?.lastPhaseTransitionTime)
    return { ...done('it is bound', 'binding', undefined, at), detail: `to claim ${names.namespace}/${names.claim}` }
  }
  // A failure that is tried again, or whose words are known, is told like any other; `Failed` alone says only that much.
  if (phase === 'Released' || (phase === 'Failed' && wait !== undefined)) return reclaimLink(facts, volume, wait)
  const { message } = volume.status ?? {}
  if (phase === 'Failed')
    return blocked('it is reclaimed', 'binding', 'volumeFailed', names, {
      ...since,
      ...(message ? { error: { message } } : {}),
    })
  if (volume.spec?.claimRef) return reservedLink(facts, volume, names, since)
  // Nobody wants it, and nothing is wrong with that.
  const at = parse(volume.status?.lastPhaseTransitionTime)
  return phase === 'Available' ? done('it is available', 'binding', undefined, at) : later('it is available', 'binding')
}

/** It names a claim that does not have it. */
function reservedLink(facts: Facts, volume: PersistentVolume, names: CauseNames, since: object): Link {
  const title = 'it is bound'
  const claim = claimOf(facts, names.namespace, names.claim ?? '')
  if (!claim || whoHas(volume, claim)) return blocked(title, 'binding', 'reserved', names, since)
  if (claim.status?.phase === 'Lost')
    return blocked(title, 'binding', 'misbound', { ...names, detail: denial(volume, claim) }, since)
  const other = claim.spec?.volumeName
  const detail =
    other && other !== names.volume ? `is not needed: the claim is bound to ${other}` : unfit(volume, claim)
  return detail === undefined
    ? later(title, 'binding')
    : blocked(title, 'binding', 'reservedUnfit', { ...names, detail }, since)
}

function reclaimLink(facts: Facts, volume: PersistentVolume, wait: Waited | undefined): Link {
  const title = 'it is reclaimed'
  const { name } = volume.metadata
  const names = volumeNames(volume, name)
  const since = sinceFacts(parse(volume.status?.lastPhaseTransitionTime))
  const failure = failureOf(facts, targetOf(name), ['delete'])
  const away = policyOf(volume) === 'Delete' ? driverTrouble(facts, title, names.driver, names) : undefined
  if (away) return away
  const running = failure ? undefined : runningOf(facts, targetOf(name), ['delete'])
  if (running) return runningLink(facts, title, running, 'reclaiming', names)
  if (failure) {
    const cause = causeOfCode(failure.status?.error?.code, 'reclaimFailed')
    return blocked(title, failure.spec.actor, cause, names, { ...failureFacts(failure, wait), ...since })
  }
  const policy = policyOf(volume)
  const known = causeOfController(wait?.reason)
  const cause = known ?? (policy === 'Retain' ? 'retained' : 'askedDeleter')
  const { driver } = names
  if (cause === 'askedDeleter' && driver !== undefined && !isRegistered(facts, driver)) {
    const detail = `delete the storage of volume ${name}`
    return blocked(title, `csi ${driver}`, 'driverAbsent', { ...names, detail }, { ...since, ...waitFacts(wait) })
  }
  const actor = cause === 'askedDeleter' ? `csi ${names.driver ?? ''}` : 'binding'
  const transient = cause === 'reclaiming'
  return blocked(title, actor, cause, names, { ...since, ...waitFacts(wait), ...wordsOf(wait), transient })
}

const policyOf = ({ spec }: PersistentVolume) => spec?.persistentVolumeReclaimPolicy

/** Nodes that want the volume and have no VolumeAttachment yet. */
function waitingForNodes(
  facts: Facts,
  volume: PersistentVolume,
  attachments: readonly VolumeAttachment[],
): readonly Link[] {
  const { name } = volume.metadata
  const has = new Set(attachments.map(({ spec }) => spec.nodeName))
  return waitsOf(facts, targetOf(name), (actor) => actor === 'attachment')
    .filter(({ node }) => node !== undefined && !has.has(node))
    .map((wait) => attachLink(facts, volume, wait.node!))
}

function deletionLink(facts: Facts, volume: PersistentVolume): Link {
  const names = volumeNames(volume, volume.metadata.name)
  const since = sinceFacts(parse(volume.metadata.deletionTimestamp))
  if (volume.status?.phase === 'Bound') return blocked('it is deleted', 'protection', 'volumeProtected', names, since)
  const detail = (volume.metadata.finalizers ?? []).join(', ')
  return blocked('it is deleted', 'the owner of the finalizer', 'finalizersHold', { ...names, detail }, since)
}

/** Is the volume on this node, and if not, why not? */
export function attachLink(facts: Facts, volume: PersistentVolume, node: string): Link {
  const { name } = volume.metadata
  const title = `volume is attached to ${node}`
  const attachment = facts.attachments.find(
    ({ spec }) => spec.source.persistentVolumeName === name && spec.nodeName === node,
  )
  const names = { ...volumeNames(volume, name), node }
  const isAttached = attachment?.status?.attached === true && !attachment.metadata.deletionTimestamp
  if (isAttached) return done(title, 'attachment', doneOf(facts, targetOf(name), ['volume_attach']))
  const [wait] = waitsOf(facts, targetOf(name), (actor) => actor === 'attachment').filter((each) => each.node === node)
  const failure = attachFailure(facts, name, attachment)
  const cause = causeOfAttachment(wait?.reason)
  if (wait && cause !== undefined && cause !== 'busy' && cause !== 'attachFailed')
    return blocked(title, 'attachment', cause, withHolder(names, wait), waitFacts(wait))
  const away = driverTrouble(facts, title, names.driver, names)
  if (away) return away
  if (failure) {
    const code = causeOfCode(failure.status?.error?.code, 'attachFailed')
    const told = code === 'outOfCapacity' ? 'attachLimit' : code
    return blocked(title, failure.spec.actor, told, names, failureFacts(failure, wait))
  }
  return silentAttach(facts, title, names, attachment, wait)
}

function attachFailure(facts: Facts, volume: string | undefined, attachment: VolumeAttachment | undefined) {
  const own = failureOf(facts, targetOf(volume), ['volume_attach'])
  const name = attachment?.metadata.name
  const driver = name && failureOf(facts, { kind: 'VolumeAttachment', name }, ['attach'])
  // The driver's own word is nearer to the cause than what the controller made of it.
  return driver || own
}

function silentAttach(
  facts: Facts,
  title: string,
  names: CauseNames,
  attachment: VolumeAttachment | undefined,
  wait: Waited | undefined,
): Link {
  const { attachError } = attachment?.status ?? {}
  const since = sinceFacts(parse(wait?.since ?? attachment?.metadata.creationTimestamp))
  if (attachError?.message !== undefined)
    return blocked(title, `csi ${names.driver ?? ''}`, 'attachFailed', names, {
      ...sinceFacts(parse(attachError.time)),
      error: { message: attachError.message },
    })
  if (attachment && !isServed(facts, attachment)) return blocked(title, 'attacher', 'attacherSilent', names, since)
  const call = attachment && runningOf(facts, { kind: 'VolumeAttachment', name: attachment.metadata.name }, ['attach'])
  if (call) return runningLink(facts, title, call, 'attachRunning', names)
  const running = runningOf(facts, targetOf(names.volume), ['volume_attach'])
  return attachment || running || wait
    ? blocked(title, 'attachment', 'attachRunning', names, { ...since, transient: true })
    : later(title, 'attachment')
}

/** Has anybody ever acted for this attachment? A finalizer or a record of the driver's job says so. */
function isServed(facts: Facts, attachment: VolumeAttachment): boolean {
  const { name, finalizers = [] } = attachment.metadata
  const isYoung = facts.now - (parse(attachment.metadata.creationTimestamp) ?? 0) < 5_000
  return isYoung || finalizers.length > 0 || recordsOf(facts, { kind: 'VolumeAttachment', name }).length > 0
}

const withHolder = (names: CauseNames, { message }: Waited): CauseNames =>
  message === undefined ? names : { ...names, holder: message }

export function attachmentLinks(facts: Facts, attachment: VolumeAttachment): readonly Link[] {
  const { name, creationTimestamp, deletionTimestamp } = attachment.metadata
  const made = done(`attachment ${name} is created`, 'attachment', undefined, parse(creationTimestamp))
  const volumeName = attachment.spec.source.persistentVolumeName
  const volume = volumeOf(facts, volumeName)
  const { nodeName } = attachment.spec
  if (deletionTimestamp) return [made, detachLink(facts, attachment, volume)]
  const title = `volume is attached to ${nodeName}`
  if (!volume && attachment.spec.source.inlineVolumeSpec === undefined) {
    const names = { ...(volumeName ? { volume: volumeName } : {}), node: nodeName }
    return [made, blocked(title, 'attachment', 'attachmentOrphaned', names, sinceFacts(parse(creationTimestamp)))]
  }
  const attach = volume ? attachLink(facts, volume, nodeName) : inlineLink(facts, title, attachment)
  return [made, attach, ...leavingLinks(facts, volume, nodeName)]
}

function inlineLink(facts: Facts, title: string, attachment: VolumeAttachment): Link {
  const { attacher: driver, nodeName: node } = attachment.spec
  return attachment.status?.attached === true
    ? done(title, 'attachment')
    : silentAttach(facts, title, { driver, node, volume: 'of the pod' }, attachment, undefined)
}

const leaving: ReadonlySet<Cause> = new Set(['inUse', 'inUseOnUnhealthyNode', 'forceDetachDisabled'])

/** Nobody wants it there any more, and it cannot go yet. */
function leavingLinks(facts: Facts, volume: PersistentVolume | undefined, node: string): readonly Link[] {
  const name = volume?.metadata.name
  const names = { ...volumeNames(volume, name), node }
  const title = `volume is detached from ${node}`
  const waits = waitsOf(facts, targetOf(name), (actor) => actor === 'attachment')
  for (const wait of waits) {
    const cause = causeOfAttachment(wait.reason)
    if (wait.node !== node || cause === undefined || !leaving.has(cause)) continue
    // A node that cannot reach the driver cannot let go of the volume.
    const away = driverTrouble(facts, title, names.driver, names, node)
    return [away ?? blocked(title, 'attachment', cause, names, waitFacts(wait))]
  }
  const failure = failureOf(facts, targetOf(name), ['volume_detach'])
  return failure ? [detachFailed(title, failure, names)] : []
}

function detachLink(facts: Facts, attachment: VolumeAttachment, volume: PersistentVolume | undefined): Link {
  const { name, deletionTimestamp } = attachment.metadata
  const { nodeName, source } = attachment.spec
  const title = `volume is detached from ${nodeName}`
  const names = { ...volumeNames(volume, source.persistentVolumeName), node: nodeName }
  const since = sinceFacts(parse(deletionTimestamp))
  const away = driverTrouble(facts, title, attachment.spec.attacher, names)
  if (away) return away
  const failure = failureOf(facts, { kind: 'VolumeAttachment', name }, ['attach'])
  if (failure) return detachFailed(title, failure, names)
  const running = runningOf(facts, { kind: 'VolumeAttachment', name }, ['attach'])
  const driver = { driver: attachment.spec.attacher }
  if (running) return runningLink(facts, title, running, 'detaching', { ...names, ...driver })
  const { detachError } = attachment.status ?? {}
  if (detachError?.message !== undefined)
    return blocked(title, `csi ${attachment.spec.attacher}`, 'detachFailed', names, {
      ...since,
      error: { message: detachError.message },
    })
  return blocked(title, `csi ${attachment.spec.attacher}`, 'detaching', names, { ...since, transient: true })
}

function detachFailed(title: string, failure: OperationRecord, names: CauseNames): Link {
  const cause = causeOfCode(failure.status?.error?.code, 'detachFailed')
  return blocked(title, failure.spec.actor, cause, names, failureFacts(failure))
}
