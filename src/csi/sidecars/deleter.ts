// When is a driver's volume deleted? When its PersistentVolume is released, its policy says Delete and nothing is
// attached any more (SIDE-20, SIDE-21, XPR-10, XPR-11).
import { annotations, finalizers } from '../../api/annotations.ts'
import { annotation, hasFinalizer, isDeleting } from '../../api/meta.ts'
import { isNotFound } from '../../api/status-error.ts'
import { factsOfNode, matchesNodeSelector } from '../../api/node-selector.ts'
import type { PersistentVolume } from '../../api/types.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'
import { timeouts } from '../deadline.ts'
import type { Strings } from '../values.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { addFinalizer, dropFinalizer, jobBackoff, readSecret, refused, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import { resolveSecret, splitParameters } from './parameters.ts'

export interface DeleterOptions {
  /** Set when each node runs its own instance: only volumes that this node reaches are ours. */
  readonly ownNode?: string
  onDeleted?(): void
}

const quietMs = 10_000
const busyMs = 250

export function createDeleter(deps: JobDeps, options: DeleterOptions): AsyncDisposable {
  const { client, clock, log, recorder, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const volumes = informers.of('PersistentVolume')
  const nodes = informers.of('Node')
  const attachments = informers.of('VolumeAttachment')
  const attachedTo = attachments.index(({ spec }) =>
    spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : [],
  )
  const controller = driver.controller(timeouts.provisioner)
  const finalizer = finalizers.externalProvisioner
  const waiting = new Map<string, number>()
  const story = createJobStory(deps, 'delete')
  const objectsOf = (name: string) => [reference('PersistentVolume', name)]

  const isOurs = (volume: PersistentVolume) => {
    const by = annotation(volume, annotations.provisionedBy)
    const owner = annotation(volume, annotations.migratedTo) ?? by ?? volume.spec?.csi?.driver
    if (owner !== driver.name || volume.spec?.csi?.driver !== driver.name) return false
    const required = volume.spec.nodeAffinity?.required
    if (options.ownNode === undefined || !required) return true
    const node = nodes.get(options.ownNode)
    return node !== undefined && matchesNodeSelector(required, factsOfNode(node))
  }
  const look = async (name: string, signal: AbortSignal): Promise<Looked | void> => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const volume = volumes.get(name)
    if (!volume || !isOurs(volume)) return
    const policy = volume.spec?.persistentVolumeReclaimPolicy
    if (hasFinalizer(volume, finalizer) && policy !== 'Delete')
      await dropFinalizer(client, 'PersistentVolume', volume, finalizer, signal)
    if (policy !== 'Delete') return
    if (volume.status?.phase === 'Bound' && !isDeleting(volume)) {
      await addFinalizer(client, 'PersistentVolume', volume, finalizer, signal)
      return
    }
    if (volume.status?.phase !== 'Released' || (isDeleting(volume) && !hasFinalizer(volume, finalizer))) return
    return removeVolume(volume, signal).catch((error: unknown): Looked => {
      // A volume whose pod has just gone is still being taken apart; only a long wait is worth a word.
      const since = waiting.get(name) ?? clock.now()
      waiting.set(name, since)
      if (isBusy(error) && clock.now() - since < quietMs) return { again: clock.now() + busyMs }
      recorder.event(
        { kind: 'PersistentVolume', object: volume },
        'Warning',
        'VolumeFailedDelete',
        asVolumeError(error).message,
      )
      throw error
    })
  }
  const removeVolume = async (volume: PersistentVolume, signal: AbortSignal) => {
    const { name } = volume.metadata
    const attachment = [...attachedTo.get(name)][0]
    if (attachment && deps.controller.has('PUBLISH_UNPUBLISH_VOLUME')) {
      throw refused('StillAttached', `persistentvolume ${name} is still attached to node ${attachment.spec.nodeName}`)
    }
    await controller.deleteVolume(volume.spec?.csi?.volumeHandle ?? '', await deletionSecrets(volume, signal), signal)
    log.info('volume deleted', { driver: driver.name, volume: name })
    const uid = volume.metadata.uid
    await client.remove('PersistentVolume', { name }, uid === undefined ? {} : { uid }, signal).catch(ignoreGone)
    await dropFinalizer(client, 'PersistentVolume', volume, finalizer, signal)
    options.onDeleted?.()
  }
  /** From the volume's annotations, else from its class; a missing secret is the driver's to judge. */
  const deletionSecrets = async (volume: PersistentVolume, signal: AbortSignal): Promise<Strings> => {
    const name = annotation(volume, annotations.deletionSecretName)
    const namespace = annotation(volume, annotations.deletionSecretNamespace)
    const parameters = informers.of('StorageClass').get(volume.spec?.storageClassName ?? '')?.parameters
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
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `deleter ${driver.name}`,
      clock,
      workers,
      backoff: jobBackoff,
      look,
      onError: (name, error, retryAt) =>
        log.warn('volume not deleted', { driver: driver.name, volume: name, error, retryAt }),
    }),
  )
  stack.use(
    volumes.subscribe(({ object, key }) => {
      if (!object) waiting.delete(key)
      if (object?.spec?.csi?.driver === driver.name) loop.wake(key)
    }),
  )
  stack.use(
    attachments.subscribe(({ kind, previous }) => {
      const name = kind === 'removed' ? previous.spec.source.persistentVolumeName : undefined
      // What was refused while it was attached may go now.
      if (name && previous?.spec.attacher === driver.name) loop.wake(name)
    }),
  )
  return stack
}

/** Attached, staged or published somewhere: true for a moment after every pod's end. */
function isBusy(error: unknown): boolean {
  return error instanceof VolumeError && (error.code === 'StillAttached' || error.code === 'FAILED_PRECONDITION')
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error
}
