// The plugin `kubernetes.io/downward-api`: what a pod knows about itself, as files in memory.

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { ApiVolumeDeps } from '../projected/api-volume.ts'
import { createApiVolume } from '../projected/api-volume.ts'
import { downwardPayload } from '../projected/downward-api.ts'
import { defaultModeOf } from '../projected/modes.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/downward-api'),
  source: 'downwardAPI',
  traits: { takesMountOptions: false, remountOnPodUpdate: true },
  volumeName: (spec) => spec.name,
  node: (deps: ApiVolumeDeps) =>
    createApiVolume(deps, {
      medium: 'Memory',
      async payload({ spec, pod }) {
        if (!hasSource(spec, 'downwardAPI'))
          throw refused('WrongSource', `volume ${spec.name} is no downwardAPI`, 'untried')
        const { items = [], defaultMode } = spec.source.value
        return downwardPayload(items, { pod, defaultMode: defaultModeOf(defaultMode), allocatable: deps.allocatable() })
      },
      restored: () => ({ kind: 'downwardAPI', value: {} }),
    }),
})
