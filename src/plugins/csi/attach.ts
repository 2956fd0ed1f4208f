// How does the control plane attach a CSI volume? It writes a VolumeAttachment and hears from it what the driver's
// attacher did: no polling, the attachment's own change is the answer (rules CSI-8, CSI-20 … CSI-23).
//
// 1. The object's name follows from volume, driver and node, so that a restart repeats the same request (decision A.8).
// 2. Only the attacher's word ends the wait: attached, an error, the object's removal, or two minutes.
// 3. The cache may lag behind: an object found in it is read live once, and its absence counts only from there on. (Without
//    this the simulator let a pod mount a volume whose attachment was being removed.)
import { createHash } from 'node:crypto'
import { isAlreadyExists, isNotFound, StatusError } from '../../api/status-error.ts'
import type { CSIPersistentVolumeSource, VolumeAttachment } from '../../api/types.ts'
import type { Client } from '../../client/client.ts'
import type { Informer, Informers } from '../../client/informer.ts'
import { versionOf } from '../../client/versions.ts'
import type { Clock } from '../../clock/clock.ts'
import { DeadlineExceeded } from '../../clock/clock.ts'
import { VolumeError } from '../../volume/effect.ts'
import { isMigratedInline } from '../../volume/migration.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export interface CsiAttachDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
}

/** CSI-21, CSI-22: how long the driver's attacher may take before we call the outcome unknown. */
export const attachTimeoutMs = 120_000
const createTimeoutMs = 30_000
const never = new AbortController().signal

/** The attaching half of the CSI plugin's cluster side. */
export function createCsiAttachment(deps: CsiAttachDeps): Pick<ClusterPlugin, 'attacher' | 'attacherByName'> {
  const drivers = deps.informers.of('CSIDriver')
  const attacher = createAttacher(deps, (driver) => drivers.get(driver)?.spec?.attachRequired !== false)
  return {
    attacher(spec) {
      const source = persistentSource(spec)
      // CSI-20: a driver without an object wants attaching; one that says no is used without.
      return source && drivers.get(source.driver)?.spec?.attachRequired !== false ? attacher : undefined
    },
    attacherByName: () => attacher,
  }
}

/** CSI-8 */
export function attachmentName(volumeHandle: string, driver: string, node: string): string {
  return `csi-${createHash('sha256').update(`${volumeHandle}${driver}${node}`).digest('hex')}`
}

/** The CSI source of a persistent (or migrated inline) volume; inline ephemeral volumes are never attached. */
export function persistentSource(spec: VolumeSpec): CSIPersistentVolumeSource | undefined {
  if (!hasSource(spec, 'csi')) return undefined
  const { value } = spec.source
  return 'volumeHandle' in value ? value : undefined
}

function createAttacher(
  { client, informers, clock }: CsiAttachDeps,
  attachRequired: (driver: string) => boolean,
): Attacher {
  const attachments = informers.of('VolumeAttachment')
  const hear = createListeners(attachments)

  const limited = async (
    late: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    using deadline = clock.deadline(attachTimeoutMs, signal)
    try {
      await work(deadline.signal)
    } catch (error) {
      if (!(error instanceof DeadlineExceeded)) throw error
      throw new VolumeError('AttacherSilent', late, { effect: 'unknown', cause: error })
    }
  }
  const caughtUp = (object: VolumeAttachment, signal: AbortSignal) => attachments.reached(versionOf(object), signal)

  /** The object exists, and the cache is not older than that: an object on its way out must not pass for one that stays. */
  const present = async (name: string, object: VolumeAttachment, signal: AbortSignal): Promise<void> => {
    const known = attachments.get(name) && (await getOrNothing(client, name, signal))
    if (known) return caughtUp(known, signal)
    // Not under the caller's signal: who gives up waiting will remove the object next, and a creation still under way
    // could then arrive after its own removal.
    using deadline = clock.deadline(createTimeoutMs, never)
    const made = (await createOnce(client, object, deadline.signal)) ?? (await getOrNothing(client, name, signal))
    if (made) return caughtUp(made, signal)
    throw new VolumeError('AttachmentRemoved', 'volume attachment has just been deleted', { effect: 'unknown' })
  }
  return {
    async attach({ spec, node }, signal) {
      const source = persistentSource(spec)
      if (!source) throw new VolumeError('NotAttachable', 'an inline CSI volume is not attached', { effect: 'untried' })
      const { driver, volumeHandle } = source
      const name = attachmentName(volumeHandle, driver, node)
      const late = `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${volumeHandle}`
      await limited(late, signal, async (limit) => {
        await present(name, attachment(name, spec, driver, node), limit)
        await hear(name, attachVerdict, limit)
      })
      return ''
    },
    async detach({ volumeName, node }, signal) {
      // At the first mark: a driver's name cannot hold one, a handle can, and must not be attached for ever (WART-18).
      const [, driver, volumeHandle] = /^([^^]+)\^(.+)$/s.exec(volumeName) ?? []
      if (!driver || !volumeHandle) {
        const message = `volume name ${volumeName} is not <driver>^<handle>`
        throw new VolumeError('NotAVolumeName', message, { effect: 'untried' })
      }
      const name = attachmentName(volumeHandle, driver, node)
      const late = `timed out waiting for external-attacher of ${driver} CSI driver to detach volume ${volumeHandle}`
      await limited(late, signal, async (limit) => {
        const held = await removeOnce(client, name, limit)
        if (!held) return
        await caughtUp(held, limit)
        await hear(name, detachVerdict, limit)
      })
    },
    verify: ({ specs, node }, signal) =>
      Promise.all(
        specs.map(async (spec) => {
          const source = persistentSource(spec)
          if (!source || !attachRequired(source.driver)) return true
          const name = attachmentName(source.volumeHandle, source.driver, node)
          const known = attachments.get(name) ?? (await getOrNothing(client, name, signal))
          return known?.status?.attached === true
        }),
      ),
  }
}

/** Settled with a value, settled with an error, or undefined: keep listening. */
type Verdict<T> = (
  now: VolumeAttachment | undefined,
  wasSeen: boolean,
) => { readonly value: T } | { readonly error: VolumeError } | undefined

/** CSI-21. Not there yet means the cache lags behind our own write; gone after it was there means someone removed it. */
const attachVerdict: Verdict<void> = (now, wasSeen) => {
  if (!now) return wasSeen ? failure('AttachmentRemoved', 'volume attachment has been deleted', 'unknown') : undefined
  if (now.metadata.deletionTimestamp) {
    return failure('AttachmentRemoved', 'volume attachment is being deleted', 'unknown')
  }
  if (now.status?.attached) return { value: undefined }
  const error = now.status?.attachError
  return error ? failure('AttachFailed', error.message ?? '', 'unknown') : undefined
}

/** CSI-22 */
const detachVerdict: Verdict<void> = (now) => {
  if (!now || !now.metadata.deletionTimestamp) return now ? undefined : { value: undefined }
  const error = now.status?.detachError
  return error ? failure('DetachFailed', error.message ?? '', 'unknown') : undefined
}

function failure(code: string, message: string, effect: 'unknown'): { readonly error: VolumeError } {
  return { error: new VolumeError(code, message, { effect }) }
}

/** One subscription for all who wait: a change costs what waits for that object, nothing else. */
function createListeners(attachments: Informer<VolumeAttachment>) {
  const listeners = new Map<string, Set<() => void>>()
  attachments.subscribe(({ key }) => {
    for (const listener of [...(listeners.get(key) ?? [])]) listener()
  })
  return <T>(name: string, verdict: Verdict<T>, signal: AbortSignal): Promise<T> =>
    new Promise((resolve, reject) => {
      let wasSeen = false
      const stop = () => {
        signal.removeEventListener('abort', onAbort)
        const all = listeners.get(name)
        all?.delete(listen)
        if (all?.size === 0) listeners.delete(name)
      }
      const onAbort = () => {
        stop()
        reject(signal.reason)
      }
      const listen = () => {
        const now = attachments.get(name)
        const said = verdict(now, wasSeen)
        wasSeen ||= now !== undefined
        if (!said) return
        stop()
        if ('error' in said) reject(said.error)
        else resolve(said.value)
      }
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      const all = listeners.get(name)
      if (all) all.add(listen)
      else listeners.set(name, new Set([listen]))
      listen()
    })
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

async function getOrNothing(client: Client, name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined> {
  try {
    return await client.get('VolumeAttachment', { name }, signal)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** A refusal by the API (4xx) changed nothing; anything else may have been carried out. */
function asked(error: unknown): VolumeError {
  const refused = error instanceof StatusError && error.code >= 400 && error.code < 500
  const message = error instanceof Error ? error.message : String(error)
  return new VolumeError('AttachmentNotWritten', message, { effect: refused ? 'untried' : 'unknown', cause: error })
}
