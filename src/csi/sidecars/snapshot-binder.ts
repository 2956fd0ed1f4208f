// Who joins snapshots and contents? One job for all drivers: a VolumeSnapshot gets its content, hears of its state, and
// takes it along when it goes (SIDE-45). What the driver does is the snapshotter's.
import { finalizers } from '../../api/annotations.ts'
import { annotation, hasFinalizer, isDeleting, keyOf, withAnnotations, withFinalizer } from '../../api/meta.ts'
import { quantityOfBytes } from '../../api/quantity.ts'
import { isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import type { PersistentVolume, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { addFinalizer, change, dropFinalizer, getOrNothing, jobBackoff, refused } from './job.ts'
import type { JobDeps } from './job.ts'
import {
  beingDeleted,
  deletionSecretName,
  deletionSecretNamespace,
  isDefaultSnapshotClass,
  snapshotSecretOf,
} from './snapshot-names.ts'

type BinderDeps = Pick<JobDeps, 'client' | 'informers' | 'clock' | 'log' | 'recorder' | 'history'>

export function createSnapshotBinder(deps: BinderDeps): AsyncDisposable {
  const { client, clock, log, recorder, informers } = deps
  const stack = new AsyncDisposableStack()
  const snapshots = informers.of('VolumeSnapshot')
  const contents = informers.of('VolumeSnapshotContent')
  const story = createJobStory({ ...deps, driver: { name: 'snapshots' } }, 'snapshot')
  const objectsOf = (key: string) => [reference('VolumeSnapshot', key)]

  const look = async (key: string, signal: AbortSignal): Promise<void> => {
    const snapshot = snapshots.get(key)
    if (!snapshot) return
    try {
      if (isDeleting(snapshot)) return await release(deps, snapshot, signal)
      const held = await change(client, 'VolumeSnapshot', snapshot, protect, {}, signal)
      if (held) await bind(deps, held, signal)
    } catch (error) {
      const { message } = asVolumeError(error)
      recorder.event({ kind: 'VolumeSnapshot', object: snapshot }, 'Warning', 'SnapshotContentCreationFailed', message)
      await saveError(deps, snapshot, message, signal)
      throw error
    }
  }
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: 'snapshot binder',
      clock,
      workers: 10,
      backoff: jobBackoff,
      look,
      onError: (key, error, retryAt) => log.warn('snapshot not bound', { snapshot: key, error, retryAt }),
    }),
  )
  stack.use(
    snapshots.subscribe(({ object, previous, key }) => {
      if (object && (!previous || worthLooking(object, previous))) loop.wake(key)
    }),
  )
  stack.use(
    contents.subscribe(({ object, previous }) => {
      const ref = (object ?? previous).spec.volumeSnapshotRef
      if (ref.name) loop.wake(`${ref.namespace ?? ''}/${ref.name}`)
    }),
  )
  // A snapshot that waited for its claim to be bound looks again when it is.
  stack.use(
    informers.of('PersistentVolumeClaim').subscribe(({ object, previous }) => {
      if (object?.status?.phase !== 'Bound' || previous?.status?.phase === 'Bound') return
      for (const [key, snapshot] of snapshots.items) {
        const waits =
          snapshot.spec.source.persistentVolumeClaimName === object.metadata.name && !snapshot.status?.readyToUse
        if (waits && snapshot.metadata.namespace === object.metadata.namespace) loop.wake(key)
      }
    }),
  )
  return stack
}

const protect = (snapshot: VolumeSnapshot) =>
  withFinalizer(withFinalizer(snapshot, finalizers.snapshotAsSourceProtection), finalizers.snapshotBound)

async function bind(deps: BinderDeps, snapshot: VolumeSnapshot, signal: AbortSignal): Promise<void> {
  const content = await contentFor(deps, snapshot, signal)
  if (!content) return
  const { status } = content
  const seconds =
    status?.creationTime === undefined ? undefined : timestamp(Math.floor(status.creationTime / 1_000_000))
  const apply = (each: VolumeSnapshot): VolumeSnapshot => {
    const { error: _error, ...kept } = each.status ?? {}
    const next = {
      ...kept,
      boundVolumeSnapshotContentName: content.metadata.name,
      readyToUse: status?.readyToUse ?? false,
      ...(seconds !== undefined && { creationTime: seconds }),
      ...(status?.restoreSize !== undefined && { restoreSize: quantityOfBytes(status.restoreSize) }),
      ...(status?.error && { error: status.error }),
    }
    return JSON.stringify(sorted(next)) === JSON.stringify(sorted(each.status ?? {})) ? each : { ...each, status: next }
  }
  const written = await change(deps.client, 'VolumeSnapshot', snapshot, apply, { subresource: 'status' }, signal)
  // Once cut, a snapshot needs its source no more.
  if (written?.status?.readyToUse === true) await releaseClaim(deps, snapshot, signal)
  const becameReady = written?.status?.readyToUse === true && snapshot.status?.readyToUse !== true
  if (!becameReady) return
  const text = `Snapshot ${keyOf(snapshot)} is ready to use.`
  deps.recorder.event({ kind: 'VolumeSnapshot', object: snapshot }, 'Normal', 'SnapshotReady', text)
}

async function contentFor(
  deps: BinderDeps,
  snapshot: VolumeSnapshot,
  signal: AbortSignal,
): Promise<VolumeSnapshotContent | undefined> {
  const { client, informers, recorder } = deps
  const given = snapshot.spec.source.volumeSnapshotContentName
  if (given) return adoptContent(deps, snapshot, given, signal)
  const name = `snapcontent-${snapshot.metadata.uid ?? ''}`
  const present =
    informers.of('VolumeSnapshotContent').get(name) ??
    (await getOrNothing(client, 'VolumeSnapshotContent', { name }, signal))
  if (present) return present
  const snapshotClass = await classOf(deps, snapshot)
  const volume = await sourceVolume(deps, snapshot, snapshotClass.driver, signal)
  try {
    const made = await client.create(
      'VolumeSnapshotContent',
      newContent(name, snapshot, snapshotClass, volume),
      {},
      signal,
    )
    const text = `Waiting for a snapshot ${keyOf(snapshot)} to be created by the CSI driver.`
    recorder.event({ kind: 'VolumeSnapshot', object: snapshot }, 'Normal', 'CreatingSnapshot', text)
    return made
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return client.get('VolumeSnapshotContent', { name }, signal)
  }
}

/** A content made by hand points at its snapshot; the uid is filled in once. */
async function adoptContent(
  { client }: BinderDeps,
  snapshot: VolumeSnapshot,
  name: string,
  signal: AbortSignal,
): Promise<VolumeSnapshotContent> {
  const content = await client.get('VolumeSnapshotContent', { name }, signal)
  const ref = content.spec.volumeSnapshotRef
  const same = ref.name === snapshot.metadata.name && ref.namespace === snapshot.metadata.namespace
  if (!same || (ref.uid && ref.uid !== snapshot.metadata.uid))
    throw refused('SnapshotMisbound', `VolumeSnapshotContent [${name}] is bound to a different snapshot`)
  const apply = (each: VolumeSnapshotContent): VolumeSnapshotContent => {
    if (each.spec.volumeSnapshotRef.uid && hasFinalizer(each, finalizers.snapshotContentBound)) return each
    const reference = {
      ...each.spec.volumeSnapshotRef,
      ...(snapshot.metadata.uid !== undefined && { uid: snapshot.metadata.uid }),
    }
    return withFinalizer(
      { ...each, spec: { ...each.spec, volumeSnapshotRef: reference } },
      finalizers.snapshotContentBound,
    )
  }
  return (await change(client, 'VolumeSnapshotContent', content, apply, {}, signal)) ?? content
}

async function classOf({ informers, client }: BinderDeps, snapshot: VolumeSnapshot): Promise<VolumeSnapshotClass> {
  const classes = informers.of('VolumeSnapshotClass')
  const name = snapshot.spec.volumeSnapshotClassName
  const chosen = name
    ? classes.get(name)
    : [...classes.items.values()].find((each) => annotation(each, isDefaultSnapshotClass) === 'true')
  if (!chosen) throw refused('ClassMissing', `failed to get snapshot class ${name ?? '(default)'}`)
  if (!name) {
    const fill = (each: VolumeSnapshot) =>
      each.spec.volumeSnapshotClassName
        ? each
        : { ...each, spec: { ...each.spec, volumeSnapshotClassName: chosen.metadata.name } }
    await change(client, 'VolumeSnapshot', snapshot, fill, {}, new AbortController().signal)
  }
  return chosen
}

async function sourceVolume(
  { client }: BinderDeps,
  snapshot: VolumeSnapshot,
  driver: string,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const name = snapshot.spec.source.persistentVolumeClaimName ?? ''
  const claim = await client.get(
    'PersistentVolumeClaim',
    { namespace: snapshot.metadata.namespace ?? '', name },
    signal,
  )
  if (claim.status?.phase !== 'Bound' || !claim.spec?.volumeName)
    throw refused('SourceUnbound', `the PVC ${name} is not yet bound to a PV, will not attempt to take a snapshot`)
  const volume = await client.get('PersistentVolume', { name: claim.spec.volumeName }, signal)
  if (volume.spec?.csi?.driver !== driver)
    throw refused('SourceForeign', `cannot snapshot volume ${volume.metadata.name}: it is not of driver ${driver}`)
  await addFinalizer(client, 'PersistentVolumeClaim', claim, finalizers.claimAsSnapshotSource, signal)
  return volume
}

function newContent(
  name: string,
  snapshot: VolumeSnapshot,
  snapshotClass: VolumeSnapshotClass,
  volume: PersistentVolume,
): VolumeSnapshotContent {
  const content: VolumeSnapshotContent = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name, finalizers: [finalizers.snapshotContentBound] },
    spec: {
      volumeSnapshotRef: {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        name: snapshot.metadata.name,
        ...(snapshot.metadata.namespace !== undefined && { namespace: snapshot.metadata.namespace }),
        ...(snapshot.metadata.uid !== undefined && { uid: snapshot.metadata.uid }),
        ...(snapshot.metadata.resourceVersion !== undefined && { resourceVersion: snapshot.metadata.resourceVersion }),
      },
      deletionPolicy: snapshotClass.deletionPolicy,
      driver: snapshotClass.driver,
      volumeSnapshotClassName: snapshotClass.metadata.name,
      source: { volumeHandle: volume.spec?.csi?.volumeHandle ?? '' },
      sourceVolumeMode: volume.spec?.volumeMode ?? 'Filesystem',
    },
  }
  const secret = snapshotSecretOf(content, snapshotClass.parameters)
  if (!secret?.name) return content
  return withAnnotations(content, {
    [deletionSecretName]: secret.name,
    [deletionSecretNamespace]: secret.namespace ?? '',
  })
}

/** Going away: the content is told and, if it is ours, deleted with it; the snapshot waits while a claim is made from it. */
async function release(deps: BinderDeps, snapshot: VolumeSnapshot, signal: AbortSignal): Promise<void> {
  const { client, informers } = deps
  if (hasFinalizer(snapshot, finalizers.snapshotAsSource)) return
  const name = snapshot.status?.boundVolumeSnapshotContentName ?? `snapcontent-${snapshot.metadata.uid ?? ''}`
  const content =
    informers.of('VolumeSnapshotContent').get(name) ??
    (await getOrNothing(client, 'VolumeSnapshotContent', { name }, signal))
  if (content && content.spec.volumeSnapshotRef.uid === snapshot.metadata.uid) {
    const mark = (each: VolumeSnapshotContent) =>
      annotation(each, beingDeleted) === 'yes' ? each : withAnnotations(each, { [beingDeleted]: 'yes' })
    const marked = await change(client, 'VolumeSnapshotContent', content, mark, {}, signal)
    if (marked && content.spec.deletionPolicy === 'Delete') {
      if (!isDeleting(marked)) await client.remove('VolumeSnapshotContent', { name }, {}, signal).catch(ignoreGone)
      return // looked at again when the content is gone
    }
  }
  await releaseClaim(deps, snapshot, signal)
  await dropFinalizer(client, 'VolumeSnapshot', snapshot, finalizers.snapshotAsSourceProtection, signal)
  const fresh = await getOrNothing(
    client,
    'VolumeSnapshot',
    { namespace: snapshot.metadata.namespace ?? '', name: snapshot.metadata.name },
    signal,
  )
  if (fresh) await dropFinalizer(client, 'VolumeSnapshot', fresh, finalizers.snapshotBound, signal)
}

async function releaseClaim(
  { client, informers }: BinderDeps,
  snapshot: VolumeSnapshot,
  signal: AbortSignal,
): Promise<void> {
  const name = snapshot.spec.source.persistentVolumeClaimName
  const key = `${snapshot.metadata.namespace ?? ''}/${name ?? ''}`
  const claim = name ? informers.of('PersistentVolumeClaim').get(key) : undefined
  if (!claim) return
  for (const other of informers.of('VolumeSnapshot').items.values()) {
    const same =
      other.spec.source.persistentVolumeClaimName === name && other.metadata.namespace === snapshot.metadata.namespace
    if (same && other.metadata.uid !== snapshot.metadata.uid && other.status?.readyToUse !== true) return
  }
  await dropFinalizer(client, 'PersistentVolumeClaim', claim, finalizers.claimAsSnapshotSource, signal)
}

async function saveError(
  { client, clock }: BinderDeps,
  snapshot: VolumeSnapshot,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted || snapshot.status?.error?.message === message) return
  const error = { message, time: timestamp(clock.now()) }
  const apply = (each: VolumeSnapshot) => ({ ...each, status: { ...each.status, readyToUse: false, error } })
  await change(client, 'VolumeSnapshot', snapshot, apply, { subresource: 'status' }, signal).catch(() => {})
}

function worthLooking(now: VolumeSnapshot, before: VolumeSnapshot): boolean {
  const plain = ({ metadata, spec }: VolumeSnapshot) =>
    JSON.stringify([metadata.deletionTimestamp, metadata.finalizers, spec])
  return plain(now) !== plain(before)
}

function sorted(map: object): object {
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error
}
