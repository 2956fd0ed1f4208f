// The plugin `kubernetes.io/secret`: the keys of a Secret as files in memory.

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { ApiVolumeDeps } from '../projected/api-volume.ts'
import { createApiVolume } from '../projected/api-volume.ts'
import { objectsNamed, secretPayload } from '../projected/keyed-objects.ts'
import { defaultModeOf } from '../projected/modes.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/secret'),
  source: 'secret',
  traits: {
    takesMountOptions: false,
    remountOnPodUpdate: true,
    sourceObjects: ({ source }) => objectsNamed('Secret', source.value.secretName),
  },
  volumeName: (spec) => spec.source.value.secretName ?? '',
  node: (deps: ApiVolumeDeps) =>
    createApiVolume(deps, {
      medium: 'Memory',
      async payload({ spec, pod }, reader, signal) {
        if (!hasSource(spec, 'secret')) throw refused('WrongSource', `volume ${spec.name} is no secret`, 'untried')
        const { value } = spec.source
        const source = { name: value.secretName ?? '', items: value.items, optional: value.optional }
        const defaultMode = defaultModeOf(value.defaultMode)
        return secretPayload(reader, { source, namespace: pod.metadata.namespace ?? '', defaultMode }, signal)
      },
      restored: (volumeName) => ({ kind: 'secret', value: { secretName: volumeName } }),
    }),
})
