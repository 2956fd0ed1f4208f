// The plugin `kubernetes.io/configmap`: the keys of a ConfigMap as files on disk.

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { ApiVolumeDeps } from '../projected/api-volume.ts'
import { createApiVolume } from '../projected/api-volume.ts'
import { configMapPayload, objectsNamed } from '../projected/keyed-objects.ts'
import { defaultModeOf } from '../projected/modes.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/configmap'),
  source: 'configMap',
  traits: {
    takesMountOptions: false,
    remountOnPodUpdate: true,
    sourceObjects: ({ source }) => objectsNamed('ConfigMap', source.value.name),
  },
  volumeName: (spec) => `${spec.name}/${spec.source.value.name ?? ''}`,
  node: (deps: ApiVolumeDeps) =>
    createApiVolume(deps, {
      medium: '',
      async payload({ spec, pod }, reader, signal) {
        if (!hasSource(spec, 'configMap'))
          throw refused('WrongSource', `volume ${spec.name} is no configMap`, 'untried')
        const { value } = spec.source
        const source = { ...value, name: value.name ?? '' }
        const defaultMode = defaultModeOf(value.defaultMode)
        return configMapPayload(reader, { source, namespace: pod.metadata.namespace ?? '', defaultMode }, signal)
      },
      restored: () => ({ kind: 'configMap', value: {} }),
    }),
})
