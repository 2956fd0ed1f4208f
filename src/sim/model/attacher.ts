// Who answers VolumeAttachments? A driver's attacher in miniature: finalizer first, then the storage, then the status;
// on removal the storage first, then the finalizer (rules SIDE-26 … SIDE-28).
import { hasFinalizer, withoutFinalizer } from '../../api/meta.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { VolumeAttachment } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { createInformers } from '../../client/informer.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ModelStorage } from './storage.ts'

export interface ModelAttacherDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly storage: ModelStorage
  readonly driver: string
  /** The storage's answer to a call: `fail` before doing it, `lose` after doing it. */
  weather(): 'fail' | 'lose' | 'fine'
  /** Looks at the cluster just before a volume is taken from a node. */
  beforeUnpublish(attachment: VolumeAttachment, handle: string): Promise<void>
}

const finalizer = 'external-attacher/model-hawser-dev'

export function createModelAttacher(deps: ModelAttacherDeps): AsyncDisposable {
  const { clock, driver } = deps
  const informers = createInformers(deps)
  const attachments = informers.of('VolumeAttachment')
  const volumes = informers.of('PersistentVolume')
  const handleOf = (attachment: VolumeAttachment) =>
    volumes.get(attachment.spec.source.persistentVolumeName ?? '')?.spec?.csi?.volumeHandle

  const loop = createKeyLoop<string>({
    name: 'model-attacher',
    clock,
    workers: 8,
    backoff: { firstMs: 1_000, capMs: 60_000 },
    async look(name, signal) {
      await volumes.synced
      const attachment = attachments.get(name)
      const handle = attachment && handleOf(attachment)
      if (!attachment || handle === undefined || attachment.spec.attacher !== driver) return
      if (attachment.metadata.deletionTimestamp) await detach(deps, attachment, handle, signal)
      else if (!attachment.status?.attached) await attach(deps, attachment, handle, signal)
    },
  })
  attachments.subscribe(({ key }) => loop.wake(key))
  volumes.subscribe(({ kind }) => {
    if (kind === 'added') for (const name of attachments.items.keys()) loop.wake(name)
  })
  return {
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]()
      await informers[Symbol.asyncDispose]()
    },
  }
}

async function attach(
  { client, clock, storage, weather, random }: ModelAttacherDeps,
  attachment: VolumeAttachment,
  handle: string,
  signal: AbortSignal,
) {
  const { name } = attachment.metadata
  if (!hasFinalizer(attachment, finalizer)) {
    const finalizers = [...(attachment.metadata.finalizers ?? []), finalizer]
    const { resourceVersion } = attachment.metadata
    const body = { metadata: { finalizers, resourceVersion } }
    await client.patch('VolumeAttachment', { name }, { type: 'merge', body }, {}, signal)
  }
  await clock.sleep(random.below(300), signal)
  const answer = weather()
  if (answer !== 'fail') storage.publish(handle, attachment.spec.nodeName)
  const status =
    answer === 'fine'
      ? { attached: true, attachError: null }
      : { attachError: { message: `simulated: the storage said no`, time: timestamp(clock.now()) } }
  await client.patch(
    'VolumeAttachment',
    { name },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
    signal,
  )
  if (answer !== 'fine') throw new Error('simulated: the storage said no')
}

async function detach(
  { client, clock, storage, weather, random, beforeUnpublish }: ModelAttacherDeps,
  attachment: VolumeAttachment,
  handle: string,
  signal: AbortSignal,
) {
  if (!hasFinalizer(attachment, finalizer)) return
  const { name } = attachment.metadata
  await clock.sleep(random.below(300), signal)
  const answer = weather()
  if (answer !== 'fail') {
    await beforeUnpublish(attachment, handle)
    storage.unpublish(handle, attachment.spec.nodeName)
  }
  if (answer !== 'fine') {
    const detachError = { message: 'simulated: the storage said no', time: timestamp(clock.now()) }
    const body = { status: { detachError } }
    await client.patch('VolumeAttachment', { name }, { type: 'merge', body }, { subresource: 'status' }, signal)
    throw new Error('simulated: the storage said no')
  }
  try {
    await client.update('VolumeAttachment', withoutFinalizer(attachment, finalizer), {}, signal)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
