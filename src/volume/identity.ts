// What is a volume called, in every part of the system? Rules ID-1 … ID-4, PLUG-16.
import type { PluginName, PodUid, UniqueVolumeName } from '../api/names.ts'
import type { PendingKey } from '../loop/pending.ts'
import { VolumeError } from './effect.ts'
import type { VolumeSpec } from './spec.ts'

/** `<plugin name>/<plugin's volume name>`, for volumes that are attached or mounted once per node (ID-1). */
export function sharedVolumeName(plugin: PluginName, volumeName: string): UniqueVolumeName {
  return `${plugin}/${volumeName}` as UniqueVolumeName
}

/** A volume that is neither attachable nor device-mountable belongs to one pod (ID-2). */
export function podVolumeName(plugin: PluginName, pod: PodUid, specName: string): UniqueVolumeName {
  return `${plugin}/${pod}-${specName}` as UniqueVolumeName
}

/** ID-1 backwards: plugin names have exactly one slash; the rest, slashes and all, is the plugin's volume name. */
export function splitVolumeName(name: UniqueVolumeName): { readonly plugin: PluginName; readonly volumeName: string } {
  const first = name.indexOf('/')
  const second = first < 0 ? -1 : name.indexOf('/', first + 1)
  if (second < 0) {
    throw new VolumeError('NotAVolumeName', `cannot split volume unique name ${name} to plugin/volume components`, {
      effect: 'untried',
    })
  }
  return { plugin: name.slice(0, second) as PluginName, volumeName: name.slice(second + 1) }
}

/** The plugin as metrics and history name it: `kubernetes.io/csi:<driver>` for CSI volumes, else the plugin's name (MEA-14). */
export function pluginLabel(plugin: string, spec: VolumeSpec | undefined): string {
  return spec?.source.kind === 'csi' ? `${plugin}:${spec.source.value.driver}` : plugin
}

/** The same for a volume of which the unique name is known, and perhaps the spec. */
export function volumeLabel(volume: UniqueVolumeName, spec: VolumeSpec | undefined): string {
  return pluginLabel(splitVolumeName(volume).plugin, spec)
}

/** Attach and detach exclude each other cluster-wide unless several nodes may hold the volume (EXEC-1, EXEC-2). */
export function attachmentKey(volume: UniqueVolumeName, node: string, multiAttach: boolean): PendingKey {
  return multiAttach ? [volume, node] : [volume]
}

/** What concerns the shared device excludes everything; what concerns one pod excludes only that pod (EXEC-5 … EXEC-8). */
export function mountKey(volume: UniqueVolumeName, pod: PodUid, shared: boolean): PendingKey {
  return shared ? [volume] : [volume, pod]
}
