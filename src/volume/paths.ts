// Where do volumes lie on disk? The layout under a node's root, built and parsed (LAYOUT-1 … LAYOUT-7).
import { join } from 'node:path/posix'
import type { PluginName, PodUid } from '../api/names.ts'

/** `kubernetes.io/nfs` → `kubernetes.io~nfs`. */
export function escapePlugin(plugin: PluginName): string {
  return plugin.replaceAll('/', '~')
}

export function unescapePlugin(directory: string): PluginName {
  return directory.replaceAll('~', '/') as PluginName
}

export const podsDirectory = (root: string) => join(root, 'pods')
export const pluginsDirectory = (root: string) => join(root, 'plugins')
export const registrationDirectory = (root: string) => join(root, 'plugins_registry')
/** Directories for pods to come; ours alone, and made anew when they are gone. */
export const sparesDirectory = (root: string) => join(root, 'spare-pods')
export const podDirectory = (root: string, pod: PodUid) => join(root, 'pods', pod)

/** LAYOUT-1 */
export const podVolumePath = (root: string, pod: PodUid, plugin: PluginName, volume: string) =>
  join(root, 'pods', pod, 'volumes', escapePlugin(plugin), volume)

/** LAYOUT-2 */
export const podPluginPath = (root: string, pod: PodUid, plugin: PluginName, ...rest: string[]) =>
  join(root, 'pods', pod, 'plugins', escapePlugin(plugin), ...rest)

/** LAYOUT-3: the directory holds a symlink named after the volume. */
export const podDeviceDirectory = (root: string, pod: PodUid, plugin: PluginName) =>
  join(root, 'pods', pod, 'volumeDevices', escapePlugin(plugin))

/** LAYOUT-4 */
export const subPathsDirectory = (root: string, pod: PodUid) => join(root, 'pods', pod, 'volume-subpaths')
export const subPathTarget = (root: string, pod: PodUid, volume: string, container: string, index: number) =>
  join(subPathsDirectory(root, pod), volume, container, String(index))

/** LAYOUT-5: here the plugin's name is not escaped, so it makes two levels. */
export const globalPluginPath = (root: string, plugin: PluginName, ...rest: string[]) =>
  join(root, 'plugins', plugin, ...rest)

/** LAYOUT-6 */
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
