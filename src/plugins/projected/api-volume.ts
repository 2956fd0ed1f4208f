// How does a volume made of API objects reach its pod and stay up to date? One way for configMap, secret, downwardAPI and
// projected (CONF-1 … CONF-6, CONF-12): fetch, then directory, then nested mount points, then one atomic write.

import { podUid } from '../../api/names.ts'
import { writeAtomically } from '../../host/atomic-files.ts'
import type { Payload } from '../../host/atomic-files.ts'
import { applyOwnership } from '../../host/ownership.ts'
import type { MountRequest, NodePlugin, Usage } from '../../volume/plugin.ts'
import type { VolumeSource } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated, unlessLeft } from '../shared/errors.ts'
import { isLeft, setUpScratch, tearDownScratch } from '../shared/scratch.ts'
import { treeUsage } from '../shared/usage.ts'
import type { Reader } from './kept-objects.ts'
import { createKeptObjects } from './kept-objects.ts'
import { nestedMountPoints } from './nested-mounts.ts'

export type ApiVolumeDeps = Pick<
  NodePluginDeps,
  'host' | 'root' | 'allocatable' | 'noSwap' | 'client' | 'clock' | 'random'
>

export interface ApiVolumeKind {
  readonly medium: '' | 'Memory'
  /** Everything that can fail because of the API happens here, before the disk is touched (CONF-3). */
  payload(request: MountRequest, reader: Reader, signal: AbortSignal): Promise<Payload>
  /** The source for a volume found on disk, of which only the name is known. */
  restored(volumeName: string): VolumeSource
  unmounted?(request: { readonly pod: ReturnType<typeof podUid> }): void
}

export function createApiVolume(deps: ApiVolumeDeps, kind: ApiVolumeKind): NodePlugin {
  const measured = new Map<string, Usage>()
  const kept = createKeptObjects(deps.client)
  return {
    readOnly: () => true,
    mount: (request, signal) =>
      unlessLeft(
        async () => {
          try {
            await mount(deps, kind, request, kept.readerFor(request.target), signal)
          } catch (error) {
            if (isNew(request)) kept.release(request.target) // perhaps nobody will unmount it; the next try asks anew
            throw error
          }
        },
        isLeft(deps.host, request.target),
      ),
    unmount: ({ volumeName, pod, target }, signal) =>
      translated(async () => {
        await tearDownScratch(deps, { podUid: pod, name: wrapped(volumeName), target }, signal)
        measured.delete(target)
        kept.release(target)
        kind.unmounted?.({ pod })
      }),
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: true,
      source: kind.restored(volumeName),
    }),
    // Contents are small and change seldom; the first answer is kept (METRIC-2); only successes are kept (METRIC-6).
    usage: ({ path }, signal) =>
      translated(async () => {
        const usage = measured.get(path) ?? (await treeUsage(deps, path, signal))
        measured.set(path, usage)
        return usage
      }),
  }
}

async function mount(
  deps: ApiVolumeDeps,
  kind: ApiVolumeKind,
  request: MountRequest,
  reader: Reader,
  signal: AbortSignal,
): Promise<void> {
  const { host, clock, random } = deps
  const { spec, pod, target, ownership } = request
  const nested = nestedMountPoints(spec.name, pod)
  const payload = await kind.payload(request, reader, signal)
  const scratch = { pod, podUid: podUid(pod.metadata.uid ?? ''), name: wrapped(spec.name), target }
  const { fsGroup } = ownership
  const made = await setUpScratch(
    deps,
    { ...scratch, medium: kind.medium, minimumBytes: roomFor(payload), fsGroup },
    signal,
  )
  try {
    for (const path of nested) await host.files.mkdirBeneath(target, path, 0o755, signal)
    const applyPermissions = (own: AbortSignal) =>
      applyOwnership(host.files, { root: target, gid: fsGroup, readOnly: true }, own)
    const writer = { files: host.files, now: () => clock.now(), random: (limit: number) => random.below(limit) }
    await writeAtomically(writer, { directory: target, payload, applyPermissions }, signal)
  } catch (error) {
    // Only what this call created is removed: a failed refresh leaves a running pod its old files (WART-4).
    if (made && isNew(request)) {
      await tearDownScratch(deps, scratch, new AbortController().signal).catch(() => undefined)
    }
    throw error
  }
}

const isNew = ({ remount, foundOnDisk }: MountRequest): boolean => !remount && !foundOnDisk
const wrapped = (volumeName: string): string => `wrapped_${volumeName}`

/** Room for old and new contents together, in whole pages, and some for directories and links. */
function roomFor(payload: Payload): bigint {
  let pages = 16n
  for (const { bytes } of payload.values()) pages += 2n * BigInt(Math.ceil(bytes.length / 4096) + 1)
  return pages * 4096n
}
