// When is a driver's volume deleted? When its PersistentVolume is released, its policy says Delete and nothing is
// attached any more (SIDE-20, SIDE-21, XPR-10, XPR-11).
import { ignoreNotFound } from '../../api/status-error.ts'
import { annotations, finalizers } from '../../api/annotations.ts'
import type { PersistentVolume } from '../../api/generated/types.ts'
import { annotation } from '../../api/meta.ts'
import { classOf } from '../../api/storage-class.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError, VolumeError, refused } from '../../volume/effect.ts'
import { timeouts } from '../deadline.ts'
import type { Strings } from '../values.ts'
import { planDelete } from './delete-plan.ts'
import type { DeleteFacts } from './delete-plan.ts'
import { createJobHistory } from './job-history.ts'
import type { JobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import { addFinalizer, dropFinalizer, readSecret, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import { resolveSecret, splitParameters } from './parameters.ts'

export interface DeleterOptions {
  onDeleted?(): void
}

/** A volume whose pod has just gone may be in use for a moment: it is asked again often, and told only after a while. */
const quietMs = 10_000
const busyMs = 250

const finalizer = finalizers.externalProvisioner

interface DeleteDeps extends JobDeps {
  readonly told: JobHistory
}

export function createDeleter(deps: JobDeps, options: DeleterOptions): AsyncDisposable {
  const { clock, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const volumes = informers.of('PersistentVolume')
  const attachments = informers.of('VolumeAttachment')
  const attachedTo = attachments.index(({ spec }) =>
    spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : [],
  )
  const byHandle = volumes.index(({ spec }) => (spec?.csi?.driver === driver.name ? [spec.csi.volumeHandle] : []))
  const history = createJobHistory(deps, 'delete')
  /** Since when a volume could not be deleted. */
  const refusedSince = new Map<string, number>()
  const loop = stack.use(
    createLoopWithHistory<ObjectKey<'PersistentVolume'>>(deps, {
      ...{ name: 'deleter', workers, failure: 'volume not deleted', history },
      needs: () => [],
      async sync({ name }, signal) {
        const volume = volumes.get(name)
        if (!volume) return
        const publishes = deps.controller.has('PUBLISH_UNPUBLISH_VOLUME')
        const attachment = publishes ? [...attachedTo.get(name)][0] : undefined
        const sharedWith = otherWith(byHandle.get(volume.spec?.csi?.volumeHandle ?? ''), volume)
        const facts = { ...factsOf(deps, volume), attachedTo: attachment?.spec.nodeName, sharedWith }
        return carryOut(
          { ...deps, told: history },
          options,
          facts,
          (error) => notDeleted(deps, volume, error, refusedSince.getOrInsert(name, clock.now())),
          signal,
        )
      },
    }),
  )
  stack.use(
    volumes.subscribe(({ object, previous, key }) => {
      if (!object) {
        refusedSince.delete(key)
        // A volume that was kept because this one had the same handle may be deleted now.
        for (const other of byHandle.get(previous.spec?.csi?.volumeHandle ?? ''))
          loop.wake(objectKey('PersistentVolume', other))
      }
      if (object?.spec?.csi?.driver === driver.name) loop.wake(objectKey('PersistentVolume', object))
    }),
  )
  stack.use(
    attachments.subscribe(({ kind, previous }) => {
      const name = kind === 'removed' ? previous.spec.source.persistentVolumeName : undefined
      // A volume that was refused while it was attached may be deleted now.
      if (name && previous?.spec.attacher === driver.name) loop.wake({ kind: 'PersistentVolume', name })
    }),
  )
  return stack
}

/** One that is going away as well does not count: of several the last one takes the data with it. */
function otherWith(sameHandle: Iterable<PersistentVolume>, volume: PersistentVolume): string | undefined {
  for (const { metadata, spec, status } of sameHandle) {
    const goesToo = spec?.persistentVolumeReclaimPolicy === 'Delete' && status?.phase === 'Released'
    if (metadata.name !== volume.metadata.name && !goesToo) return metadata.name
  }
  return undefined
}

function factsOf({ driver, owns }: JobDeps, volume: PersistentVolume) {
  return { volume, driver: driver.name, owned: owns().volume(volume) }
}

async function carryOut(
  deps: DeleteDeps,
  options: DeleterOptions,
  facts: DeleteFacts,
  notDeleted: (error: unknown) => Looked,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { client } = deps
  const { volume } = facts
  const plan = planDelete(facts)
  switch (plan.kind) {
    case 'nothing':
      return
    case 'addFinalizer':
      return void (await addFinalizer(client, 'PersistentVolume', volume, finalizer, signal))
    case 'dropFinalizer':
      return dropFinalizer(client, 'PersistentVolume', volume, finalizer, signal)
    case 'waitForDetach': {
      const message = `persistentvolume ${volume.metadata.name} is still attached to node ${plan.node}`
      return notDeleted(refused('StillAttached', message, 'none'))
    }
    case 'shared': {
      const message = `its data is also that of PersistentVolume ${plan.with}, which has the same handle: not deleted. Set persistentVolumeReclaimPolicy to Retain to give up this object, or delete the other one`
      return notDeleted(refused('HandleShared', message, 'none'))
    }
    case 'delete':
      try {
        await deleteVolume(deps, volume, signal)
        return options.onDeleted?.()
      } catch (error) {
        return notDeleted(error)
      }
    default:
      return plan satisfies never
  }
}

/** The storage first, then the object, then the finalizer: a crash in between repeats an idempotent call. */
async function deleteVolume(deps: DeleteDeps, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { client, driver, log } = deps
  const { name, uid } = volume.metadata
  const secrets = await deletionSecrets(deps, volume, signal)
  await deps.told.calling(objectKey('PersistentVolume', volume), 'DeleteVolume', () =>
    driver.controller(timeouts.provisioner).deleteVolume(volume.spec?.csi?.volumeHandle ?? '', secrets, signal),
  )
  log.info('volume deleted', { driver: driver.name, volume: name })
  await client.remove('PersistentVolume', { name }, uid === undefined ? {} : { uid }, signal).catch(ignoreNotFound)
  await dropFinalizer(client, 'PersistentVolume', volume, finalizer, signal)
}

/** From the volume's annotations, else from its class; a missing secret is the driver's to judge. */
async function deletionSecrets(
  { client, informers, log }: JobDeps,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<Strings> {
  const name = annotation(volume, annotations.deletionSecretName)
  const namespace = annotation(volume, annotations.deletionSecretNamespace)
  const parameters = informers.of('StorageClass').get(classOf(volume))?.parameters
  const template = name === undefined ? splitParameters(parameters).secrets.provisioner : undefined
  const ref =
    name && namespace
      ? { name, namespace }
      : resolveSecret(template, { volumeName: volume.metadata.name, claim: undefined })
  return readSecret(client, ref, signal).catch((error: unknown) => {
    log.warn('deletion secret cannot be read', { volume: volume.metadata.name, error })
    return {}
  })
}

/** Asks again soon while the volume is busy; records an event and throws when it stays so, or for any other error. */
function notDeleted({ clock, recorder }: JobDeps, volume: PersistentVolume, error: unknown, since: number): Looked {
  if (isBusy(error) && clock.now() - since < quietMs) return { again: clock.now() + busyMs }
  const { message } = asVolumeError(error)
  recorder.event({ kind: 'PersistentVolume', object: volume }, 'Warning', 'VolumeFailedDelete', message)
  throw error
}

/** Attached, staged or published somewhere: true for a moment after every pod's end. */
function isBusy(error: unknown): boolean {
  return error instanceof VolumeError && (error.code === 'StillAttached' || error.code === 'FAILED_PRECONDITION')
}
