// How far is a snapshot, and what holds it up? Its source, its content, the driver; or, when it goes, whoever still needs it.
import { finalizers } from '../api/annotations.ts'
import type { VolumeSnapshot, VolumeSnapshotContent } from '../api/generated/types.ts'
import type { CauseNames } from './causes.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts } from './facts.ts'
import { claimOf, doneOf, failureOf, isRegistered, parse, runningOf, volumeOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, later, sinceFacts, wordsIn } from './link.ts'
import { causeOfCode } from './reasons.ts'

const operations = ['snapshot']
const contentTarget = (name: string | undefined) => ({ kind: 'VolumeSnapshotContent', name })

export function snapshotLinks(facts: Facts, snapshot: VolumeSnapshot): readonly Link[] {
  const { name, creationTimestamp, deletionTimestamp } = snapshot.metadata
  const made = done(`snapshot ${name} is created`, 'you', undefined, parse(creationTimestamp))
  const content = contentOf(facts, snapshot)
  const names = namesOf(facts, snapshot, content)
  if (deletionTimestamp) return [made, deletionLink(facts, snapshot, content, names)]
  return [made, contentLink(facts, snapshot, content, names), takenLink(facts, snapshot, content, names)]
}

function contentOf(
  { snapshotContents }: Facts,
  { metadata, status }: VolumeSnapshot,
): VolumeSnapshotContent | undefined {
  const bound = status?.boundVolumeSnapshotContentName
  return snapshotContents.find((each) =>
    bound ? each.metadata.name === bound : each.spec.volumeSnapshotRef.uid === metadata.uid,
  )
}

function namesOf(
  facts: Facts,
  { metadata, spec }: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
): CauseNames {
  const claim = spec.source.persistentVolumeClaimName
  const volume = volumeOf(facts, claimOf(facts, metadata.namespace, claim ?? '')?.spec?.volumeName)
  const driver = content?.spec.driver ?? volume?.spec?.csi?.driver
  return {
    snapshot: metadata.name ?? '',
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    ...(claim === undefined ? {} : { claim }),
    ...(spec.volumeSnapshotClassName === undefined ? {} : { class: spec.volumeSnapshotClassName }),
    ...(driver === undefined ? {} : { driver }),
  }
}

/** The content describes what the driver has to do; without class or bound source there is none. */
function contentLink(
  facts: Facts,
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
  names: CauseNames,
): Link {
  const title = 'its source and class are found'
  if (content) return done(title, 'snapshots', undefined, parse(content.metadata.creationTimestamp))
  const target = { kind: 'VolumeSnapshot', namespace: snapshot.metadata.namespace, name: snapshot.metadata.name }
  const failure = failureOf(facts, target, operations)
  const told = failure ? failureFacts(failure) : sinceFacts(parse(snapshot.metadata.creationTimestamp))
  const { claim } = names
  if (claim !== undefined && !claimOf(facts, names.namespace, claim))
    return blocked(title, 'you', 'snapshotSourceMissing', names, told)
  if (!failure) return later(title, 'snapshots')
  const code = failure.status?.error?.code
  if (code === 'ClassMissing') {
    const words = names.class === undefined ? wordsIn(failure) : {}
    return blocked(title, 'you', 'snapshotClassMissing', { ...names, ...words }, told)
  }
  if (code === 'SourceUnbound') return blocked(title, 'binding', 'snapshotSourceUnbound', names, told)
  return blocked(title, failure.spec.actor, causeOfCode(code, 'snapshotFailed'), names, told)
}

function takenLink(
  facts: Facts,
  { status }: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
  names: CauseNames,
): Link {
  const title = 'it is taken and ready'
  const actor = `csi ${names.driver ?? ''}`
  const target = contentTarget(content?.metadata.name)
  if (status?.readyToUse === true)
    return done(title, actor, doneOf(facts, target, operations), parse(status.creationTime))
  if (!content) return later(title, actor)
  const failure = failureOf(facts, target, operations)
  const { driver = '' } = names
  const away = driverTrouble(facts, title, driver, names)
  if (away) return away
  if (failure) {
    const code = failure.status?.error?.code
    const cause = code === 'SnapshotMissing' ? 'snapshotUnknown' : causeOfCode(code, 'snapshotFailed')
    return blocked(title, failure.spec.actor, cause, names, failureFacts(failure))
  }
  const since = sinceFacts(parse(content.metadata.creationTimestamp))
  if (!isRegistered(facts, driver))
    return blocked(title, actor, 'driverAbsent', { ...names, detail: `take snapshot ${names.snapshot}` }, since)
  const running = runningOf(facts, target, operations)
  if (running) return runningLink(facts, title, running, 'snapshotRunning', names)
  return blocked(title, actor, 'snapshotRunning', names, { ...since, transient: true })
}

function deletionLink(
  facts: Facts,
  { metadata }: VolumeSnapshot,
  content: VolumeSnapshotContent | undefined,
  names: CauseNames,
): Link {
  const title = 'it is deleted'
  const since = sinceFacts(parse(metadata.deletionTimestamp))
  const held = metadata.finalizers ?? []
  if (held.includes(finalizers.snapshotAsSource)) return blocked(title, 'binding', 'snapshotInUse', names, since)
  const target = contentTarget(content?.metadata.name)
  const away = content && driverTrouble(facts, title, names.driver, names)
  if (away) return away
  const failure = content && failureOf(facts, target, operations)
  if (failure) {
    const cause = causeOfCode(failure.status?.error?.code, 'snapshotFailed')
    return blocked(title, failure.spec.actor, cause, names, { ...since, ...failureFacts(failure) })
  }
  const { driver = '' } = names
  if (content?.spec.deletionPolicy === 'Delete' && !isRegistered(facts, driver))
    return blocked(
      title,
      `csi ${driver}`,
      'driverAbsent',
      { ...names, detail: `delete snapshot ${names.snapshot}` },
      since,
    )
  const running = content && runningOf(facts, target, operations)
  const told = { ...names, detail: held.join(', ') }
  if (running) return runningLink(facts, title, running, 'finalizersHold', told)
  return blocked(title, 'snapshots', 'finalizersHold', told, since)
}
