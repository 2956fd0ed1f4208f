// The plugin `kubernetes.io/projected`: several API sources in one read-only directory in memory.

import { pluginName } from '../../api/names.ts'
import { refused } from '../../volume/effect.ts'
import { definePlugin } from '../../volume/plugin.ts'
import { hasSource } from '../../volume/spec.ts'
import type { ApiVolumeDeps } from './api-volume.ts'
import { createApiVolume } from './api-volume.ts'
import { objectsNamed } from './keyed-objects.ts'
import { defaultModeOf } from './modes.ts'
import { projectedPayload } from './payload.ts'
import { createTokens } from './tokens.ts'

export default definePlugin({
  name: pluginName('kubernetes.io/projected'),
  source: 'projected',
  traits: {
    takesMountOptions: false,
    remountOnPodUpdate: true,
    sourceObjects: ({ source }) =>
      (source.value.sources ?? []).flatMap(({ configMap, secret }) => [
        ...objectsNamed('ConfigMap', configMap?.name),
        ...objectsNamed('Secret', secret?.name),
      ]),
    changesByTime: ({ source }) => (source.value.sources ?? []).some((each) => each.serviceAccountToken !== undefined),
  },
  volumeName: (spec) => spec.name,
  node: (deps: ApiVolumeDeps) => {
    const tokens = createTokens(deps)
    return createApiVolume(deps, {
      medium: 'Memory',
      async payload(request, reader, signal) {
        if (!hasSource(request.spec, 'projected'))
          throw refused('WrongSource', `volume ${request.spec.name} is not projected`, 'untried')
        const { sources = [], defaultMode } = request.spec.source.value
        return projectedPayload({ ...deps, tokens, reader }, sources, request, defaultModeOf(defaultMode), signal)
      },
      restored: () => ({ kind: 'projected', value: {} }),
      unmounted: ({ pod }) => tokens.forget(pod),
    })
  },
})
