// What exactly is a container started with? Its variables, command, user and groups, and each volumeMount turned into a
// bind: whole volumes by their path, sub-paths by a mount of their own that was opened safely (SUBPATH-2 … SUBPATH-9).
import type { PodUid } from '../../api/names.ts'
import type { Container, Pod, VolumeMount } from '../../api/generated/types.ts'
import type { Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { readIfThere } from '../../host/read-if-there.ts'
import { bindSubPath, createSubPath, subPathProblem } from '../../host/subpaths.ts'
import type { Log } from '../../telemetry/log.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'
import { podDirectory, subPathTarget } from '../../volume/paths.ts'
import type { EnvironmentDeps } from './environment.ts'
import { environmentOf, expandReferences, expandStrictly } from './environment.ts'
import { readOnlyDevice } from '../operations/block-map.ts'
import { privilegesFor } from './privileges.ts'
import { fullNameOf } from '../pods/container-plan.ts'
import { imageUser } from '../runtime/entrypoints.ts'
import type { ContainerDevice, ContainerMount, ContainerRequest, ProcessSettings, Runtime } from '../runtime/port.ts'
import type { MountedVolume, VolumeManager } from '../volumes/manager.ts'

export interface ContainerRequestDeps extends EnvironmentDeps {
  readonly host: Host
  readonly root: string
  readonly manager: VolumeManager
  readonly runtime: Runtime
  readonly log: Log
}

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function containerRequest(
  deps: ContainerRequestDeps,
  work: { readonly pod: Pod; readonly uid: PodUid; readonly container: Container; readonly attempt: number },
  signal: AbortSignal,
): Promise<ContainerRequest> {
  const { pod, uid, container, attempt } = work
  const { own, settings } = await processSettings(deps, pod, container, signal)
  const expand = (words: readonly string[] | undefined) =>
    (words ?? []).map((word) => expandReferences(word, settings.env))
  const argv = argvOf(deps, container, expand)
  const refusal = rootRefusal(pod, container)
  if (refusal !== undefined) throw new Error(refusal)
  const volumes = deps.manager.mountedVolumes(uid)
  const mounts: ContainerMount[] = []
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    mounts.push(await mountOf(deps, { ...work, env: own, mount, index, volume: volumes.get(mount.name) }, signal))
  }
  return {
    ...settings,
    pod: uid,
    podName: pod.metadata.name,
    namespace: pod.metadata.namespace ?? 'default',
    name: container.name,
    attempt,
    graceMs: (pod.spec?.terminationGracePeriodSeconds ?? 30) * 1000,
    argv,
    stdin: container.stdin === true,
    hostPid: pod.spec?.hostPID === true,
    readOnlyRoot: container.securityContext?.readOnlyRootFilesystem === true,
    mounts,
    devices: await devicesOf(deps, container, volumes, signal),
  }
}

function argvOf(
  { runtime }: ContainerRequestDeps,
  { name, image = '', command, args }: Container,
  expand: (words: readonly string[] | undefined) => readonly string[],
): readonly string[] {
  const words = { name, image, command: expand(command), args: expand(args) }
  return runtime.commandLine?.(words) ?? [...words.command, ...words.args]
}

/** Why runAsNonRoot keeps a container from starting. */
export function rootRefusal(pod: Pod, container: Container): string | undefined {
  const [own, common] = [container.securityContext, pod.spec?.securityContext]
  if ((own?.runAsNonRoot ?? common?.runAsNonRoot) !== true) return undefined
  const user = own?.runAsUser ?? common?.runAsUser ?? imageUser(container)
  const whose = `(pod: "${fullNameOf(pod)}", container: ${container.name})`
  if (user === 0) return `container's runAsUser breaks non-root policy ${whose}`
  // Images are names only here: only a pause image says another user, so a process that names none runs as root.
  if (user !== undefined) return undefined
  return `container has runAsNonRoot and image will run as root ${whose}`
}

/** As whom and with which variables the container's processes run; `own` are the variables the pod's author named. */
export async function processSettings(
  deps: EnvironmentDeps & Pick<ContainerRequestDeps, 'host' | 'manager'>,
  pod: Pod,
  container: Container,
  signal: AbortSignal,
): Promise<{ readonly own: Readonly<Record<string, string>>; readonly settings: ProcessSettings }> {
  const user = container.securityContext?.runAsUser ?? pod.spec?.securityContext?.runAsUser ?? imageUser(container)
  const group = container.securityContext?.runAsGroup ?? pod.spec?.securityContext?.runAsGroup
  const own = await environmentOf(deps, pod, container, signal)
  const base = { PATH: searchPath, HOME: user === undefined || user === 0 ? '/root' : '/', HOSTNAME: pod.metadata.name }
  const settings = {
    env: { ...base, ...own },
    workingDirectory: container.workingDir || '/',
    ...(user === undefined ? {} : { user, group: group ?? (await primaryGroup(deps, user, signal)) }),
    ...(user === undefined && group !== undefined ? { group } : {}),
    groups: groupsOf(deps, pod),
    ...privilegesFor(container),
  }
  return { own, settings }
}

/** `nogroup`: owns nothing. */
const nobodysGroup = 65534

/**
 * Images are names only, so none says a group. Kubernetes would take 0; here that is the machine's own group `root`, so it is the
 * group that the machine's user of this id has, and never 0.
 */
async function primaryGroup({ host }: Pick<ContainerRequestDeps, 'host'>, user: number, signal: AbortSignal) {
  if (user === 0) return 0
  const lines = ((await readIfThere(host.files, '/etc/passwd', signal)) ?? '').split('\n')
  const found = lines.map((line) => line.split(':')).find(([, , id]) => id === String(user))
  return Number(found?.[3] ?? 0) || nobodysGroup
}

function groupsOf({ manager }: Pick<ContainerRequestDeps, 'manager'>, pod: Pod): readonly number[] {
  const { fsGroup, supplementalGroups = [] } = pod.spec?.securityContext ?? {}
  const extra = manager.extraGroups(pod)
  return [...new Set([...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups, ...extra])]
}

/** BLOCK-8: the device itself, or for a read-only volume one that the kernel lets nobody write to. */
async function devicesOf(
  { host }: ContainerRequestDeps,
  container: Container,
  volumes: ReadonlyMap<string, MountedVolume>,
  signal: AbortSignal,
): Promise<readonly ContainerDevice[]> {
  const devices: ContainerDevice[] = []
  for (const { name, devicePath } of container.volumeDevices ?? []) {
    const volume = volumes.get(name)
    if (volume?.mode !== 'Block') throw new Error(`volume "${name}" of container "${container.name}" is not mapped`)
    const source = volume.readOnly ? await readOnlyOf(host, volume, signal) : volume.path
    devices.push({ source, target: devicePath })
  }
  return devices
}

async function readOnlyOf({ devices }: Host, { spec, mapPath }: MountedVolume, signal: AbortSignal): Promise<string> {
  const [holder] = await devices.loopsOf(mapPath, signal)
  const device = holder && (await readOnlyDevice(devices, holder, signal))
  if (device) return device
  throw new Error(`volume "${spec.name}" is read-only, but there is no read-only device of it`)
}

interface MountWish {
  readonly pod: Pod
  readonly uid: PodUid
  readonly container: Container
  readonly env: Readonly<Record<string, string>>
  readonly mount: VolumeMount
  readonly index: number
  readonly volume: MountedVolume | undefined
}

async function mountOf(deps: ContainerRequestDeps, wish: MountWish, signal: AbortSignal): Promise<ContainerMount> {
  const { container, env, mount, volume } = wish
  if (!volume) throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`)
  const readOnly = mount.readOnly === true || volume.readOnly
  const subPath = mount.subPathExpr ? expandStrictly(mount.subPathExpr, env) : (mount.subPath ?? '')
  if (volume.traits?.createsMissingDirectory?.(volume.spec)) await makeMissing(deps, volume.path, signal)
  const source = subPath === '' ? volume.path : await showSubPath(deps, { ...wish, volume }, subPath, signal)
  return {
    source,
    target: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
    readOnly,
    recursiveReadOnly: readOnly && (mount.recursiveReadOnly === 'Enabled' || mount.recursiveReadOnly === 'IfPossible'),
    propagation: mount.mountPropagation ?? 'None',
  }
}

async function makeMissing({ host }: ContainerRequestDeps, path: string, signal: AbortSignal): Promise<void> {
  if (!(await host.files.exists(path, signal))) await host.files.mkdirAll(path, 0o755, signal)
}

/** What the kernel answers when a path below a directory leads out of it, or through a link that it does not follow. */
const leadsOut = (error: unknown) => hasCode(error, 'EXDEV', 'ELOOP')

/** Errors shown to users hide the host's paths (SUBPATH-2); the log has them. */
async function showSubPath(
  { host, root, log }: ContainerRequestDeps,
  { uid, container, mount, index, volume }: MountWish & { readonly volume: MountedVolume },
  subPath: string,
  signal: AbortSignal,
): Promise<string> {
  const problem = subPathProblem(subPath)
  if (problem?.kind === 'absolute') throw new Error(`error SubPath \`${subPath}\` ${problem.words}`)
  if (problem) throw new Error(`unable to provision SubPath \`${subPath}\`: ${problem.words}`)
  const what = `for volumeMount "${mount.name}" of container "${container.name}"`
  const refused = (message: string) => (error: unknown) => {
    log.warn('sub-path refused', { pod: uid, container: container.name, volume: mount.name, error })
    const code = leadsOut(error) ? 'SubPathLeaves' : asVolumeError(error).code
    throw new VolumeError(code, `${message} ${what}`, { effect: 'unknown', cause: error })
  }
  const target = subPathTarget(root, uid, volume.spec.name, container.name, index)
  const request = { volumePath: volume.path, subPath, target, podDirectory: podDirectory(root, uid) }
  await createSubPath(host, request, signal).catch(refused('failed to create subPath directory'))
  await bindSubPath(host, request, signal).catch(refused('failed to prepare subPath'))
  return target
}
