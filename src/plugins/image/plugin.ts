// The plugin `kubernetes.io/image`: the files of an image, read-only (IMG-1). Nothing is pulled here: the runtime's host
// names the directory where an image lies unpacked, and the volume is that directory.

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated } from '../shared/errors.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/image'),
  source: 'image',
  traits: { takesMountOptions: false, remountOnPodUpdate: false },
  volumeName: (spec) => spec.source.value.reference ?? '',
  node: ({ host, imageRoots }: Pick<NodePluginDeps, 'host' | 'imageRoots'>): NodePlugin => {
    const rootOf = (spec: VolumeSpec): string | undefined => imageRoots?.(referenceOf(spec))
    return {
      mount: ({ spec }, signal) =>
        translated(async () => {
          const root = rootOf(spec)
          if (root === undefined)
            throw refused(
              'ImageMissing',
              `image "${referenceOf(spec)}" is not unpacked on this node, and nothing here pulls images`,
              'untried',
            )
          if ((await host.files.stat(root, signal)).kind !== 'directory')
            throw refused('ImageBroken', `the root of image "${referenceOf(spec)}" is not a directory`, 'none')
        }),
      unmount: async () => undefined,
      path: (spec, target) => rootOf(spec) ?? target,
      readOnly: () => true,
      restore: async ({ volumeName }) => ({
        name: volumeName,
        from: 'pod',
        mode: 'Filesystem',
        readOnly: true,
        source: { kind: 'image', value: {} },
      }),
    }
  },
})

function referenceOf(spec: VolumeSpec): string {
  return hasSource(spec, 'image') ? (spec.source.value.reference ?? '') : ''
}
