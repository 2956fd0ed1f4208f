// Which FlexVolume drivers attach and grow volumes? Those in the same directory that nodes look into (FLEX-1, FLEX-2).
// Most machines have none: nothing but a watch is kept for them before the first one is there.
import { mkdirSync, readdirSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import type { FlexClusterDeps } from '../plugins/flex-volume/plugin.ts'
import type { FlexProber, FlexProberDeps } from '../plugins/flex-volume/probe.ts'
import { probeFlexAttachers } from '../plugins/index.ts'
import type { ClusterPlugin } from '../volume/plugin.ts'
import type { Registry } from '../volume/registry.ts'

export function startFlexAttachers(
  deps: FlexClusterDeps & Pick<FlexProberDeps, 'host' | 'clock' | 'log' | 'directory'>,
  registry: Pick<Registry<ClusterPlugin>, 'add' | 'drop'>,
): AsyncDisposable {
  const { directory, log } = deps
  const stopping = new AbortController()
  let prober: Promise<FlexProber | void> | undefined
  let watcher: FSWatcher | undefined
  const begin = () => {
    watcher?.close()
    prober ??= probeFlexAttachers(deps, registry, stopping.signal).catch((error: unknown) => {
      log.warn('FlexVolume drivers could not be looked for', { directory, error })
    })
  }
  try {
    mkdirSync(directory, { recursive: true, mode: 0o755 })
    watcher = watch(directory, { persistent: false }, begin).on('error', begin)
    if (readdirSync(directory).length > 0) begin()
  } catch (error) {
    // A control plane that is not root cannot read the drivers, and could not run them.
    log.debug('no FlexVolume drivers', { directory, error })
  }
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the control plane is stopping'))
      watcher?.close()
      const opened = await prober
      await opened?.[Symbol.asyncDispose]()
    },
  }
}
