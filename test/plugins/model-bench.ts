// A model host with a node's directories, and plugins on it.

import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import type { NodePluginDeps } from '../../src/plugins/shared/deps.ts'
import type { PluginBench } from './bench.ts'
import { createPluginBench, signal } from './bench.ts'

export const root = '/var/lib/kubelet'

export interface ModelBench extends PluginBench {
  readonly host: ModelHost
}

export async function createModelBench(more: Partial<NodePluginDeps> = {}): Promise<ModelBench> {
  const host = createModelHost({ clock: createVirtualClock() })
  for (const uid of ['uid-1', 'uid-2']) {
    for (const folder of ['volumes', 'plugins'])
      await host.files.mkdirAll(`${root}/pods/${uid}/${folder}`, 0o750, signal)
  }
  await host.files.mkdirAll(`${root}/plugins`, 0o750, signal)
  return { ...(await createPluginBench(host, root, more)), host }
}
