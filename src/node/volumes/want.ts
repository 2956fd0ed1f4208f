// What does a pod want of one of its volumes? Its claim is resolved, its plugin found, its label chosen: the answer is events
// for the desired world, or what is in the way.
import type { PodUid } from '../../api/names.ts'
import type { Pod, Volume } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registered, Registry } from '../../volume/registry.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { PodWaitReason } from '../../volume/wait-reasons.ts'
import type { ResolvedVolume } from './claims.ts'
import { checkMode, resolveVolume, usedVolumes } from './claims.ts'
import type { DesiredWorld } from './desired.ts'
import type { LabelRequest, WantedLabel } from './labels.ts'
import { noLabel } from './labels.ts'
import { abilities, uniqueName } from './unique-name.ts'

export interface WantDeps {
  readonly client: Client
  readonly clock: Clock
  readonly registry: Registry<NodePlugin>
  readonly desired: DesiredWorld
  /** The SELinux label a pod wants for a volume; absent where SELinux is off. */
  label?(request: LabelRequest): WantedLabel
}

export interface Unresolved {
  readonly reason: PodWaitReason
  readonly message: string
}

interface Wish {
  readonly uid: PodUid
  readonly pod: Pod
  readonly volume: Volume
  /** False when a newer pod took its place while we read; then the newer one decides. */
  isCurrent(): boolean
}

/** Undefined when the desired world has the volume, else what is in its way. */
export async function wantVolume(deps: WantDeps, wish: Wish, signal: AbortSignal): Promise<Unresolved | undefined> {
  try {
    const resolved = await resolveVolume(deps.client, wish.pod, wish.volume, signal)
    if (wish.isCurrent()) tellDesired(deps, wish, resolved)
    return undefined
  } catch (error) {
    if (signal.aborted) throw error
    const isPlugin = error instanceof PluginUnknown
    const message = errorText(error)
    return { reason: isPlugin ? 'pluginMissing' : 'volumesUnresolved', message }
  }
}

function tellDesired(
  { desired, registry, label, clock }: WantDeps,
  { uid, pod, volume }: Wish,
  resolved: ResolvedVolume,
) {
  const { spec, group, readOnly, claimBytes, volumeBytes } = resolved
  checkMode(volume.name, spec, usedVolumes(pod))
  const plugin = findPlugin(registry, spec)
  const { attachable, deviceMountable } = abilities(plugin, spec)
  const name = uniqueName(plugin, spec, uid)
  const request = { pod, uid, outerName: volume.name, spec, plugin, known: desired.items.get(name) }
  const wantedLabel = label?.(request) ?? noLabel
  // Known only now that nobody will attach it: then waiting for that would never end (KP-9). The other way round what
  // is there stays as it is.
  if (!attachable) desired.apply({ kind: 'attachability', volume: name, attachable })
  desired.apply({
    kind: 'wanted',
    volume: name,
    plugin: plugin.name,
    attachable,
    deviceMountable,
    group,
    label: wantedLabel,
    pod,
    uid,
    spec,
    outerName: volume.name,
    readOnly,
    claimBytes,
    at: clock.now(),
  })
  if (volumeBytes > 0n && !readOnly) desired.apply({ kind: 'sized', volume: name, bytes: volumeBytes })
}

class PluginUnknown extends Error {}

function findPlugin(registry: Registry<NodePlugin>, spec: VolumeSpec): Registered<NodePlugin> {
  try {
    return registry.find(spec)
  } catch (error) {
    const why = errorText(error)
    throw new PluginUnknown(`failed to get Plugin from volumeSpec for volume "${spec.name}" err=${why}`, {
      cause: error,
    })
  }
}
