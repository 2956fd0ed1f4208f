// The plugin `kubernetes.io/git-repo`: known, so that users get an answer, and always refused (GIT-1, CVE-2024-10220).

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { tearDownScratch } from '../shared/scratch.ts'
import type { NodePluginDeps } from '../shared/deps.ts'
import { translated } from '../shared/errors.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/git-repo'),
  source: 'gitRepo',
  traits: { takesMountOptions: false, remountOnPodUpdate: false },
  volumeName: (spec) => spec.name,
  node: (deps: Pick<NodePluginDeps, 'host' | 'root'>): NodePlugin => ({
    mount: async () => {
      throw refused(
        'NotSupported',
        'git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`',
        'none',
      )
    },
    // An older agent may have left one behind.
    unmount: ({ volumeName, pod, target }, signal) =>
      translated(() => tearDownScratch(deps, { podUid: pod, name: `wrapped_${volumeName}`, target }, signal)),
    restore: async ({ volumeName }) => ({
      name: volumeName,
      from: 'pod',
      mode: 'Filesystem',
      readOnly: false,
      source: { kind: 'gitRepo', value: { repository: '' } },
    }),
  }),
})
