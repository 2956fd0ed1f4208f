// Who makes the snapshots that contents describe? This job calls CreateSnapshot and DeleteSnapshot for its driver's
// VolumeSnapshotContents (SIDE-46 … SIDE-48). A mark stands on the content while a snapshot may be under way.
import { finalizers } from '../../api/annotations.ts'
import type { VolumeSnapshotContent } from '../../api/generated/types.ts'
import { annotation, isDeleting, withAnnotations } from '../../api/meta.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError, refused } from '../../volume/effect.ts'
import type { DriverSnapshot } from '../controller.ts'
import { timeouts } from '../deadline.ts'
import { createJobHistory } from './job-history.ts'
import type { JobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import { change, dropFinalizer, readSecret } from './job.ts'
import type { JobDeps } from './job.ts'
import { managedByLabel } from './ownership.ts'
import { beingCreated, beingDeleted, deletionSecretOf, snapshotParameters, snapshotSecretOf } from './snapshot-names.ts'
import { planSnapshot } from './snapshot-plan.ts'
import type { SnapshotPlan } from './snapshot-plan.ts'

const notReadyMs = 2_000

interface SnapshotDeps extends JobDeps {
  readonly told: JobHistory
  /** Another content that is to stay and has this handle. */
  otherWith(handle: string, content: VolumeSnapshotContent): string | undefined
}

export function createSnapshotter(deps: JobDeps): AsyncDisposable {
  const { driver, informers, recorder } = deps
  const stack = new AsyncDisposableStack()
  const contents = informers.of('VolumeSnapshotContent')
  const history = createJobHistory(deps, 'snapshot')
  const canList = deps.controller.has('LIST_SNAPSHOTS')
  const byHandle = contents.index((each) => (each.spec.driver === driver.name ? handlesOf(each) : []))
  const otherWith: SnapshotDeps['otherWith'] = (handle, content) =>
    [...byHandle.get(handle)].find((each) => each.metadata.name !== content.metadata.name && !isDeleting(each))
      ?.metadata.name
  const loop = stack.use(
    createLoopWithHistory<ObjectKey<'VolumeSnapshotContent'>>(deps, {
      ...{ name: 'snapshotter', workers: 10, history, failure: 'snapshot failed' },
      needs: () => [],
      async sync({ name }, signal) {
        const content = contents.get(name)
        if (!content || !deps.owns().snapshot(content)) return
        try {
          return await carryOut(
            { ...deps, told: history, otherWith },
            content,
            planSnapshot({ content, driver: driver.name, canList }),
            signal,
          )
        } catch (error) {
          const { message } = asVolumeError(error)
          const reason = isDeleting(content) ? 'SnapshotDeleteError' : 'SnapshotContentCheckandUpdateFailed'
          recorder.event({ kind: 'VolumeSnapshotContent', object: content }, 'Warning', reason, message)
          await saveError(deps, content, message, signal)
          throw error
        }
      },
    }),
  )
  stack.use(
    contents.subscribe(({ object, previous }) => {
      if (object?.spec.driver === driver.name && (!previous || needsSync(object, previous)))
        loop.wake(objectKey('VolumeSnapshotContent', object))
    }),
  )
  return stack
}

async function carryOut(
  deps: SnapshotDeps,
  content: VolumeSnapshotContent,
  plan: SnapshotPlan,
  signal: AbortSignal,
): Promise<Looked | void> {
  switch (plan.kind) {
    case 'nothing':
      return
    case 'create':
      return create(deps, content, plan.isMarked, signal)
    case 'find':
      return adopt(deps, content, plan.handle, signal)
    case 'assumeReady': {
      const source = { snapshotId: plan.handle, sourceVolumeId: '', sizeBytes: 0n }
      await saveStatus(deps, content, { ...source, createdMs: deps.clock.now(), readyToUse: true }, signal)
      return
    }
    case 'delete':
      return remove(deps, content, plan.handle, signal)
    case 'deleteUnknown':
      return remove(deps, content, await handleOf(deps, content, signal), signal)
    case 'release':
      return dropFinalizer(deps.client, 'VolumeSnapshotContent', content, finalizers.snapshotContentBound, signal)
    default:
      return plan satisfies never
  }
}

/** The mark stands before the call: a content with it is never forgotten (SIDE-46). */
async function create(
  deps: SnapshotDeps,
  content: VolumeSnapshotContent,
  isMarked: boolean,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { client, clock, driver, log, ownNode } = deps
  // Who makes the snapshot deletes it, also when its volume is gone by then.
  const managed = ({ metadata, ...rest }: VolumeSnapshotContent): VolumeSnapshotContent =>
    ownNode === undefined
      ? { metadata, ...rest }
      : { ...rest, metadata: { ...metadata, labels: { ...metadata.labels, [managedByLabel]: ownNode } } }
  const request = await requestFor(deps, content, signal)
  const mark = (each: VolumeSnapshotContent) =>
    isDeleting(each) ? undefined : withAnnotations(managed(each), { [beingCreated]: 'yes' })
  const marked = isMarked ? content : await change(client, 'VolumeSnapshotContent', content, mark, {}, signal)
  if (!marked || annotation(marked, beingCreated) !== 'yes') return
  let snapshot: DriverSnapshot
  try {
    snapshot = await deps.told.calling(objectKey('VolumeSnapshotContent', content), 'CreateSnapshot', async () => {
      const made = await driver.controller(timeouts.snapshotter).createSnapshot(request, signal)
      checkNobodys(deps, content, made.snapshotId)
      return made
    })
  } catch (error) {
    if (asVolumeError(error).effect !== 'unknown') await unmark(deps, marked, signal)
    throw error
  }
  const written = await saveStatus(deps, marked, snapshot, signal)
  if (written) await unmark(deps, written, signal)
  if (!snapshot.readyToUse) return { again: clock.now() + notReadyMs }
  log.info('snapshot made', { driver: driver.name, content: content.metadata.name })
}

/** The handle of another snapshot is another snapshot: it is neither used nor, later, deleted. */
function checkNobodys(deps: SnapshotDeps, content: VolumeSnapshotContent, handle: string): void {
  const other = deps.otherWith(handle, content)
  if (other === undefined) return
  const text = `the driver answered a snapshot handle that is already the handle of VolumeSnapshotContent ${other}: not used`
  throw refused('AnswerRefused', text, 'none')
}

/** The one that was found at the storage, and the one that a person named. */
function handlesOf({ spec, status }: VolumeSnapshotContent): readonly string[] {
  const handle = status?.snapshotHandle ?? spec.source.snapshotHandle
  return handle === undefined ? [] : [handle]
}

async function adopt(
  deps: JobDeps,
  content: VolumeSnapshotContent,
  handle: string,
  signal: AbortSignal,
): Promise<Looked | void> {
  const found = await deps.driver.controller(timeouts.snapshotter).findSnapshot(handle, {}, signal)
  if (!found) throw refused('SnapshotMissing', `snapshot ${handle} does not exist`, 'none')
  await saveStatus(deps, content, found, signal)
  if (!found.readyToUse) return { again: deps.clock.now() + notReadyMs }
}

/** The storage first, then the finalizer. */
async function remove(
  deps: SnapshotDeps,
  content: VolumeSnapshotContent,
  handle: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { client, driver, log } = deps
  const other = handle && deps.otherWith(handle, content)
  if (other) {
    const text = `its snapshot is also that of VolumeSnapshotContent ${other}, which has the same handle: not deleted. Set deletionPolicy to Retain to give up this object, or delete the other one`
    throw refused('HandleShared', text, 'none')
  }
  if (handle) {
    const secrets = await readSecret(client, deletionSecretOf(content), signal)
    await deps.told.calling(objectKey('VolumeSnapshotContent', content), 'DeleteSnapshot', () =>
      driver.controller(timeouts.snapshotter).deleteSnapshot(handle, secrets, signal),
    )
  }
  log.info('snapshot deleted', { driver: driver.name, content: content.metadata.name })
  await dropFinalizer(client, 'VolumeSnapshotContent', content, finalizers.snapshotContentBound, signal)
}

/** The same call again gives the handle of a snapshot that may exist, or a definite answer that it does not. */
async function handleOf(
  deps: SnapshotDeps,
  content: VolumeSnapshotContent,
  signal: AbortSignal,
): Promise<string | undefined> {
  const request = await requestFor(deps, content, signal)
  try {
    const { snapshotId } = await deps.driver.controller(timeouts.snapshotter).createSnapshot(request, signal)
    return deps.otherWith(snapshotId, content) === undefined ? snapshotId : undefined
  } catch (error) {
    if (asVolumeError(error).effect === 'unknown') throw error
    return undefined
  }
}

/** Every try sends the same request, so that the driver knows it again. */
async function requestFor({ client, informers }: JobDeps, content: VolumeSnapshotContent, signal: AbortSignal) {
  const { source, volumeSnapshotRef, volumeSnapshotClassName = '' } = content.spec
  const parameters = informers.of('VolumeSnapshotClass').get(volumeSnapshotClassName)?.parameters
  return {
    sourceVolumeId: source.volumeHandle ?? '',
    name: `snapshot-${volumeSnapshotRef.uid ?? ''}`,
    parameters: snapshotParameters(parameters),
    secrets: await readSecret(client, snapshotSecretOf(content, parameters), signal),
  }
}

/** What the driver said becomes the content's status (SIDE-47). */
async function saveStatus(
  { client }: JobDeps,
  content: VolumeSnapshotContent,
  snapshot: DriverSnapshot,
  signal: AbortSignal,
) {
  const apply = (each: VolumeSnapshotContent): VolumeSnapshotContent => {
    const { error: _error, ...status } = each.status ?? {}
    return {
      ...each,
      status: {
        ...status,
        snapshotHandle: snapshot.snapshotId,
        creationTime: snapshot.createdMs * 1_000_000,
        readyToUse: snapshot.readyToUse,
        ...(snapshot.sizeBytes > 0n && { restoreSize: Number(snapshot.sizeBytes) }),
      },
    }
  }
  return change(client, 'VolumeSnapshotContent', content, apply, { subresource: 'status' }, signal)
}

async function unmark({ client }: JobDeps, content: VolumeSnapshotContent, signal: AbortSignal): Promise<void> {
  const clear = (each: VolumeSnapshotContent) =>
    annotation(each, beingCreated) === undefined ? undefined : withAnnotations(each, { [beingCreated]: undefined })
  await change(client, 'VolumeSnapshotContent', content, clear, {}, signal)
}

async function saveError(
  deps: JobDeps,
  content: VolumeSnapshotContent,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return
  const error = { message, time: timestamp(deps.clock.now()) }
  const apply = (each: VolumeSnapshotContent) => ({ ...each, status: { ...each.status, readyToUse: false, error } })
  await change(deps.client, 'VolumeSnapshotContent', content, apply, { subresource: 'status' }, signal).catch(
    (cause: unknown) => deps.log.warn('snapshot error not written', { content: content.metadata.name, error: cause }),
  )
}

/** Our own words about errors are no reason to try again at once. */
function needsSync(now: VolumeSnapshotContent, before: VolumeSnapshotContent): boolean {
  const plain = (content: VolumeSnapshotContent) =>
    JSON.stringify([
      content.metadata.deletionTimestamp,
      content.metadata.finalizers,
      annotation(content, beingDeleted),
      content.spec,
    ])
  return plain(now) !== plain(before)
}
