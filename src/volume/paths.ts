// Where do volumes lie on disk? The layout under a node's root, built and parsed (LAYOUT-1 … LAYOUT-7).
import { join } from 'node:path/posix'
import type { PluginName, PodUid } from '../api/names.ts'

/** `kubernetes.io/nfs` → `kubernetes.io~nfs`. */
export function escapePlugin(plugin: PluginName): string {
  return plugin.replaceAll('/', '~')
}

function unescapePlugin(directory: string): PluginName {
  return directory.replaceAll('~', '/') as PluginName
}

export const podsDirectory = (root: string) => join(root, 'pods')
export const pluginsDirectory = (root: string) => join(root, 'plugins')
export const registrationDirectory = (root: string) => join(root, 'plugins_registry')
export const podDirectory = (root: string, pod: PodUid) => join(root, 'pods', pod)

/** Where a pod finds a volume with a filesystem (LAYOUT-1). */
export const podVolumePath = (root: string, pod: PodUid, plugin: PluginName, volume: string) =>
  join(root, 'pods', pod, 'volumes', escapePlugin(plugin), volume)

/** What a plugin keeps about one pod (LAYOUT-2). */
export const podPluginPath = (root: string, pod: PodUid, plugin: PluginName, ...rest: string[]) =>
  join(root, 'pods', pod, 'plugins', escapePlugin(plugin), ...rest)

/** The directory holds a symlink named after the volume (LAYOUT-3). */
export const podDeviceDirectory = (root: string, pod: PodUid, plugin: PluginName) =>
  join(root, 'pods', pod, 'volumeDevices', escapePlugin(plugin))

/** Bind mounts of sub-paths, one per container and volume mount (LAYOUT-4). */
export const subPathsDirectory = (root: string, pod: PodUid) => join(root, 'pods', pod, 'volume-subpaths')
export const subPathTarget = (root: string, pod: PodUid, volume: string, container: string, index: number) =>
  join(subPathsDirectory(root, pod), volume, container, String(index))

/** Here the plugin's name is not escaped, so it makes two levels (LAYOUT-5). */
export const globalPluginPath = (root: string, plugin: PluginName, ...rest: string[]) =>
  join(root, 'plugins', plugin, ...rest)

/** What a plugin keeps about block devices of the node (LAYOUT-6). */
export const globalDevicePath = (root: string, plugin: PluginName, ...rest: string[]) =>
  join(root, 'plugins', plugin, 'volumeDevices', ...rest)

export interface PodVolumeLocation {
  readonly pod: PodUid
  readonly plugin: PluginName
  readonly volume: string
  readonly mode: 'Filesystem' | 'Block'
}

/** The inverse of podVolumePath and of podDeviceDirectory + name; undefined for any other path. */
export function parsePodVolumePath(root: string, path: string): PodVolumeLocation | undefined {
  const prefix = `${podsDirectory(root)}/`
  if (!path.startsWith(prefix)) return undefined
  const [pod, folder, plugin, volume, ...rest] = path.slice(prefix.length).split('/')
  if (!pod || !plugin || !volume || rest.length > 0 || !plugin.includes('~')) return undefined
  const mode = folder === 'volumes' ? 'Filesystem' : folder === 'volumeDevices' ? 'Block' : undefined
  return mode && { pod: pod as PodUid, plugin: unescapePlugin(plugin), volume, mode }
}
