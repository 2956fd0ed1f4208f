// The plugin `kubernetes.io/empty-dir`: a directory that lives as long as its pod, on disk, in memory or in huge pages.

import { podUid } from '../../api/names.ts'
import { bytesOfQuantity } from '../../api/quantity.ts'
import { refused } from '../../volume/effect.ts'
import type { NodePlugin, SizeLimit, Usage } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated, unlessLeft } from '../shared/errors.ts'
import { emptyDirName, isLeft, resizeMemory, setUpScratch, tearDownScratch } from '../shared/scratch.ts'
import { treeUsage } from '../shared/usage.ts'

type Deps = Pick<NodePluginDeps, 'host' | 'root' | 'allocatable' | 'noSwap' | 'clock'>

export default definePlugin({
  name: emptyDirName,
  source: 'emptyDir',
  traits: { takesMountOptions: false, remountOnPodUpdate: false, sizeLimit },
  volumeName: (spec) => spec.name,
  supports: (spec) => spec.from === 'pod',
  node: (deps: Deps): NodePlugin => ({
    mount: ({ spec, pod, target, ownership }, signal) =>
      unlessLeft(
        async () => {
          const { value } = sourceOf(spec)
          const facts = { pod, podUid: podUid(pod.metadata.uid ?? ''), name: spec.name, target }
          await setUpScratch(
            deps,
            { ...facts, medium: value.medium ?? '', sizeLimit: value.sizeLimit, fsGroup: ownership.fsGroup },
            signal,
          )
        },
        isLeft(deps.host, target),
      ),
    unmount: ({ volumeName, pod, target }, signal) =>
      translated(() => tearDownScratch(deps, { podUid: pod, name: volumeName, target }, signal)),
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: false,
      source: { kind: 'emptyDir', value: {} },
    }),
    usage: ({ path }, signal): Promise<Usage> => translated(() => treeUsage(deps, path, signal)),
    // Only memory volumes have a size of their own (PLUG-5).
    expand: ({ spec, path, newBytes }, signal) =>
      translated(async () => {
        if (sourceOf(spec).value.medium !== 'Memory')
          throw refused('NotSupported', 'only memory volumes can be resized', 'none', ['notSupported'])
        await resizeMemory(deps, path ?? '', newBytes, signal)
        return newBytes
      }),
    requiresResize: () => false,
  }),
})

/** In memory the kernel enforces the limit; on disk nobody does (EMPTY-10). */
function sizeLimit({ name, source }: VolumeSpec<'emptyDir'>): SizeLimit | undefined {
  const { medium, sizeLimit: quantity } = source.value
  if (medium || quantity === undefined) return undefined
  const bytes = bytesOfQuantity(quantity)
  const exceededMessage = `Usage of EmptyDir volume "${name}" exceeds the limit "${quantity}". `
  return bytes > 0n ? { bytes, exceededMessage } : undefined
}

function sourceOf(spec: VolumeSpec) {
  if (!hasSource(spec, 'emptyDir')) throw refused('WrongSource', `volume ${spec.name} is no emptyDir`, 'untried')
  return spec.source
}
