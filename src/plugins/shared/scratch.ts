// How does a pod get an empty directory, on disk or in memory? The rules of emptyDir (EMPTY-2 … EMPTY-12), which
// configMap, secret, downwardAPI and projected volumes are built on as well (under the name `wrapped_<volume>`).

import { join } from 'node:path/posix'
import {
  bytesOfQuantity,
  parseQuantity,
  quantityFormatWrong,
  tryParseQuantity,
  wholeValue,
} from '../../api/quantity.ts'
import { pluginName } from '../../api/names.ts'
import type { PodUid } from '../../api/names.ts'
import type { Pod } from '../../api/types.ts'
import { isAlreadyMounted, isMounted, isThere, unmountAll } from '../../host/clean-mount-point.ts'
import { HostError, hasCode } from '../../host/host-error.ts'
import type { DeepModes, Mark, MountRequest } from '../../host/host.ts'
import { applyOwnership } from '../../host/ownership.ts'
import { podPluginPath } from '../../volume/paths.ts'
import type { NodePluginDeps } from './deps.ts'
import { refuse } from './errors.ts'
import { podMemoryLimit, requestedPageSizes } from './pod-resources.ts'

export const emptyDirName = pluginName('kubernetes.io/empty-dir')

export type ScratchDeps = Pick<NodePluginDeps, 'host' | 'root' | 'allocatable' | 'noSwap'>

export interface ScratchRequest {
  readonly pod: Pod
  readonly podUid: PodUid
  /** The volume's name, or `wrapped_<volume>`; names the ready marker. */
  readonly name: string
  readonly target: string
  readonly medium: string
  /** emptyDir's sizeLimit. */
  readonly sizeLimit?: string | undefined
  /** What will be written must fit, whatever the pod's limit says (WART-26). */
  readonly minimumBytes?: bigint
  readonly fsGroup?: number | undefined
}

/** Idempotent. Answers whether the directory was made just now. */
export async function setUpScratch(deps: ScratchDeps, request: ScratchRequest, signal: AbortSignal): Promise<boolean> {
  const { host } = deps
  const { target, medium } = request
  const pageSize = medium === 'HugePages' || medium.startsWith('HugePages-') ? medium : undefined
  if (medium !== '' && medium !== 'Memory' && pageSize === undefined)
    throw refuse('UnknownMedium', `unknown storage medium "${medium}"`)
  if (await mountedAnew(deps, request, signal)) return true
  const mark = markOf(deps.root, request)
  if (pageSize === undefined && (await host.files.exists(mark.path, signal))) {
    const there =
      medium === 'Memory' ? await isAlreadyMounted(host, target, signal) : await host.files.exists(target, signal)
    if (there) return false
    await host.files.removeTree(markerDirectory(deps.root, request), signal)
  }
  await makeDirectory(deps, target, signal)
  if (medium === 'Memory') {
    if (!(await isAlreadyMounted(host, target, signal))) await host.mounts.mount(memoryMount(deps, request), signal)
  } else if (pageSize !== undefined) await mountHugePages(deps, request, pageSize, signal)
  // FSG-5: a failure of this pass is ignored, and so is the change policy.
  await applyOwnership(host.files, { root: target, gid: request.fsGroup, readOnly: false }, signal).catch(
    () => undefined,
  )
  await host.files.writeFile(mark.path, '', mark, signal)
  return true
}

/** Is there something at the target, set up or half set up? It must be undone some day. */
export const isLeft = (host: ScratchDeps['host'], target: string) => () =>
  isThere(host, target, new AbortController().signal)

/** EMPTY-11: the marker first, so that a crash halfway is seen as "not ready"; then the mount; then what is left. */
export async function tearDownScratch(
  deps: Pick<ScratchDeps, 'host' | 'root'>,
  request: Pick<ScratchRequest, 'podUid' | 'name' | 'target'>,
  signal: AbortSignal,
): Promise<void> {
  const { host } = deps
  await host.files.removeTree(markerDirectory(deps.root, request), signal)
  if (await isMounted(host, request.target, signal)) {
    const { type } = await host.mounts.info(request.target, signal)
    // Only our own mounts are taken off. Anything else planted here makes the deletion below stop, unharmed.
    if (type === 'tmpfs' || type === 'hugetlbfs') await unmountAll(host, request.target, {}, signal)
  }
  await host.files.removeTree(request.target, signal)
}

/** EMPTY-12 */
export async function resizeMemory(
  deps: Pick<ScratchDeps, 'host'>,
  target: string,
  newBytes: bigint,
  signal: AbortSignal,
): Promise<void> {
  if (newBytes === 0n) throw refuse('InvalidSize', 'size must be greater than zero')
  if (!(await isMounted(deps.host, target, signal)))
    throw refuse('NotMounted', `${target} is not mounted yet`, 'untried')
  await deps.host.mounts.remount(target, [`size=${newBytes}`], signal)
}

/** EMPTY-6: the smallest of node, pod and volume limit. */
export function memorySize(
  deps: Pick<ScratchDeps, 'allocatable'>,
  request: Pick<ScratchRequest, 'pod' | 'sizeLimit' | 'minimumBytes'>,
): bigint {
  const node = tryParseQuantity(deps.allocatable()['memory'] ?? '')
  let size = node === undefined ? 0n : wholeValue(node)
  const own = request.sizeLimit === undefined ? undefined : bytesOfQuantity(request.sizeLimit)
  for (const limit of [podMemoryLimit(request.pod), own]) {
    if (limit !== undefined && limit > 0n && (size === 0n || limit < size)) size = limit
  }
  const { minimumBytes = 0n } = request
  return size !== 0n && size < minimumBytes ? minimumBytes : size
}

function markerDirectory(root: string, { podUid, name }: Pick<ScratchRequest, 'podUid' | 'name'>): string {
  return podPluginPath(root, podUid, emptyDirName, name)
}

/** EMPTY-11: there when the volume is as it should be. */
function markOf(root: string, request: Pick<ScratchRequest, 'podUid' | 'name'>): Mark {
  return { path: join(markerDirectory(root, request), 'ready'), mode: 0o644, parentMode: 0o750 }
}

/** EMPTY-5. The parent is made with the mode that everybody's umask would leave. */
const directoryModes: DeepModes = { mode: 0o777, parentMode: 0o755 }

async function makeDirectory({ host }: ScratchDeps, target: string, signal: AbortSignal): Promise<void> {
  try {
    await host.files.mkdirDeep(target, directoryModes, signal)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    const stat = await host.files.lstat(target, signal)
    if (stat.kind !== 'directory') throw refuse('NotADirectory', `${target} is not a directory`)
    if ((stat.mode & 0o777) !== 0o777) await host.files.chmod(target, stat.mode | 0o777, signal)
  }
}

/**
 * Nearly every memory volume is new and nobody's in particular: then its directory, its mount and its mark are one trip
 * to the system, and no question is asked before. False for everything else; the long way finds out what it is, and fails
 * in its own words.
 */
async function mountedAnew(deps: ScratchDeps, request: ScratchRequest, signal: AbortSignal): Promise<boolean> {
  if (request.medium !== 'Memory' || request.fsGroup !== undefined) return false
  const mark = markOf(deps.root, request)
  try {
    await deps.host.mounts.mount({ ...memoryMount(deps, request), makeTarget: directoryModes, mark }, signal)
    return true
  } catch (error) {
    if (!(error instanceof HostError && error.certain)) throw error
    return false
  }
}

function memoryMount(deps: ScratchDeps, request: ScratchRequest): MountRequest {
  const size = memorySize(deps, request)
  const options = [...(size > 0n ? [`size=${size}`] : []), ...(deps.noSwap === true ? ['noswap'] : [])]
  return { source: 'tmpfs', target: request.target, type: 'tmpfs', options }
}

/** EMPTY-8 */
async function mountHugePages(
  deps: ScratchDeps,
  request: ScratchRequest,
  medium: string,
  signal: AbortSignal,
): Promise<void> {
  const { host } = deps
  const size = pageSizeFor(medium, request.pod)
  if (await isAlreadyMounted(host, request.target, signal)) {
    if (medium === 'HugePages') return
    const { superOptions } = await host.mounts.info(request.target, signal)
    const present = superOptions.find((option) => option.startsWith('pagesize='))?.slice('pagesize='.length)
    // The kernel says 2M where Kubernetes says 2Mi.
    if (present !== undefined && samePageSize(present, size)) return
    throw refuse(
      'HugePagesMismatch',
      `mounted dir ${request.target} pageSize (${present ?? 'unknown'}) and requested medium size (${size}) differ`,
    )
  }
  await host.mounts.mount(
    { source: 'nodev', target: request.target, type: 'hugetlbfs', options: [`pagesize=${kernelPageSize(size)}`] },
    signal,
  )
}

function pageSizeFor(medium: string, pod: Pod): string {
  const requested = [...requestedPageSizes(pod)]
  const wanted = medium === 'HugePages' ? undefined : medium.slice('HugePages-'.length)
  if (wanted !== undefined && tryParseQuantity(wanted) === undefined) throw refuse('InvalidSize', quantityFormatWrong)
  if (wanted === undefined && requested.length > 1)
    throw refuse('HugePagesAmbiguous', `medium: ${medium} can't be used if container requests multiple huge page sizes`)
  const size = wanted === undefined ? requested[0] : requested.find((one) => samePageSize(one, wanted))
  if (size === undefined)
    throw refuse(
      'HugePagesNotRequested',
      `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`,
    )
  return size
}

function samePageSize(left: string, right: string): boolean {
  return binary(left) === binary(right)
}

function binary(size: string): bigint {
  return wholeValue(parseQuantity(/[KMGT]$/.test(size) ? `${size}i` : size))
}

/** "2Mi" → "2M", which the kernel reads as the same. */
function kernelPageSize(size: string): string {
  return size.replace(/i$/, '')
}
