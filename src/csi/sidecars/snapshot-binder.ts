// Who joins snapshots and contents? One job for all drivers: a VolumeSnapshot gets its content, follows its state, and
// takes it along when it is deleted (SIDE-45). What the driver does is the snapshotter's.
import { finalizers } from '../../api/annotations.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  VolumeSnapshot,
  VolumeSnapshotClass,
  VolumeSnapshotContent,
} from '../../api/generated/types.ts'
import { isDeleting, keyFor, keyOf, refKey, refOf, withFinalizer } from '../../api/meta.ts'
import { ignoreNotFound, isAlreadyExists } from '../../api/status-error.ts'
import { classOf } from '../../api/storage-class.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { createJobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import type { JobLoop } from './job-loop.ts'
import type { Needed } from './needed-objects.ts'
import { addFinalizer, change, dropFinalizer } from './job.ts'
import type { JobDeps } from './job.ts'
import {
  adopted,
  adoptionProblem,
  boundContentName,
  boundTo,
  chooseSnapshotClass,
  isSourceUnused,
  markedForDeletion,
  newContent,
  planContentRelease,
  planSnapshotStep,
  snapshotClassMissing,
  sourceForeign,
  sourceUnbound,
} from './snapshot-binding-plan.ts'

type BinderDeps = Pick<JobDeps, 'client' | 'informers' | 'clock' | 'log' | 'recorder' | 'history' | 'active'>
type SnapshotKey = ObjectKey<'VolumeSnapshot'>

export interface BinderOptions {
  /** Upstream's snapshot-controller does this job for the driver. */
  isLeft(driver: string): boolean
}

export function createSnapshotBinder(deps: BinderDeps, options: BinderOptions): AsyncDisposable {
  const stack = new AsyncDisposableStack()
  const snapshots = deps.informers.of('VolumeSnapshot')
  const loopDeps = { ...deps, driver: { name: 'snapshots' } }
  const history = createJobHistory(loopDeps, 'snapshot')
  const loop = stack.use(
    createLoopWithHistory<SnapshotKey>(loopDeps, {
      ...{ name: 'snapshot binder', workers: 10, history, failure: 'snapshot not bound' },
      async sync(key, signal) {
        const snapshot = snapshots.get(refKey(key))
        if (!snapshot || options.isLeft(driverOf(deps, snapshot) ?? '')) return
        try {
          await carryOut(deps, snapshot, signal)
        } catch (error) {
          const { message } = asVolumeError(error)
          const about = { kind: 'VolumeSnapshot', object: snapshot } as const
          deps.recorder.event(about, 'Warning', 'SnapshotContentCreationFailed', message)
          await saveError(deps, snapshot, message, signal)
          throw error
        }
      },
      needs: (key) => neededFor(deps, snapshots.get(refKey(key))),
    }),
  )
  follow(deps, stack, loop)
  return stack
}

/** A snapshot without a class may be given any that comes. */
function neededFor({ informers }: BinderDeps, snapshot: VolumeSnapshot | undefined): readonly Needed[] {
  if (!snapshot) return []
  const { metadata, spec } = snapshot
  const { namespace } = metadata
  const { persistentVolumeClaimName: claim, volumeSnapshotContentName: content } = spec.source
  const volume = claim && informers.of('PersistentVolumeClaim').get(keyFor(namespace, claim))?.spec?.volumeName
  return [
    { kind: 'VolumeSnapshotClass', name: spec.volumeSnapshotClassName },
    ...(claim ? [{ kind: 'PersistentVolumeClaim' as const, namespace, name: claim }] : []),
    ...(volume ? [{ kind: 'PersistentVolume' as const, name: volume }] : []),
    ...(content ? [{ kind: 'VolumeSnapshotContent' as const, name: content }] : []),
  ]
}

function follow({ informers }: BinderDeps, stack: AsyncDisposableStack, loop: JobLoop<SnapshotKey>): void {
  const snapshots = informers.of('VolumeSnapshot')
  stack.use(
    snapshots.subscribe(({ object, previous }) => {
      if (object && (!previous || needsSync(object, previous))) loop.wake(objectKey('VolumeSnapshot', object))
    }),
  )
  stack.use(
    informers.of('VolumeSnapshotContent').subscribe(({ object, previous }) => {
      const { namespace = '', name } = (object ?? previous).spec.volumeSnapshotRef
      if (name) loop.wake({ kind: 'VolumeSnapshot', namespace, name })
    }),
  )
}

/** From the snapshot's class, its content, or the class of its claim; undefined as long as none of them is there. */
function driverOf({ informers }: BinderDeps, { metadata, spec }: VolumeSnapshot): string | undefined {
  const { volumeSnapshotContentName: contentName = '', persistentVolumeClaimName: claimName = '' } = spec.source
  const named = informers.of('VolumeSnapshotClass').get(spec.volumeSnapshotClassName ?? '')?.driver
  const content = informers.of('VolumeSnapshotContent').get(contentName)
  const claim = informers.of('PersistentVolumeClaim').get(keyFor(metadata.namespace, claimName))
  const volume = informers.of('PersistentVolume').get(claim?.spec?.volumeName ?? '')
  const storageClass = claim && informers.of('StorageClass').get(classOf(claim))
  return named ?? content?.spec.driver ?? volume?.spec?.csi?.driver ?? storageClass?.provisioner
}

async function carryOut(deps: BinderDeps, snapshot: VolumeSnapshot, signal: AbortSignal): Promise<void> {
  if (isDeleting(snapshot)) {
    if (planSnapshotStep(snapshot).kind === 'release') await release(deps, snapshot, signal)
    return
  }
  const held = await change(deps.client, 'VolumeSnapshot', snapshot, protect, {}, signal)
  if (!held) return
  const step = planSnapshotStep(held)
  switch (step.kind) {
    case 'waitForClaims':
    case 'release':
      return // deleted meanwhile; that change wakes it again
    case 'adopt':
      return bind(deps, held, await adoptContent(deps, held, step.contentName, signal), signal)
    case 'bind':
      return bind(deps, held, await contentFor(deps, held, step.contentName, signal), signal)
    default:
      return step satisfies never
  }
}

const protect = (snapshot: VolumeSnapshot) =>
  withFinalizer(withFinalizer(snapshot, finalizers.snapshotAsSourceProtection), finalizers.snapshotBound)

async function bind(
  deps: BinderDeps,
  snapshot: VolumeSnapshot,
  content: VolumeSnapshotContent,
  signal: AbortSignal,
): Promise<void> {
  const apply = (each: VolumeSnapshot) => boundTo(each, content)
  const written = await change(deps.client, 'VolumeSnapshot', snapshot, apply, { subresource: 'status' }, signal)
  if (written?.status?.readyToUse !== true) return
  // Once cut, a snapshot needs its source no more.
  await releaseClaim(deps, snapshot, signal)
  if (snapshot.status?.readyToUse === true) return
  const text = `Snapshot ${keyOf(snapshot)} is ready to use.`
  deps.recorder.event({ kind: 'VolumeSnapshot', object: snapshot }, 'Normal', 'SnapshotReady', text)
}

async function contentFor(
  deps: BinderDeps,
  snapshot: VolumeSnapshot,
  name: string,
  signal: AbortSignal,
): Promise<VolumeSnapshotContent> {
  const { client, recorder } = deps
  const present = await findContent(deps, name, signal)
  if (present) return present
  const { claim, volume } = await sourceOf(deps, snapshot, signal)
  const snapshotClass = await classFor(deps, snapshot, volume)
  const foreign = sourceForeign(volume, snapshotClass.driver)
  if (foreign) throw foreign
  // The claim is protected before anything is asked of the driver.
  await addFinalizer(client, 'PersistentVolumeClaim', claim, finalizers.claimAsSnapshotSource, signal)
  try {
    const content = newContent(name, snapshot, snapshotClass, volume)
    const made = await client.create('VolumeSnapshotContent', content, {}, signal)
    const text = `Waiting for a snapshot ${keyOf(snapshot)} to be created by the CSI driver.`
    recorder.event({ kind: 'VolumeSnapshot', object: snapshot }, 'Normal', 'CreatingSnapshot', text)
    return made
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return client.get('VolumeSnapshotContent', { name }, signal)
  }
}

async function findContent({ client, informers }: BinderDeps, name: string, signal: AbortSignal) {
  const known = informers.of('VolumeSnapshotContent').get(name)
  return known ?? (await getIfExists(client, 'VolumeSnapshotContent', { name }, signal))
}

async function adoptContent(
  { client }: BinderDeps,
  snapshot: VolumeSnapshot,
  name: string,
  signal: AbortSignal,
): Promise<VolumeSnapshotContent> {
  const content = await client.get('VolumeSnapshotContent', { name }, signal)
  const problem = adoptionProblem(snapshot, content)
  if (problem) throw problem
  const apply = (each: VolumeSnapshotContent) => adopted(each, snapshot)
  return (await change(client, 'VolumeSnapshotContent', content, apply, {}, signal)) ?? content
}

/** A snapshot without a class gets the default class of the driver of its volume written into it. */
async function classFor(
  { informers, client }: BinderDeps,
  snapshot: VolumeSnapshot,
  volume: PersistentVolume,
): Promise<VolumeSnapshotClass> {
  const classes = informers.of('VolumeSnapshotClass').items
  const driver = volume.spec?.csi?.driver ?? ''
  const chosen = chooseSnapshotClass(snapshot, classes, driver)
  if (!chosen) throw snapshotClassMissing(snapshot, classes, driver)
  if (!snapshot.spec.volumeSnapshotClassName) {
    const volumeSnapshotClassName = chosen.metadata.name
    const fill = (each: VolumeSnapshot) =>
      each.spec.volumeSnapshotClassName ? each : { ...each, spec: { ...each.spec, volumeSnapshotClassName } }
    await change(client, 'VolumeSnapshot', snapshot, fill, {}, new AbortController().signal)
  }
  return chosen
}

async function sourceOf(
  { client }: BinderDeps,
  snapshot: VolumeSnapshot,
  signal: AbortSignal,
): Promise<{ readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }> {
  const name = snapshot.spec.source.persistentVolumeClaimName ?? ''
  const ref = { namespace: snapshot.metadata.namespace ?? '', name }
  const claim = await client.get('PersistentVolumeClaim', ref, signal)
  const unbound = sourceUnbound(claim)
  if (unbound) throw unbound
  return { claim, volume: await client.get('PersistentVolume', { name: claim.spec?.volumeName ?? '' }, signal) }
}

/** The content is marked first and, if it is ours, deleted with the snapshot; the snapshot's finalizers go last. */
async function release(deps: BinderDeps, snapshot: VolumeSnapshot, signal: AbortSignal): Promise<void> {
  const { client } = deps
  const name = boundContentName(snapshot)
  const plan = planContentRelease(snapshot, await findContent(deps, name, signal))
  if (plan.kind === 'mark') {
    const marked = await change(client, 'VolumeSnapshotContent', plan.content, markedForDeletion, {}, signal)
    if (marked && plan.deletes) {
      if (!isDeleting(marked)) await client.remove('VolumeSnapshotContent', { name }, {}, signal).catch(ignoreNotFound)
      return // synced again when the content is gone
    }
  }
  await releaseClaim(deps, snapshot, signal)
  await dropFinalizer(client, 'VolumeSnapshot', snapshot, finalizers.snapshotAsSourceProtection, signal)
  const fresh = await getIfExists(client, 'VolumeSnapshot', refOf(snapshot), signal)
  if (fresh) await dropFinalizer(client, 'VolumeSnapshot', fresh, finalizers.snapshotBound, signal)
}

async function releaseClaim(
  { client, informers }: BinderDeps,
  snapshot: VolumeSnapshot,
  signal: AbortSignal,
): Promise<void> {
  const name = snapshot.spec.source.persistentVolumeClaimName
  const claim = name && informers.of('PersistentVolumeClaim').get(keyFor(snapshot.metadata.namespace, name))
  if (!claim || !isSourceUnused(snapshot, informers.of('VolumeSnapshot').items.values())) return
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

function needsSync(now: VolumeSnapshot, before: VolumeSnapshot): boolean {
  const plain = ({ metadata, spec }: VolumeSnapshot) =>
    JSON.stringify([metadata.deletionTimestamp, metadata.finalizers, spec])
  return plain(now) !== plain(before)
}
