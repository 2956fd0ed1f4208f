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
import type { Pod } from '../../api/generated/types.ts'
import { isAlreadyMounted, isMounted, isThere, unmountAll } from '../../host/clean-mount-point.ts'
import { hasCode } from '../../host/host-error.ts'
import type { DeepModes, MountRequest } from '../../host/host.ts'
import { applyOwnership } from '../../host/ownership.ts'
import { refused } from '../../volume/effect.ts'
import { podPluginPath } from '../../volume/paths.ts'
import type { NodePluginDeps } from './deps.ts'
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
    throw refused('UnknownMedium', `unknown storage medium "${medium}"`, 'none')
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
  // A failure of this pass is ignored, and so is the change policy (FSG-5).
  await applyOwnership(host.files, { root: target, gid: request.fsGroup, readOnly: false }, signal).catch(
    () => undefined,
  )
  await host.files.writeFile(mark.path, '', mark, signal)
  return true
}

/** Is there something at the target, set up or half set up? Then it must be torn down later. */
export const isLeft = (host: ScratchDeps['host'], target: string) => () =>
  isThere(host, target, new AbortController().signal)

/** The marker first, so that a crash halfway is seen as "not ready"; then the mount; then what is left (EMPTY-11). */
export async function tearDownScratch(
  deps: Pick<ScratchDeps, 'host' | 'root'>,
  request: Pick<ScratchRequest, 'podUid' | 'name' | 'target'>,
  signal: AbortSignal,
): Promise<void> {
  const { host } = deps
  await host.files.removeTree(markerDirectory(deps.root, request), signal)
  if (await isMounted(host, request.target, signal)) {
    const { type } = await host.mounts.info(request.target, signal)
    // Only our own mounts are unmounted. Any other mount makes the deletion below fail, and its files stay.
    if (type === 'tmpfs' || type === 'hugetlbfs') await unmountAll(host, request.target, {}, signal)
  }
  await host.files.removeTree(request.target, signal)
}

/** Resizes a memory volume while it is in use (EMPTY-12). */
export async function resizeMemory(
  deps: Pick<ScratchDeps, 'host'>,
  target: string,
  newBytes: bigint,
  signal: AbortSignal,
): Promise<void> {
  if (newBytes === 0n) throw refused('InvalidSize', 'size must be greater than zero', 'none')
  if (!(await isMounted(deps.host, target, signal)))
    throw refused('NotMounted', `${target} is not mounted yet`, 'untried')
  await deps.host.mounts.remount(target, [`size=${newBytes}`], signal)
}

/** The smallest of node, pod and volume limit (EMPTY-6). */
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

/** The ready marker: present once the volume is completely set up (EMPTY-11). */
function markOf(root: string, request: Pick<ScratchRequest, 'podUid' | 'name'>): DeepModes & { readonly path: string } {
  return { path: join(markerDirectory(root, request), 'ready'), mode: 0o644, parentMode: 0o750 }
}

/** The volume is open to all; its parent gets the usual mode of a new directory (EMPTY-5). */
const directoryModes: DeepModes = { mode: 0o777, parentMode: 0o755 }

async function makeDirectory({ host }: ScratchDeps, target: string, signal: AbortSignal): Promise<void> {
  try {
    await host.files.mkdirDeep(target, directoryModes, signal)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    const stat = await host.files.lstat(target, signal)
    if (stat.kind !== 'directory') throw refused('NotADirectory', `${target} is not a directory`, 'none')
    if ((stat.mode & 0o777) !== 0o777) await host.files.chmod(target, stat.mode | 0o777, signal)
  }
}

function memoryMount(deps: ScratchDeps, request: ScratchRequest): MountRequest {
  const size = memorySize(deps, request)
  const options = [...(size > 0n ? [`size=${size}`] : []), ...(deps.noSwap === true ? ['noswap'] : [])]
  return { source: 'tmpfs', target: request.target, type: 'tmpfs', options }
}

/** Huge pages of one size; the pod must request pages of that size (EMPTY-8). */
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
    throw refused(
      'HugePagesMismatch',
      `mounted dir ${request.target} pageSize (${present ?? 'unknown'}) and requested medium size (${size}) differ`,
      'unknown',
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
  if (wanted !== undefined && tryParseQuantity(wanted) === undefined)
    throw refused('InvalidSize', quantityFormatWrong, 'unknown')
  if (wanted === undefined && requested.length > 1)
    throw refused(
      'HugePagesAmbiguous',
      `medium: ${medium} can't be used if container requests multiple huge page sizes`,
      'unknown',
    )
  const size = wanted === undefined ? requested[0] : requested.find((one) => samePageSize(one, wanted))
  if (size === undefined)
    throw refused(
      'HugePagesNotRequested',
      `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`,
      'unknown',
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
