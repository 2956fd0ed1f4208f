// How does the control plane attach a CSI volume? It writes a VolumeAttachment and hears from it what the driver's
// attacher did: no polling, the attachment's own change is the answer (rules CSI-8, CSI-20 … CSI-23).
//
// 1. The object's name follows from volume, driver and node, so that a restart repeats the same request (decision 8).
// 2. The wait ends when the attacher reports attached or an error, when the object is removed, or after two minutes.
// 3. The cache may lag behind: an object found in it is read live once, and its absence counts only from there on. (Without
//    this the simulator let a pod mount a volume whose attachment was being removed.)
import { createHash } from 'node:crypto'
import { isAlreadyExists, isNotFound, StatusError } from '../../api/status-error.ts'
import type { CSIPersistentVolumeSource, VolumeAttachment } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { Informer } from '../../client/informer.ts'
import { versionOf } from '../../client/versions.ts'
import type { Clock } from '../../clock/clock.ts'
import { DeadlineExceeded } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused, VolumeError } from '../../volume/effect.ts'
import { isMigratedInline } from '../../volume/migration.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ClusterPluginDeps } from '../shared/deps.ts'
import type { AwaitVerdict } from './attachment-verdicts.ts'
import { attachVerdict, createVerdicts, detachVerdict } from './attachment-verdicts.ts'

export type CsiAttachDeps = Pick<ClusterPluginDeps, 'client' | 'informers' | 'clock'>

/** How long the driver's attacher may take before we call the outcome unknown (CSI-21, CSI-22). */
const attachTimeoutMs = 120_000
const createTimeoutMs = 30_000
const never = new AbortController().signal

/** The attaching half of the CSI plugin's cluster side. */
export function createCsiAttachment(deps: CsiAttachDeps): Pick<ClusterPlugin, 'attacher' | 'attacherByName'> {
  const drivers = deps.informers.of('CSIDriver')
  // A driver without an object wants attaching; one that says no is used without (CSI-20).
  const attachRequired = (driver: string) => drivers.get(driver)?.spec?.attachRequired !== false
  const attacher = createAttacher(deps, attachRequired)
  return {
    attacher(spec) {
      const source = persistentSource(spec)
      return source && attachRequired(source.driver) ? attacher : undefined
    },
    attacherByName: () => attacher,
  }
}

/** The same for the same volume, driver and node, so that a restart finds its object again (CSI-8). */
export function attachmentName(volumeHandle: string, driver: string, node: string): string {
  return `csi-${createHash('sha256').update(`${volumeHandle}${driver}${node}`).digest('hex')}`
}

/** The CSI source of a persistent (or migrated inline) volume; inline ephemeral volumes are never attached. */
export function persistentSource(spec: VolumeSpec): CSIPersistentVolumeSource | undefined {
  if (!hasSource(spec, 'csi')) return undefined
  const { value } = spec.source
  return 'volumeHandle' in value ? value : undefined
}

interface AttacherParts {
  readonly client: Client
  readonly clock: Clock
  readonly attachments: Informer<VolumeAttachment>
  readonly verdict: AwaitVerdict
}

function createAttacher(
  { client, informers, clock }: CsiAttachDeps,
  attachRequired: (driver: string) => boolean,
): Attacher {
  const attachments = informers.of('VolumeAttachment')
  const parts = { client, clock, attachments, verdict: createVerdicts(attachments) }
  return {
    async attach({ spec, node }, signal) {
      const source = persistentSource(spec)
      if (!source) throw refused('NotAttachable', 'an inline CSI volume is not attached', 'untried')
      const { driver, volumeHandle } = source
      await attach(parts, { spec, node, driver, volumeHandle }, signal)
      return ''
    },
    async detach({ volumeName, node }, signal) {
      // Split at the first `^`: a driver's name cannot contain one, but a volume handle can (WART-18).
      const [, driver, volumeHandle] = /^([^^]+)\^(.+)$/s.exec(volumeName) ?? []
      if (!driver || !volumeHandle)
        throw refused('NotAVolumeName', `volume name ${volumeName} is not <driver>^<handle>`, 'untried')
      await detach(parts, { node, driver, volumeHandle }, signal)
    },
    verify: ({ specs, node }, signal) =>
      Promise.all(
        specs.map(async (spec) => {
          const source = persistentSource(spec)
          if (!source || !attachRequired(source.driver)) return true
          const name = attachmentName(source.volumeHandle, source.driver, node)
          const known = attachments.get(name) ?? (await getIfExists(client, 'VolumeAttachment', { name }, signal))
          return known?.status?.attached === true
        }),
      ),
  }
}

interface Placement {
  readonly node: string
  readonly driver: string
  readonly volumeHandle: string
}

async function attach(
  parts: AttacherParts,
  request: Placement & { readonly spec: VolumeSpec },
  signal: AbortSignal,
): Promise<void> {
  const { spec, driver, volumeHandle, node } = request
  const name = attachmentName(volumeHandle, driver, node)
  const late = `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${volumeHandle}`
  await limited(parts.clock, late, signal, async (limit) => {
    await ensurePresent(parts, attachment(name, spec, driver, node), limit)
    await parts.verdict(name, attachVerdict, limit)
  })
}

async function detach(parts: AttacherParts, request: Placement, signal: AbortSignal): Promise<void> {
  const { driver, volumeHandle, node } = request
  const name = attachmentName(volumeHandle, driver, node)
  const late = `timed out waiting for external-attacher of ${driver} CSI driver to detach volume ${volumeHandle}`
  await limited(parts.clock, late, signal, async (limit) => {
    const held = await removeOnce(parts.client, name, limit)
    if (!held) return
    await caughtUp(parts, held, limit)
    await parts.verdict(name, detachVerdict, limit)
  })
}

/** Runs the work with a time limit; late, nobody knows what the driver's attacher did. */
async function limited(
  clock: Clock,
  late: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  using deadline = clock.deadline(attachTimeoutMs, signal)
  try {
    await work(deadline.signal)
  } catch (error) {
    if (!(error instanceof DeadlineExceeded)) throw error
    throw refused('AttacherSilent', late, 'unknown', [], error)
  }
}

/** The object exists, and the cache is not older than that: an object on its way out must not pass for one that stays. */
async function ensurePresent(parts: AttacherParts, object: VolumeAttachment, signal: AbortSignal): Promise<void> {
  const { client, clock, attachments } = parts
  const { name } = object.metadata
  const known = attachments.get(name) && (await getIfExists(client, 'VolumeAttachment', { name }, signal))
  if (known) return caughtUp(parts, known, signal)
  // Not under the caller's signal: who gives up waiting will remove the object next, and a creation still under way
  // could then arrive after its own removal.
  using deadline = clock.deadline(createTimeoutMs, never)
  const made =
    (await createOnce(client, object, deadline.signal)) ??
    (await getIfExists(client, 'VolumeAttachment', { name }, signal))
  if (made) return caughtUp(parts, made, signal)
  throw refused('AttachmentRemoved', 'volume attachment has just been deleted', 'unknown')
}

function caughtUp({ attachments }: AttacherParts, object: VolumeAttachment, signal: AbortSignal): Promise<void> {
  return attachments.reached(versionOf(object), signal)
}

function attachment(name: string, spec: VolumeSpec, driver: string, node: string): VolumeAttachment {
  const inline = isMigratedInline(spec) ? spec.persistentVolume?.spec : undefined
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name },
    spec: {
      attacher: driver,
      nodeName: node,
      source: inline ? { inlineVolumeSpec: inline } : { persistentVolumeName: spec.name },
    },
    status: { attached: false },
  }
}

/** What was made, undefined if it was there already. */
async function createOnce(
  client: Client,
  object: VolumeAttachment,
  signal: AbortSignal,
): Promise<VolumeAttachment | undefined> {
  try {
    return await client.create('VolumeAttachment', object, {}, signal)
  } catch (error) {
    if (isAlreadyExists(error)) return undefined
    throw asked(error)
  }
}

/** The object as long as somebody holds it, undefined when it is gone. */
async function removeOnce(client: Client, name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined> {
  try {
    return await client.remove('VolumeAttachment', { name }, {}, signal)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw asked(error)
  }
}

/** A refusal by the API (4xx) changed nothing; anything else may have been carried out. */
function asked(error: unknown): VolumeError {
  const isRefusal = error instanceof StatusError && error.code >= 400 && error.code < 500
  const message = errorText(error)
  return new VolumeError('AttachmentNotWritten', message, { effect: isRefusal ? 'untried' : 'unknown', cause: error })
}
