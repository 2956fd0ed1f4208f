// Who makes the snapshots that contents describe? This job calls CreateSnapshot and DeleteSnapshot for its driver's
// VolumeSnapshotContents (SIDE-46 … SIDE-48). A mark stands on the content while a snapshot may be under way.
import { finalizers } from '../../api/annotations.ts'
import { annotation, hasFinalizer, isDeleting, withAnnotations } from '../../api/meta.ts'
import type { VolumeSnapshotContent } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import type { DriverSnapshot } from '../controller.ts'
import { timeouts } from '../deadline.ts'
import type { Strings } from '../values.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { change, dropFinalizer, jobBackoff, readSecret, refused } from './job.ts'
import type { JobDeps } from './job.ts'
import { beingCreated, beingDeleted, deletionSecretOf, snapshotParameters, snapshotSecretOf } from './snapshot-names.ts'

const notReadyMs = 2_000

export function createSnapshotter(deps: JobDeps): AsyncDisposable {
  const { client, clock, log, recorder, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const contents = informers.of('VolumeSnapshotContent')
  const controller = driver.controller(timeouts.snapshotter)
  const story = createJobStory(deps, 'snapshot')
  const objectsOf = (name: string) => [reference('VolumeSnapshotContent', name)]

  const look = async (name: string, signal: AbortSignal): Promise<Looked | void> => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const content = contents.get(name)
    if (!content || content.spec.driver !== driver.name) return
    try {
      if (isDeleting(content)) return await remove(content, signal)
      if (content.status?.readyToUse === true) return
      return content.spec.source.volumeHandle ? await make(content, signal) : await adopt(content, signal)
    } catch (error) {
      const { message } = asVolumeError(error)
      const reason = isDeleting(content) ? 'SnapshotDeleteError' : 'SnapshotContentCheckandUpdateFailed'
      recorder.event({ kind: 'VolumeSnapshotContent', object: content }, 'Warning', reason, message)
      await saveError(deps, content, message, signal)
      throw error
    }
  }
  const make = async (content: VolumeSnapshotContent, signal: AbortSignal): Promise<Looked | void> => {
    const snapshotClass = informers.of('VolumeSnapshotClass').get(content.spec.volumeSnapshotClassName ?? '')
    const secrets = await readSecret(client, snapshotSecretOf(content, snapshotClass?.parameters), signal)
    // The mark stands before the call: a content with it is never forgotten (SIDE-46).
    const mark = (each: VolumeSnapshotContent) =>
      isDeleting(each) ? undefined : withAnnotations(each, { [beingCreated]: 'yes' })
    const marked =
      annotation(content, beingCreated) === 'yes'
        ? content
        : await change(client, 'VolumeSnapshotContent', content, mark, {}, signal)
    if (!marked || annotation(marked, beingCreated) !== 'yes') return
    const request = {
      sourceVolumeId: content.spec.source.volumeHandle ?? '',
      name: `snapshot-${content.spec.volumeSnapshotRef.uid ?? ''}`,
      parameters: snapshotParameters(snapshotClass?.parameters),
      secrets,
    }
    let snapshot: DriverSnapshot
    try {
      snapshot = await controller.createSnapshot(request, signal)
    } catch (error) {
      if (asVolumeError(error).effect !== 'unknown') await unmark(deps, marked, signal)
      throw error
    }
    const written = await saveStatus(deps, marked, snapshot, signal)
    if (written) await unmark(deps, written, signal)
    if (!snapshot.readyToUse) return { again: clock.now() + notReadyMs }
    log.info('snapshot made', { driver: driver.name, content: content.metadata.name })
  }
  /** SIDE-47: made elsewhere; the driver may tell about it, else it is taken to be ready. */
  const adopt = async (content: VolumeSnapshotContent, signal: AbortSignal): Promise<Looked | void> => {
    const handle = content.spec.source.snapshotHandle ?? ''
    if (!deps.controller.has('LIST_SNAPSHOTS')) {
      const assumed = {
        snapshotId: handle,
        sourceVolumeId: '',
        sizeBytes: 0n,
        createdMs: clock.now(),
        readyToUse: true,
      }
      await saveStatus(deps, content, assumed, signal)
      return
    }
    const found = await controller.findSnapshot(handle, {}, signal)
    if (!found) throw refused('SnapshotMissing', `snapshot ${handle} does not exist`)
    await saveStatus(deps, content, found, signal)
    if (!found.readyToUse) return { again: clock.now() + notReadyMs }
  }
  const remove = async (content: VolumeSnapshotContent, signal: AbortSignal): Promise<void> => {
    if (!hasFinalizer(content, finalizers.snapshotContentBound)) return
    if (content.spec.deletionPolicy === 'Delete' || annotation(content, beingCreated) === 'yes') {
      if (
        content.spec.deletionPolicy === 'Delete' &&
        annotation(content, beingDeleted) !== 'yes' &&
        !annotation(content, beingCreated)
      )
        return
      await removeFromDriver(content, signal)
    }
    await dropFinalizer(client, 'VolumeSnapshotContent', content, finalizers.snapshotContentBound, signal)
  }
  const removeFromDriver = async (content: VolumeSnapshotContent, signal: AbortSignal): Promise<void> => {
    let handle = content.status?.snapshotHandle ?? content.spec.source.snapshotHandle
    if (!handle && annotation(content, beingCreated) === 'yes') {
      // It may exist: the same call again gives its handle, or an answer that it does not.
      const parameters = informers.of('VolumeSnapshotClass').get(content.spec.volumeSnapshotClassName ?? '')?.parameters
      const request = {
        sourceVolumeId: content.spec.source.volumeHandle ?? '',
        name: `snapshot-${content.spec.volumeSnapshotRef.uid ?? ''}`,
        parameters: snapshotParameters(parameters),
        secrets: await readSecret(client, snapshotSecretOf(content, parameters), signal),
      }
      handle = await controller.createSnapshot(request, signal).then(
        ({ snapshotId }) => snapshotId,
        (error: unknown) => {
          if (asVolumeError(error).effect === 'unknown') throw error
          return undefined
        },
      )
    }
    if (handle) await controller.deleteSnapshot(handle, await deletionSecrets(content, signal), signal)
    log.info('snapshot deleted', { driver: driver.name, content: content.metadata.name })
  }
  const deletionSecrets = (content: VolumeSnapshotContent, signal: AbortSignal): Promise<Strings> =>
    readSecret(client, deletionSecretOf(content), signal)
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `snapshotter ${driver.name}`,
      clock,
      workers: 10,
      backoff: jobBackoff,
      look,
      onError: (name, error, retryAt) =>
        log.warn('snapshot failed', { driver: driver.name, content: name, error, retryAt }),
    }),
  )
  stack.use(
    contents.subscribe(({ object, previous, key }) => {
      if (object?.spec.driver === driver.name && (!previous || worthLooking(object, previous))) loop.wake(key)
    }),
  )
  return stack
}

/** SIDE-47 */
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
function worthLooking(now: VolumeSnapshotContent, before: VolumeSnapshotContent): boolean {
  const plain = (content: VolumeSnapshotContent) =>
    JSON.stringify([
      content.metadata.deletionTimestamp,
      content.metadata.finalizers,
      annotation(content, beingDeleted),
      content.spec,
    ])
  return plain(now) !== plain(before)
}
