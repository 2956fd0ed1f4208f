// Who answers a VolumeAttachment? This job calls ControllerPublish and ControllerUnpublish and writes what the driver
// said (SIDE-25 … SIDE-30). Finalizers stand before the first call, so that nothing attached is ever forgotten.
import type { PersistentVolume, VolumeAttachment } from '../../api/generated/types.ts'
import {
  annotation,
  hasFinalizer,
  isDeleting,
  refKey,
  withAnnotations,
  withFinalizer,
  withoutFinalizer,
} from '../../api/meta.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import { createObjectLoop, objectKey } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { CsiError, statusCodes } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { controllerCapability } from '../values.ts'
import { isDisputed, nodeIdAnnotation, planAttachment, planPublish, planUnpublish } from './attach-plan.ts'
import type { AttachmentAction, TargetFacts } from './attach-plan.ts'
import { createJobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import type { JobLoop } from './job-loop.ts'
import { addFinalizer, change, dropFinalizer, jobBackoff, readSecret, workers } from './job.ts'
import type { JobDeps } from './job.ts'

const auditMs = 60_000
const messageLimit = 1_024

type AttachmentKey = ObjectKey<'VolumeAttachment'>

export function createAttacher(deps: JobDeps): AsyncDisposable {
  const { driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const attachments = informers.of('VolumeAttachment')
  const canPublish = deps.plugin.has('CONTROLLER_SERVICE') && deps.controller.has('PUBLISH_UNPUBLISH_VOLUME')
  const disputed = new Set<string>() // by name
  const finalizer = attacherFinalizer(driver.name)
  const history = createJobHistory(deps, 'attach')
  const loop = stack.use(
    createLoopWithHistory<AttachmentKey>(deps, {
      ...{ name: 'attacher', workers, history, failure: 'attachment failed' },
      async sync(key, signal) {
        const attachment = attachments.get(refKey(key))
        if (!attachment || !isOwned(deps, attachment)) return
        const facts = { attachment, driver: driver.name, finalizer, canPublish, isDisputed: disputed.delete(key.name) }
        const action = planAttachment(facts)
        const perform = () => carryOut(deps, attachment, finalizer, action, signal)
        const call = calls[action]
        await (call === undefined ? perform() : history.calling(key, call, perform))
      },
      needs(key) {
        const spec = attachments.get(refKey(key))?.spec
        const volume = spec?.source.persistentVolumeName
        return [
          ...(volume ? [{ kind: 'PersistentVolume' as const, name: volume }] : []),
          ...(spec ? [{ kind: 'CSINode' as const, name: spec.nodeName }] : []),
        ]
      },
    }),
  )
  followAttachments(deps, stack, loop, finalizer)
  if (canPublish && deps.controller.has('LIST_VOLUMES_PUBLISHED_NODES')) {
    stack.use(
      createAudit(deps, (attachment) => {
        if (!isOwned(deps, attachment)) return
        disputed.add(attachment.metadata.name)
        loop.wake(objectKey('VolumeAttachment', attachment))
      }),
    )
  }
  return stack
}

/** An attachment whose volume is gone, or written in it, goes by its node. */
function isOwned({ owns, informers }: JobDeps, { spec }: VolumeAttachment): boolean {
  const volume = informers.of('PersistentVolume').get(spec.source.persistentVolumeName ?? '')
  return volume ? owns().volume(volume) : owns().claim(spec.nodeName)
}

const calls: Readonly<Partial<Record<AttachmentAction, string>>> = {
  publish: 'ControllerPublishVolume',
  unpublish: 'ControllerUnpublishVolume',
}

/** Wakes attachments, and releases volumes that are being deleted once no attachment names them (SIDE-30). */
function followAttachments(
  deps: JobDeps,
  stack: AsyncDisposableStack,
  loop: JobLoop<AttachmentKey>,
  finalizer: string,
): void {
  const { clock, driver, informers } = deps
  const attachments = informers.of('VolumeAttachment')
  const volumes = informers.of('PersistentVolume')
  const attachmentsOf = attachments.index(({ spec }) =>
    spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : [],
  )
  const isHeld = (volume: PersistentVolume) => isDeleting(volume) && hasFinalizer(volume, finalizer)
  const volumeLoop = stack.use(
    createObjectLoop<ObjectKey<'PersistentVolume'>>({
      name: `attacher volumes ${driver.name}`,
      clock,
      workers: 4,
      backoff: jobBackoff,
      async look({ name }, signal) {
        const volume = volumes.get(name)
        if (!volume || !isHeld(volume) || attachmentsOf.has(name)) return
        await dropFinalizer(deps.client, 'PersistentVolume', volume, finalizer, signal)
      },
    }),
  )
  stack.use(
    attachments.subscribe(({ object, previous }) => {
      const { spec } = object ?? previous
      if (spec.attacher !== driver.name) return
      if (!object) volumeLoop.wake({ kind: 'PersistentVolume', name: spec.source.persistentVolumeName ?? '' })
      // Our own words about errors are no reason to try again at once (SIDE-27).
      else if (!previous || !onlyErrorsChanged(object, previous)) loop.wake(objectKey('VolumeAttachment', object))
    }),
  )
  stack.use(
    volumes.subscribe(
      ({ object }) => object && isHeld(object) && volumeLoop.wake(objectKey('PersistentVolume', object)),
    ),
  )
}

/** Every character outside [a-zA-Z0-9-] becomes a dash, and the name may not end in one (SIDE-26). */
export function attacherFinalizer(driver: string): string {
  const name = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  return `external-attacher/${name.endsWith('-') ? `${name}X` : name}`
}

async function carryOut(
  deps: JobDeps,
  attachment: VolumeAttachment,
  finalizer: string,
  action: AttachmentAction,
  signal: AbortSignal,
): Promise<void> {
  switch (action) {
    case 'nothing':
      return
    case 'markAttached':
      await writeStatus(deps.client, attachment, { attached: true }, signal)
      return
    case 'publish':
      return savingError(deps, attachment, 'attachError', () => publish(deps, attachment, finalizer, signal), signal)
    case 'unpublish':
      return savingError(deps, attachment, 'detachError', () => unpublish(deps, attachment, finalizer, signal), signal)
    default:
      return action satisfies never
  }
}

/** The volume first, then the attachment, then the driver: each finalizer stands before the call. */
async function publish(
  deps: JobDeps,
  attachment: VolumeAttachment,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, driver } = deps
  const plan = planPublish(await targetFacts(deps, attachment, signal), finalizer)
  if (plan.hold) await addFinalizer(client, 'PersistentVolume', plan.hold, finalizer, signal)
  if (plan.kind === 'refused') throw plan.error
  const { csi, nodeId } = plan
  const request = {
    volumeId: csi.volumeHandle,
    nodeId,
    capability: controllerCapability(plan.spec, deps.controller.has('SINGLE_NODE_MULTI_WRITER')),
    readOnly: deps.controller.has('PUBLISH_READONLY') && csi.readOnly === true,
    volumeContext: csi.volumeAttributes ?? {},
    secrets: await readSecret(client, csi.controllerPublishSecretRef, signal),
  }
  const mark = (each: VolumeAttachment) =>
    isDeleting(each) || (hasFinalizer(each, finalizer) && annotation(each, nodeIdAnnotation) === nodeId)
      ? undefined
      : withAnnotations(withFinalizer(each, finalizer), { [nodeIdAnnotation]: nodeId })
  const marked = await change(client, 'VolumeAttachment', attachment, mark, {}, signal)
  if (!marked || isDeleting(marked)) return
  const context = await driver.controller(timeouts.attacher).attach(request, signal)
  const status = { attached: true, ...(Object.keys(context).length > 0 && { attachmentMetadata: context }) }
  await writeStatus(client, marked, status, signal)
  deps.log.info('volume attached', { driver: driver.name, volume: csi.volumeHandle, node: attachment.spec.nodeName })
}

async function unpublish(
  deps: JobDeps,
  attachment: VolumeAttachment,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, driver } = deps
  const plan = planUnpublish(await targetFacts(deps, attachment, signal))
  if (plan.kind === 'refused') throw plan.error
  const { csi, nodeId } = plan
  const secrets = await readSecret(client, csi.controllerPublishSecretRef, signal)
  await driver.controller(timeouts.attacher).detach({ volumeId: csi.volumeHandle, nodeId, secrets }, signal)
  deps.log.info('volume detached', { driver: driver.name, volume: csi.volumeHandle, node: attachment.spec.nodeName })
  // The finalizer goes first: a watcher that waits for the object to vanish need not wait for a second write.
  const release = (each: VolumeAttachment) => withoutFinalizer(each, finalizer)
  const left = await change(client, 'VolumeAttachment', attachment, release, {}, signal)
  if (left && (left.metadata.finalizers ?? []).length > 0) await writeStatus(client, left, { attached: false }, signal)
}

async function targetFacts(deps: JobDeps, attachment: VolumeAttachment, signal: AbortSignal): Promise<TargetFacts> {
  const { client, driver, informers } = deps
  const { persistentVolumeName: name, inlineVolumeSpec } = attachment.spec.source
  const volume =
    inlineVolumeSpec || !name
      ? undefined
      : (informers.of('PersistentVolume').get(name) ??
        (await getIfExists(client, 'PersistentVolume', { name }, signal)))
  return { attachment, volume, nodeId: nodeIdOf(deps, attachment.spec.nodeName), driver: driver.name }
}

function nodeIdOf({ informers, driver }: JobDeps, nodeName: string): string | undefined {
  return informers
    .of('CSINode')
    .get(nodeName)
    ?.spec.drivers.find(({ name }) => name === driver.name)?.nodeID
}

async function writeStatus(
  client: JobDeps['client'],
  attachment: VolumeAttachment,
  status: NonNullable<VolumeAttachment['status']>,
  signal: AbortSignal,
) {
  return change(
    client,
    'VolumeAttachment',
    attachment,
    (each) => ({ ...each, status }),
    { subresource: 'status' },
    signal,
  )
}

async function savingError(
  deps: JobDeps,
  attachment: VolumeAttachment,
  field: 'attachError' | 'detachError',
  call: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await call()
  } catch (error) {
    if (!signal.aborted) await saveError(deps, attachment, field, error, signal)
    throw error
  }
}

async function saveError(
  deps: JobDeps,
  attachment: VolumeAttachment,
  field: 'attachError' | 'detachError',
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  const message = asVolumeError(error).message.slice(0, messageLimit)
  const code = error instanceof CsiError ? statusCodes[error.status] : undefined
  const said = { message, time: timestamp(deps.clock.now()), ...(code !== undefined && { errorCode: code }) }
  const apply = (each: VolumeAttachment) => ({ ...each, status: { attached: false, ...each.status, [field]: said } })
  await change(deps.client, 'VolumeAttachment', attachment, apply, { subresource: 'status' }, signal).catch(
    (cause: unknown) =>
      deps.log.warn('attachment error not written', { attachment: attachment.metadata.name, error: cause }),
  )
}

function onlyErrorsChanged(now: VolumeAttachment, before: VolumeAttachment): boolean {
  const plain = ({ metadata, spec, status }: VolumeAttachment) =>
    JSON.stringify([
      metadata.deletionTimestamp,
      metadata.finalizers,
      metadata.annotations,
      metadata.labels,
      spec,
      status?.attached,
      status?.attachmentMetadata,
    ])
  return plain(now) === plain(before)
}

/** Once a minute the storage's own list is compared with what we believe (SIDE-29). */
function createAudit(deps: JobDeps, onDisputed: (attachment: VolumeAttachment) => void): AsyncDisposable {
  const { clock, driver, log } = deps
  const loop = createKeyLoop<'audit'>({
    name: `attacher audit ${driver.name}`,
    clock,
    workers: 1,
    backoff: { firstMs: auditMs, capMs: auditMs },
    async look(_key, signal) {
      if (deps.active()) await compare(deps, onDisputed, signal)
      return { again: clock.now() + auditMs }
    },
    onError: (_key, error) => log.warn('published volumes cannot be listed', { driver: driver.name, error }),
  })
  loop.wakeAt('audit', clock.now() + auditMs)
  return loop
}

async function compare(
  deps: JobDeps,
  onDisputed: (attachment: VolumeAttachment) => void,
  signal: AbortSignal,
): Promise<void> {
  const { driver, informers } = deps
  const attachments = informers.of('VolumeAttachment')
  const before = new Map(attachments.items)
  const listed = new Map(
    (await driver.controller(timeouts.attacher).listVolumes(signal)).map((each) => [each.volume.volumeId, each]),
  )
  for (const [name, attachment] of before) {
    // An attachment that changed while the driver was listing is no evidence.
    if (attachment.spec.attacher !== driver.name || isDeleting(attachment) || attachments.get(name) !== attachment)
      continue
    const volume = informers.of('PersistentVolume').get(attachment.spec.source.persistentVolumeName ?? '')
    const published = listed.get(volume?.spec?.csi?.volumeHandle ?? '')?.publishedNodeIds
    if (isDisputed(attachment, published, nodeIdOf(deps, attachment.spec.nodeName))) onDisputed(attachment)
  }
}
