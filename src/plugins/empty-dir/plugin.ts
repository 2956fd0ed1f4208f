// The plugin `kubernetes.io/empty-dir`: a directory that lives as long as its pod, on disk, in memory or in huge pages.

import { podUid } from '../../api/names.ts'
import type { NodePlugin, Usage } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { refuse, translated, unlessLeft } from '../shared/errors.ts'
import { emptyDirName, isLeft, resizeMemory, setUpScratch, tearDownScratch } from '../shared/scratch.ts'
import { treeUsage } from '../shared/usage.ts'

type Deps = Pick<NodePluginDeps, 'host' | 'root' | 'allocatable' | 'noSwap' | 'clock'>

export default definePlugin({
  name: emptyDirName,
  source: 'emptyDir',
  traits: { mountOptions: false, remountOnPodUpdate: false },
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
    // PLUG-5: only memory volumes have a size of their own.
    expand: ({ spec, path, newBytes }, signal) =>
      translated(async () => {
        if (sourceOf(spec).value.medium !== 'Memory')
          throw refuse('NotSupported', 'only memory volumes can be resized', 'none', ['notSupported'])
        await resizeMemory(deps, path ?? '', newBytes, signal)
        return newBytes
      }),
    requiresResize: () => false,
  }),
})

function sourceOf(spec: VolumeSpec) {
  if (!hasSource(spec, 'emptyDir')) throw refuse('WrongSource', `volume ${spec.name} is no emptyDir`, 'untried')
  return spec.source
}
