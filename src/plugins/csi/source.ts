// Which CSI volume does a spec mean, and what does the cluster say about its driver? One reading of the two sources
// (persistent and inline) and of the CSIDriver object, for every file of this plugin.
import { createHash } from 'node:crypto'
import { join } from 'node:path/posix'
import type { PodUid } from '../../api/names.ts'
import { pluginName } from '../../api/names.ts'
import { secretTexts } from '../../api/secret-data.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { CSIDriver, CSIPersistentVolumeSource, CSIVolumeSource, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Cache } from '../../client/informer.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Drivers } from '../../csi/drivers.ts'
import type { Capability, NodeCapabilityName, Strings } from '../../csi/values.ts'
import { nodeAccessMode } from '../../csi/values.ts'
import type { Host } from '../../host/host.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'
import type { ErrorCode } from '../../volume/error-codes.ts'
import { globalDevicePath, globalPluginPath } from '../../volume/paths.ts'
import { contextOption } from '../../volume/selinux.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { hasSource } from '../../volume/spec.ts'
import { attachmentName } from './attach.ts'

export const csiPluginName = pluginName('kubernetes.io/csi')

export interface CsiNodeDeps {
  readonly host: Pick<Host, 'files' | 'mounts' | 'filesystems'>
  readonly client: Client
  readonly clock: Clock
  readonly drivers: Drivers
  /** CSIDriver objects, from an informer. */
  readonly csiDrivers: Pick<Cache<CSIDriver>, 'get'> & Partial<Pick<Cache<CSIDriver>, 'subscribe'>>
  readonly nodeName: string
  /** The node's root directory. */
  readonly root: string
}

export type CsiSource =
  | { readonly lifecycle: 'Persistent'; readonly value: CSIPersistentVolumeSource }
  | { readonly lifecycle: 'Ephemeral'; readonly value: CSIVolumeSource }

export function sourceOf(spec: VolumeSpec): CsiSource {
  if (!hasSource(spec, 'csi')) throw new VolumeError('NotCsi', 'volume source is not CSI', { effect: 'untried' })
  const { value } = spec.source
  return 'volumeHandle' in value ? { lifecycle: 'Persistent', value } : { lifecycle: 'Ephemeral', value }
}

/** An inline volume's id follows from its pod and name (CSI-8). */
export function handleOf(spec: VolumeSpec, pod: PodUid): string {
  const source = sourceOf(spec)
  return source.lifecycle === 'Persistent' ? source.value.volumeHandle : `csi-${sha256(`${pod}${spec.name}`)}`
}

/** Inline volumes are never attached; persistent ones are unless their CSIDriver says no (CSI-20). */
export function attachRequired({ csiDrivers }: Pick<CsiNodeDeps, 'csiDrivers'>, spec: VolumeSpec): boolean {
  const source = sourceOf(spec)
  return source.lifecycle === 'Persistent' && csiDrivers.get(source.value.driver)?.spec?.attachRequired !== false
}

export const attachmentOf = (deps: CsiNodeDeps, driver: string, handle: string) =>
  attachmentName(handle, driver, deps.nodeName)

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Depends on the handle, so two PersistentVolumes with one handle share it (CSI-4, TP-42). */
export function stagingPath(root: string, source: CSIPersistentVolumeSource): string {
  return globalPluginPath(root, csiPluginName, source.driver, sha256(source.volumeHandle), 'globalmount')
}

/** Where the parts of a block volume lie (CSI-6). */
export const blockPaths = (root: string, specName: string) => {
  const own = globalDevicePath(root, csiPluginName, specName)
  return {
    own,
    map: join(own, 'dev'),
    data: join(own, 'data'),
    staging: globalDevicePath(root, csiPluginName, 'staging', specName),
    publish: globalDevicePath(root, csiPluginName, 'publish', specName),
  }
}

/** How the driver is to present the volume. Mount flags are the PersistentVolume's; inline volumes have none (CSI-19, CSI-31, CSI-43). */
export function capabilityOf(
  spec: VolumeSpec,
  capabilities: ReadonlySet<NodeCapabilityName>,
  fsGroup: number | undefined,
  seLinuxLabel?: string,
): Capability {
  const pv = spec.persistentVolume?.spec
  const mode = nodeAccessMode(pv?.accessModes, capabilities.has('SINGLE_NODE_MULTI_WRITER'))
  if (spec.mode === 'Block') return { access: { kind: 'block' }, mode }
  const group = fsGroup !== undefined && capabilities.has('VOLUME_MOUNT_GROUP') ? String(fsGroup) : undefined
  return {
    mode,
    access: {
      kind: 'mount',
      fsType: sourceOf(spec).value.fsType ?? '',
      mountFlags: [...(pv?.mountOptions ?? []), ...(seLinuxLabel ? [contextOption(seLinuxLabel)] : [])],
      ...(group !== undefined && { mountGroup: group }),
    },
  }
}

/** What the controller handed over with the attachment. If it cannot be read now, the mount is tried again (CSI-25). */
export async function publishContext(deps: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<Strings> {
  const source = sourceOf(spec)
  if (source.lifecycle !== 'Persistent' || !attachRequired(deps, spec)) return {}
  const name = attachmentOf(deps, source.value.driver, source.value.volumeHandle)
  const attachment = await passing('AttachmentUnread', () => deps.client.get('VolumeAttachment', { name }, signal))
  return attachment.status?.attachmentMetadata ?? {}
}

/** Asks once whether the volume is attached here; answers the VolumeAttachment's name (CSI-24). */
export async function waitForAttachment(deps: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<string> {
  const source = sourceOf(spec)
  if (source.lifecycle !== 'Persistent' || !attachRequired(deps, spec)) return ''
  const name = attachmentOf(deps, source.value.driver, source.value.volumeHandle)
  const attachment = await passing('AttachmentUnread', () => deps.client.get('VolumeAttachment', { name }, signal))
  if (attachment.metadata.deletionTimestamp) throw notAttached(`volume attachment ${name} is being deleted`)
  if (attachment.status?.attached !== true) {
    const reason = attachment.status?.attachError?.message
    throw notAttached(reason ?? `volume ${source.value.volumeHandle} has not been attached yet`)
  }
  return name
}

/**
 * VM-5: the attacher said that this node takes no more volumes. Only drivers that keep their limit up to date are
 * believed; from others the same code may mean anything.
 */
export async function isExhausted(deps: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<boolean> {
  const source = sourceOf(spec)
  const { nodeAllocatableUpdatePeriodSeconds: period } = deps.csiDrivers.get(source.value.driver)?.spec ?? {}
  if (source.lifecycle !== 'Persistent' || !period) return false
  const name = attachmentOf(deps, source.value.driver, source.value.volumeHandle)
  try {
    const attachment = await deps.client.get('VolumeAttachment', { name }, signal)
    const isFull = attachment.status?.attachError?.errorCode === resourceExhausted
    if (isFull) deps.drivers.tellFull(source.value.driver)
    return isFull
  } catch {
    return false // not known; the wait goes on
  }
}

/** gRPC's RESOURCE_EXHAUSTED. */
const resourceExhausted = 8

/** A missing secret leaves nothing behind: the driver was not called yet (TP-33). */
export async function readSecret(
  client: Client,
  ref: { readonly name?: string; readonly namespace?: string } | undefined,
  field: string,
  signal: AbortSignal,
): Promise<Strings> {
  if (!ref?.name) return {}
  const { name, namespace = '' } = ref
  try {
    const secret = await client.get('Secret', { namespace, name }, signal)
    return secretTexts(secret)
  } catch (cause) {
    const inner = `kubernetes.io/csi: failed to find the secret ${name} in the namespace ${namespace} with error: ${asVolumeError(cause).message}`
    const message = `fetching ${field} ${namespace}/${name} failed: ${inner}`
    throw new VolumeError('SecretUnread', message, { effect: 'untried', cause })
  }
}

/** For what is read before the driver is called: a failure changed nothing. */
export async function passing<T>(code: ErrorCode, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof VolumeError && cause.effect === 'untried') throw cause
    const hint = isNotFound(cause) ? '' : 'kubernetes.io/csi: '
    throw new VolumeError(code, `${hint}${asVolumeError(cause).message}`, { effect: 'untried', cause })
  }
}

export function podIdentity(pod: Pod): { readonly name: string; readonly namespace: string; readonly uid: PodUid } {
  const { name, namespace = '', uid = '' } = pod.metadata
  return { name, namespace, uid: uid as PodUid } // stored pods have a uid
}

function notAttached(message: string): VolumeError {
  return new VolumeError('NotAttached', message, { effect: 'untried' })
}
