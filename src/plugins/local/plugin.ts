// The plugin `kubernetes.io/local-volume`: a directory or a disk of this very node (LOCAL-1 … LOCAL-9).

import { join, normalize } from 'node:path/posix'
import { pluginName } from '../../api/names.ts'
import type { PluginName } from '../../api/names.ts'
import { cleanMountPoint, isAlreadyMounted, isMounted } from '../../host/clean-mount-point.ts'
import { cleanPath } from '../../host/clean-path.ts'
import { hasCode } from '../../host/host-error.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { refused, VolumeError } from '../../volume/effect.ts'
import { eventReasons } from '../../volume/messages.ts'
import { escapePlugin, globalDevicePath, globalPluginPath, podsDirectory } from '../../volume/paths.ts'
import type {
  BlockMapper,
  DeviceMounter,
  ExpandRequest,
  MountRequest,
  NodePlugin,
  RestoreRequest,
} from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { bindForPod, mountDisk } from '../disk/device-mount.ts'
import { reworded, translated } from '../shared/errors.ts'
import { createKeyedLock } from '../shared/keyed-lock.ts'
import { mountOptionsOf } from '../shared/mount-options.ts'
import { ownWithNotice } from '../shared/ownership.ts'
import { restoredVolume } from '../shared/restored.ts'
import { volumeUsage } from '../shared/usage.ts'

const name = pluginName('kubernetes.io/local-volume')
type Deps = Pick<NodePluginDeps, 'host' | 'root' | 'clock'>

export default definePlugin({
  name,
  source: 'local',
  traits: { takesMountOptions: true, remountOnPodUpdate: false },
  volumeName: (spec) => spec.name,
  supports: (spec) => spec.from === 'persistentVolume',
  node: createLocalPlugin,
})

function createLocalPlugin(deps: Deps): NodePlugin {
  const { host, root } = deps
  const lock = createKeyedLock()
  const device: DeviceMounter = {
    path: (spec) => devicePath(root, spec),
    mount: ({ spec, path }, signal) =>
      translated(async () => {
        if ((await sourceKind(deps, spec, signal)) === 'directory') return
        const { path: disk, fsType = 'ext4' } = sourceOf(spec)
        const options = mountOptionsOf(spec, spec.readOnly ? ['ro'] : [])
        await mountDisk(host, { device: disk, target: path, fsType, options }, signal).catch((error: unknown) => {
          throw reworded(
            error,
            (message) => `local: failed to mount device ${disk} at ${path} (fstype: ${fsType}), error ${message}`,
          )
        })
      }),
    unmount: ({ path }, signal) =>
      translated(async () => {
        // Directory sources were never mounted by us; nothing outside our own directory is ever unmounted (LOCAL-6).
        if (path.startsWith(`${mountsDirectory(root)}/`)) await cleanMountPoint(host, path, {}, signal)
      }),
  }
  const block: BlockMapper = {
    // Here, and only here, the plugin's name is escaped (LAYOUT-6).
    globalMapPath: (spec) => globalDevicePath(root, escapePlugin(name) as PluginName, spec.name),
    devicePath: placeOf,
  }
  return {
    prepare: (spec, signal) => translated(async () => void (await sourceKind(deps, spec, signal))),
    // Two volumes may name the same path; their mounts wait for each other.
    mount: (request, signal) =>
      translated(() => lock.run(cleanPath(placeOf(request.spec)), () => mount(deps, request, signal))),
    unmount: ({ target }, signal) => translated(() => cleanMountPoint(host, target, {}, signal)),
    readOnly: (spec) => spec.readOnly,
    device: (spec) => (spec.mode === 'Filesystem' ? device : undefined),
    block: (spec) => (spec.mode === 'Block' ? block : undefined),
    restore: (request, signal) => translated(() => restore(deps, request, signal)),
    expand: (request, signal) => translated(() => expand(deps, request, signal)),
    requiresResize: () => true,
    usage: ({ spec, path }, signal) => translated(() => volumeUsage(deps, spec, path, signal)),
  }
}

async function mount(deps: Deps, request: MountRequest, signal: AbortSignal): Promise<void> {
  const { host, root } = deps
  const { spec, target, ownership, notify } = request
  const source = (await sourceKind(deps, spec, signal)) === 'directory' ? sourceOf(spec).path : devicePath(root, spec)
  if (await isAlreadyMounted(host, target, signal)) return
  const { fsGroup } = ownership
  const shared = fsGroup !== undefined && (await hasOtherPods(deps, source, target, signal))
  if (shared) {
    const { gid } = await host.files.stat(source, signal)
    const message = `The requested fsGroup is ${fsGroup}, but the volume ${spec.name} has GID ${gid}. The volume may not be shareable.`
    if (gid !== fsGroup) notify({ type: 'Warning', reason: eventReasons.alreadyMounted, message })
  }
  await bindForPod(host, { source, target, options: mountOptionsOf(spec), readOnly: spec.readOnly }, signal)
  // Only the first pod sets the group, because other pods may be using the files (LOCAL-5).
  if (spec.readOnly || shared) return
  try {
    await ownWithNotice(
      { files: host.files, clock: deps.clock },
      { root: target, volumeName: spec.name, ownership, notify },
      signal,
    )
  } catch (error) {
    throw new VolumeError('OwnershipFailed', errorText(error), { effect: 'unknown', cause: error })
  }
}

async function hasOtherPods(
  { host, root }: Deps,
  source: string,
  target: string,
  signal: AbortSignal,
): Promise<boolean> {
  const references = await host.mounts.references(source, signal)
  return references.some((path) => path !== target && path.startsWith(`${podsDirectory(root)}/`))
}

/** A local volume is a directory or a block device, nothing else (LOCAL-2). */
async function sourceKind(
  { host }: Pick<Deps, 'host'>,
  spec: VolumeSpec,
  signal: AbortSignal,
): Promise<'directory' | 'blockDevice'> {
  const { path } = sourceOf(spec)
  if (path === '' || path.split('/').includes('..'))
    throw refused('InvalidPath', `invalid path: ${path} for local volume ${spec.name}`, 'none')
  try {
    const { kind } = await host.files.stat(path, signal)
    if (kind === 'directory' || kind === 'blockDevice') return kind
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw refused('PathMissing', `path "${path}" does not exist`, 'none', ['notFound'])
    if (hasCode(error, 'ENOTDIR')) throw refused('PathMissing', `stat ${path}: not a directory`, 'none', ['notFound'])
    throw error
  }
  throw refused('WrongType', 'only directory and block device are supported', 'none')
}

/** The device behind the mount if there is one; an empty path is good enough for cleaning up (LOCAL-7). */
async function restore({ host, root }: Deps, request: RestoreRequest, signal: AbortSignal): Promise<VolumeSpec> {
  let path = ''
  if (request.mode === 'Filesystem' && (await isMounted(host, request.path, signal))) {
    const references = await host.mounts.references(request.path, signal)
    const ours = references.some((one) => one.startsWith(`${mountsDirectory(root)}/`))
    if (ours) path = (await host.mounts.info(request.path, signal)).source
  }
  return restoredVolume(request, { kind: 'local', value: { path } })
}

/** Only a filesystem on a device can grow; a directory and a raw device have nothing to do here (LOCAL-9). */
async function expand(deps: Deps, request: ExpandRequest, signal: AbortSignal): Promise<bigint> {
  const { spec, newBytes } = request
  if (spec.mode === 'Block' || (await sourceKind(deps, spec, signal)) === 'directory') return newBytes
  const { filesystems } = deps.host
  const [device, mountPath] = [sourceOf(spec).path, request.stagingPath ?? devicePath(deps.root, spec)]
  if (await filesystems.mayGrow(device, mountPath, signal)) await filesystems.grow({ device, mountPath }, signal)
  return newBytes
}

const mountsDirectory = (root: string): string => globalPluginPath(root, name, 'mounts')
const devicePath = (root: string, spec: VolumeSpec): string => join(mountsDirectory(root), spec.name)

const placeOf = (spec: VolumeSpec): string => join('/', normalize(sourceOf(spec).path))

function sourceOf(spec: VolumeSpec) {
  if (!hasSource(spec, 'local')) throw refused('WrongSource', `volume ${spec.name} is no local volume`, 'untried')
  return spec.source.value
}
