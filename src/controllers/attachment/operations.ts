// How is a volume attached, detached, and how do we ask whether it still is? Rules ATT-1 … ATT-5, DET-1 … DET-7, VVA-1 … VVA-4.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import { isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import { VolumeError } from '../../volume/effect.ts'
import { attachmentKey, splitVolumeName, volumeLabel } from '../../volume/identity.ts'
import { eventReasons, eventText, subjects } from '../../volume/messages.ts'
import type { Operation } from '../../volume/operation.ts'
import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { ActualEvent } from './actual.ts'
import type { NodeStatusWriter } from './node-status.ts'
import { attacherFor } from './populate.ts'

export interface AttachRequest {
  readonly volume: UniqueVolumeName
  readonly node: NodeName
  readonly spec: VolumeSpec
  readonly multiAttach: boolean
}

export interface AttachDeps {
  readonly registry: Registry<ClusterPlugin>
  /** How much we had heard of the node when the volume became attached. */
  nodeVersion(node: NodeName): number
  /** Says the success to every pod that waits on this node (ATT-5). */
  succeeded(reason: string, message: string): void
}

export const attachOperation: Operation<AttachRequest, AttachDeps, ActualEvent> = {
  name: 'volume_attach',
  label: 'AttachVolume',
  failureReason: eventReasons.attachFailed,
  key: ({ volume, node, multiAttach }) => attachmentKey(volume, node, multiAttach),
  subject: ({ volume, node, spec }) => subjects.toAttach(spec.name, volume, node),
  plugin: ({ spec, volume }) => volumeLabel(volume, spec),
  async run(request, { registry, nodeVersion, succeeded }, { step }, signal) {
    const { volume, node, spec } = request
    const attacher = await step('FindAttachablePluginBySpec', () => attacherFor(registry, spec))
    // Whatever the error says, the volume may sit there now: it is doubtful until a detach or an attach succeeds (ATT-3).
    // Only a call that was never tried leaves nothing to undo.
    const doubt = (error: VolumeError): ActualEvent => {
      const holder = (error.attachedTo?.node ?? node) as NodeName // a node's name, from the storage's own answer
      return { kind: 'attachFailed', volume, node: holder, spec }
    }
    await step('Attach', () => attacher.attach({ spec, node }, signal), {
      done: (devicePath) => ({ kind: 'attached', volume, node, spec, devicePath, nodeVersion: nodeVersion(node) }),
      failed: doubt,
      uncertain: doubt,
    })
    succeeded(eventReasons.attached, eventText('AttachVolume.Attach succeeded', attachOperation.subject(request)))
  },
}

export interface DetachRequest {
  readonly volume: UniqueVolumeName
  readonly node: NodeName
  /** Unknown when the controller restarted after everything but the node's status had vanished. */
  readonly spec: VolumeSpec | undefined
  readonly multiAttach: boolean
  /** Look at the node's use live before detaching; skipped only when the node cannot answer (NSP-6). */
  readonly verify: boolean
}

export interface DetachDeps {
  readonly registry: Registry<ClusterPlugin>
  readonly client: Pick<Client, 'get'>
  readonly clock: Clock
  readonly nodeStatus: Pick<NodeStatusWriter, 'flush'>
}

const nodeReadTimeoutMs = 30_000

export const detachOperation: Operation<DetachRequest, DetachDeps, ActualEvent> = {
  name: 'volume_detach',
  label: 'DetachVolume',
  key: ({ volume, node, multiAttach }) => attachmentKey(volume, node, multiAttach),
  subject: ({ volume, node, spec }) => subjects.attached(spec?.name, volume, node),
  plugin: ({ spec, volume }) => volumeLabel(volume, spec),
  async run({ volume, node, spec, verify }, deps, { step, emit }, signal) {
    const { attacher, volumeName } = await step(
      spec ? 'findDetachablePluginBySpec' : 'FindAttachablePluginByName',
      () => (spec ? detacherBySpec(deps.registry, spec) : detacherByName(deps.registry, volume)),
    )
    // The volume leaves volumesAttached before we detach: a node that reads the list must never start mounting a device
    // that is about to go. If this write fails, we do not detach, and the volume is reported again (ADR-2 steps 8 and 9).
    emit({ kind: 'reportWithdrawn', volume, node })
    const restore = (): ActualEvent => ({ kind: 'reportRestored', volume, node })
    await step('UpdateNodeStatus', () => deps.nodeStatus.flush(node, signal), {
      failed: restore,
      uncertain: restore,
      deferred: restore,
    })
    // From here on a failure leaves doubt, and the volume stays out of the report until a fresh attach (DET-6, NSP-7).
    const doubt = (): ActualEvent => ({ kind: 'detachFailed', volume, node })
    const detach = async () => {
      if (verify) await verifySafeToDetach(deps, volume, node, signal)
      await attacher.detach({ volumeName, node }, signal)
    }
    await step('Detach', detach, {
      done: () => ({ kind: 'detached', volume, node }),
      failed: doubt,
      uncertain: doubt,
      deferred: doubt,
    })
  },
}

export interface VerifyRequest {
  readonly node: NodeName
  readonly entries: readonly { readonly volume: UniqueVolumeName; readonly spec: VolumeSpec }[]
}

export interface VerifyDeps {
  readonly registry: Registry<ClusterPlugin>
  /** The storage says that this volume is not attached. */
  missing(volume: UniqueVolumeName, node: NodeName): void
  /** A plugin could not answer: what we believed stays (DES-15). */
  unanswered(plugin: string, node: NodeName, error: unknown): void
}

/** One per node at a time; it always succeeds, and only a definite "not attached" changes anything (VVA-3, WA-16). */
export const verifyOperation: Operation<VerifyRequest, VerifyDeps, never> = {
  name: 'verify_volumes_are_attached_per_node',
  label: 'VerifyVolumesAreAttached',
  key: ({ node }) => [node],
  subject: ({ node }) => ({ name: 'nil', details: `on node "${node}"` }),
  plugin: () => '<n/a>',
  async run({ node, entries }, { registry, missing, unanswered }, _report, signal) {
    for (const [name, group] of byPlugin(registry, entries)) {
      try {
        const specs = group.map(({ spec }) => spec)
        const [first] = specs
        const attacher = first && registry.find(first).plugin.attacher?.(first)
        const answers = attacher ? await attacher.verify({ specs, node }, signal) : []
        group.forEach(({ volume }, index) => {
          if (answers[index] === false) missing(volume, node)
        })
      } catch (error) {
        unanswered(name, node, error)
      }
    }
  },
}

function byPlugin(registry: Registry<ClusterPlugin>, entries: VerifyRequest['entries']) {
  const groups = new Map<string, VerifyRequest['entries'][number][]>()
  for (const entry of entries) {
    const plugin = registry.all().find((candidate) => candidate.supports(entry.spec))
    if (!plugin) continue // no plugin, nobody to ask (VVA-1)
    const group = groups.get(plugin.name)
    if (group) group.push(entry)
    else groups.set(plugin.name, [entry])
  }
  return groups
}

interface Detacher {
  readonly attacher: Attacher
  readonly volumeName: string
}

/** DET-1: a driver that no longer wants attaching must still let go of what it holds, so the spec is not asked again. */
function detacherBySpec(registry: Registry<ClusterPlugin>, spec: VolumeSpec): Detacher {
  const found = registry.find(spec)
  const attacher = found.plugin.attacherByName?.() ?? found.plugin.attacher?.(spec)
  if (!attacher) throw notAttachable(found.name)
  return { attacher, volumeName: found.volumeName(spec) }
}

/** DET-2: the name alone is enough. */
function detacherByName(registry: Registry<ClusterPlugin>, volume: UniqueVolumeName): Detacher {
  const { plugin, volumeName } = splitVolumeName(volume)
  const attacher = registry.byName(plugin).plugin.attacherByName?.()
  if (!attacher) throw notAttachable(plugin)
  return { attacher, volumeName }
}

function notAttachable(plugin: string): VolumeError {
  return new VolumeError('NotAttachable', `volume plugin ${plugin} cannot detach`, { effect: 'untried' })
}

/** DET-4: the live object, not the cache. A Node that is gone uses nothing any more. */
async function verifySafeToDetach(
  { client, clock }: DetachDeps,
  volume: UniqueVolumeName,
  node: NodeName,
  signal: AbortSignal,
): Promise<void> {
  using deadline = clock.deadline(nodeReadTimeoutMs, signal)
  let inUse: readonly string[]
  try {
    inUse = (await client.get('Node', { name: node }, deadline.signal)).status?.volumesInUse ?? []
  } catch (error) {
    if (isNotFound(error)) return
    const message = `DetachVolume failed fetching node from API server: ${error instanceof Error ? error.message : String(error)}`
    throw new VolumeError('NodeUnreadable', message, { effect: 'untried', cause: error })
  }
  if (!inUse.includes(volume)) return
  const message = `DetachVolume failed: volume is still in use by node, according to Node status`
  throw new VolumeError('VolumeInUse', message, { effect: 'untried' })
}
