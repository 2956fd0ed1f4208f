// Who answers a VolumeAttachment? This job calls ControllerPublish and ControllerUnpublish and writes what the driver
// said (SIDE-25 … SIDE-30). Finalizers stand before the first call, so that nothing attached is ever forgotten.
import {
  annotation,
  hasFinalizer,
  isDeleting,
  withAnnotations,
  withFinalizer,
  withoutFinalizer,
} from '../../api/meta.ts'
import type { PersistentVolumeSpec, VolumeAttachment } from '../../api/types.ts'
import { timestamp } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { CsiError, statusCodes } from '../codes.ts'
import { timeouts } from '../deadline.ts'
import { controllerAccessMode } from '../values.ts'
import type { Capability } from '../values.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { addFinalizer, change, dropFinalizer, getOrNothing, jobBackoff, readSecret, refused, workers } from './job.ts'
import type { JobDeps } from './job.ts'

const nodeIdAnnotation = 'csi.alpha.kubernetes.io/node-id'
const auditMs = 60_000
const messageLimit = 1_024

export function createAttacher(deps: JobDeps): AsyncDisposable {
  const { clock, log, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const attachments = informers.of('VolumeAttachment')
  const volumes = informers.of('PersistentVolume')
  const attachmentsOf = attachments.index(({ spec }) =>
    spec.source.persistentVolumeName ? [spec.source.persistentVolumeName] : [],
  )
  const canPublish = deps.plugin.has('CONTROLLER_SERVICE') && deps.controller.has('PUBLISH_UNPUBLISH_VOLUME')
  const forced = new Set<string>() // attachments that the storage sees differently (SIDE-29)
  const finalizer = attacherFinalizer(driver.name)
  const story = createJobStory(deps, 'attach')
  const objectsOf = (name: string) => [reference('VolumeAttachment', name)]

  const look = async (name: string, signal: AbortSignal) => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const attachment = attachments.get(name)
    if (!attachment || attachment.spec.attacher !== driver.name) return
    if (!canPublish) return trivially(deps, attachment, signal)
    const again = forced.delete(name)
    if (!isDeleting(attachment)) {
      if (attachment.status?.attached === true && !again) return
      const publish = () => attach(deps, attachment, finalizer, signal)
      await story.calling(objectsOf(name), name, 'ControllerPublishVolume', publish)
    } else if (hasFinalizer(attachment, finalizer)) {
      const unpublish = () => detach(deps, attachment, finalizer, signal)
      await story.calling(objectsOf(name), name, 'ControllerUnpublishVolume', unpublish)
    }
  }
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `attacher ${driver.name}`,
      clock,
      workers,
      backoff: jobBackoff,
      look,
      onError: (name, error, retryAt) =>
        log.warn('attachment failed', { driver: driver.name, attachment: name, error, retryAt }),
    }),
  )
  const volumeLoop = stack.use(
    createKeyLoop<string>({
      name: `attacher volumes ${driver.name}`,
      clock,
      workers: 4,
      backoff: jobBackoff,
      // SIDE-30: a volume that is going may go once nothing names it.
      async look(name, signal) {
        const volume = volumes.get(name)
        if (!volume || !isDeleting(volume) || !hasFinalizer(volume, finalizer) || attachmentsOf.has(name)) return
        await dropFinalizer(deps.client, 'PersistentVolume', volume, finalizer, signal)
      },
    }),
  )
  stack.use(
    attachments.subscribe(({ object, previous, key }) => {
      const { spec } = object ?? previous
      if (spec.attacher !== driver.name) return
      if (!object) volumeLoop.wake(spec.source.persistentVolumeName ?? '')
      // Our own words about errors are no reason to try again at once (SIDE-27).
      else if (!previous || !onlyErrorsChanged(object, previous)) loop.wake(key)
    }),
  )
  stack.use(
    volumes.subscribe(
      ({ object, key }) => object && isDeleting(object) && hasFinalizer(object, finalizer) && volumeLoop.wake(key),
    ),
  )
  if (canPublish && deps.controller.has('LIST_VOLUMES_PUBLISHED_NODES')) {
    stack.use(createAudit(deps, (name) => (forced.add(name), loop.wake(name))))
  }
  return stack
}

/** SIDE-26: every character outside [a-zA-Z0-9-] becomes a dash, and the name may not end in one. */
export function attacherFinalizer(driver: string): string {
  const name = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  return `external-attacher/${name.endsWith('-') ? `${name}X` : name}`
}

/** SIDE-25: a driver without ControllerPublish has nothing to attach. */
async function trivially({ client }: JobDeps, attachment: VolumeAttachment, signal: AbortSignal): Promise<void> {
  if (attachment.status?.attached === true || isDeleting(attachment)) return
  await writeStatus(client, attachment, { attached: true }, signal)
}

async function attach(
  deps: JobDeps,
  attachment: VolumeAttachment,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, driver } = deps
  try {
    const spec = await sourceSpec(deps, attachment, finalizer, signal)
    const csi = spec.csi
    if (!csi) throw refused('NotCsi', `the volume of ${attachment.metadata.name} is not a CSI volume`)
    const nodeId = nodeIdOf(deps, attachment.spec.nodeName)
    if (nodeId === undefined) {
      throw refused(
        'NodeUnknown',
        `node "${attachment.spec.nodeName}" has no NodeID annotation and no CSINode entry for ${driver.name}`,
      )
    }
    const request = {
      volumeId: csi.volumeHandle,
      nodeId,
      capability: capabilityOf(spec, deps.controller.has('SINGLE_NODE_MULTI_WRITER')),
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
    await writeStatus(
      client,
      marked,
      { attached: true, ...(Object.keys(context).length > 0 && { attachmentMetadata: context }) },
      signal,
    )
    deps.log.info('volume attached', { driver: driver.name, volume: csi.volumeHandle, node: attachment.spec.nodeName })
  } catch (error) {
    await saveError(deps, attachment, 'attachError', error, signal)
    throw error
  }
}

async function detach(
  deps: JobDeps,
  attachment: VolumeAttachment,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, driver } = deps
  try {
    const spec = await sourceSpec(deps, attachment, undefined, signal)
    const csi = spec.csi
    if (!csi) throw refused('NotCsi', `the volume of ${attachment.metadata.name} is not a CSI volume`)
    const nodeId = nodeIdOf(deps, attachment.spec.nodeName) ?? annotation(attachment, nodeIdAnnotation)
    if (nodeId === undefined) throw refused('NodeUnknown', `no node id is known for node ${attachment.spec.nodeName}`)
    const secrets = await readSecret(client, csi.controllerPublishSecretRef, signal)
    await driver.controller(timeouts.attacher).detach({ volumeId: csi.volumeHandle, nodeId, secrets }, signal)
    deps.log.info('volume detached', { driver: driver.name, volume: csi.volumeHandle, node: attachment.spec.nodeName })
    // The finalizer goes first: whoever waits for the object to vanish need not wait for a second write.
    const left = await change(
      client,
      'VolumeAttachment',
      attachment,
      (each) => withoutFinalizer(each, finalizer),
      {},
      signal,
    )
    if (left && (left.metadata.finalizers ?? []).length > 0)
      await writeStatus(client, left, { attached: false }, signal)
  } catch (error) {
    await saveError(deps, attachment, 'detachError', error, signal)
    throw error
  }
}

/** The volume's spec; for an attach the PersistentVolume is held by our finalizer first. */
async function sourceSpec(
  deps: JobDeps,
  attachment: VolumeAttachment,
  hold: string | undefined,
  signal: AbortSignal,
): Promise<PersistentVolumeSpec> {
  const { persistentVolumeName: name, inlineVolumeSpec } = attachment.spec.source
  if (inlineVolumeSpec) return inlineVolumeSpec
  if (!name) throw refused('NoSource', `attachment ${attachment.metadata.name} names no volume`)
  const known = deps.informers.of('PersistentVolume').get(name)
  const volume = known ?? (await getOrNothing(deps.client, 'PersistentVolume', { name }, signal))
  if (!volume?.spec) throw refused('VolumeMissing', `persistentvolume "${name}" not found`)
  if (hold !== undefined && !hasFinalizer(volume, hold)) {
    if (isDeleting(volume)) throw refused('VolumeDeleting', `PersistentVolume "${name}" is marked for deletion`)
    await addFinalizer(deps.client, 'PersistentVolume', volume, hold, signal)
  } else if (hold !== undefined && isDeleting(volume)) {
    throw refused('VolumeDeleting', `PersistentVolume "${name}" is marked for deletion`)
  }
  return volume.spec
}

function nodeIdOf({ informers, driver }: JobDeps, nodeName: string): string | undefined {
  return informers
    .of('CSINode')
    .get(nodeName)
    ?.spec.drivers.find(({ name }) => name === driver.name)?.nodeID
}

export function capabilityOf(spec: PersistentVolumeSpec, multiWriter: boolean): Capability {
  const mode = controllerAccessMode(spec.accessModes ?? [], multiWriter)
  if (spec.volumeMode === 'Block') return { access: { kind: 'block' }, mode }
  return { mode, access: { kind: 'mount', fsType: spec.csi?.fsType ?? '', mountFlags: spec.mountOptions ?? [] } }
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

async function saveError(
  deps: JobDeps,
  attachment: VolumeAttachment,
  field: 'attachError' | 'detachError',
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return
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

/** SIDE-29: once a minute the storage's own list is compared with what we believe. */
function createAudit(deps: JobDeps, force: (attachment: string) => void): AsyncDisposable {
  const { clock, driver, informers, log } = deps
  const attachments = informers.of('VolumeAttachment')
  const loop = createKeyLoop<'audit'>({
    name: `attacher audit ${driver.name}`,
    clock,
    workers: 1,
    backoff: { firstMs: auditMs, capMs: auditMs },
    async look(_key, signal) {
      if (deps.active()) await compare(signal)
      return { again: clock.now() + auditMs }
    },
    onError: (_key, error) => log.warn('published volumes cannot be listed', { driver: driver.name, error }),
  })
  const compare = async (signal: AbortSignal) => {
    const before = new Map(attachments.items)
    const listed = new Map(
      (await driver.controller(timeouts.attacher).listVolumes(signal)).map((each) => [each.volume.volumeId, each]),
    )
    for (const [name, attachment] of before) {
      // What changed while the driver was listing is no evidence.
      if (attachment.spec.attacher !== driver.name || isDeleting(attachment) || attachments.get(name) !== attachment)
        continue
      const handle = informers.of('PersistentVolume').get(attachment.spec.source.persistentVolumeName ?? '')?.spec
        ?.csi?.volumeHandle
      const nodeId = nodeIdOf(deps, attachment.spec.nodeName)
      const volume = handle === undefined ? undefined : listed.get(handle)
      if (!volume || nodeId === undefined) continue
      if ((attachment.status?.attached ?? false) !== volume.publishedNodeIds.includes(nodeId)) force(name)
    }
  }
  loop.wakeAt('audit', clock.now() + auditMs)
  return loop
}
