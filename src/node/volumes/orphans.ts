// Who cleans what no plugin could explain after a restart? The mode is kept, failures are tried again with back-off, and
// nothing is touched that a pod still wants (RCS-8, WA-13).
import { join } from 'node:path/posix'
import type { PluginName, PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../../host/host.ts'
import { cleanMountPoint, isThere } from '../../host/clean-mount-point.ts'
import { cleanSubPaths } from '../../host/subpaths.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { podDirectory } from '../../volume/paths.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { DesiredWorld } from './desired.ts'
import type { Orphan } from './restore.ts'

type OrphanEvent =
  | { readonly kind: 'found'; readonly orphan: Orphan }
  | { readonly kind: 'cleaned'; readonly path: string }

/** Orphans by their path. */
export type OrphanWorld = World<string, Orphan, OrphanEvent>

export function createOrphanWorld(): OrphanWorld {
  return createWorld<string, Orphan, OrphanEvent>(
    (event) => (event.kind === 'found' ? event.orphan.path : event.path),
    (_, event) => (event.kind === 'found' ? event.orphan : undefined),
  )
}

export interface OrphanCleaner extends AsyncDisposable {
  /** Unmounts may go ahead from now on. */
  begin(): void
  /** The pod's volumes are resolved, its containers have ended, or it is gone. */
  wake(pod: PodUid): void
  /** What is left of this plugin's volumes need not wait for a back-off any longer. */
  retry(plugin: PluginName): void
}

export interface OrphanDeps {
  readonly host: Host
  readonly registry: Registry<NodePlugin>
  readonly root: string
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly desired: DesiredWorld
  readonly orphans: OrphanWorld
  /** Is it known which volumes this pod wants, and does nothing of it run? Before that an orphan may be in use (WA-8, DES-9). */
  isFree(pod: PodUid): boolean
}

export function createOrphanCleaner(deps: OrphanDeps): OrphanCleaner {
  const { clock, log, desired, orphans } = deps
  let begun = false
  const tried = deps.metrics.counter(
    'force_cleaned_failed_volume_operations_total',
    'Volumes force cleaned after restart',
  )
  const failed = deps.metrics.counter('force_cleaned_failed_volume_operation_errors_total', 'Failures of that cleaning')
  const loop = createKeyLoop<string>({
    name: 'orphans',
    clock,
    workers: 4,
    backoff: { firstMs: 1_000, capMs: 122_000 },
    look: (path, signal) => look(path, signal),
    onError(path, error) {
      failed.inc()
      log.warn('orphaned volume could not be cleaned', { path, error })
    },
  })
  const look = async (path: string, signal: AbortSignal) => {
    const orphan = orphans.items.get(path)
    if (!orphan || !deps.isFree(orphan.pod)) return
    if (!isWanted(desired, orphan)) {
      tried.inc()
      await clean(deps, orphan, signal)
      log.info('orphaned volume cleaned', { path })
    }
    orphans.apply({ kind: 'cleaned', path })
  }
  return {
    begin() {
      begun = true
      for (const path of orphans.items.keys()) loop.wake(path)
    },
    wake(pod) {
      if (!begun) return
      for (const orphan of orphans.items.values()) if (orphan.pod === pod) loop.wake(orphan.path)
    },
    retry(plugin) {
      if (!begun) return
      for (const orphan of orphans.items.values()) {
        if (orphan.plugin !== plugin) continue
        loop.forget(orphan.path)
        loop.wake(orphan.path)
      }
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

/** A volume that its pod wants is left to the mount, which knows what to do. */
function isWanted(desired: DesiredWorld, { pod, volumeName }: Orphan): boolean {
  for (const { pods } of desired.items.values()) if (pods.get(pod)?.spec.name === volumeName) return true
  return false
}

/** The plugin if there is one, else the bare minimum: unmount what is mounted there and remove the empty directory. */
async function clean({ host, registry, root }: OrphanDeps, orphan: Orphan, signal: AbortSignal): Promise<void> {
  const { pod, plugin, volumeName, mode, path } = orphan
  if (mode === 'Filesystem') await cleanSubPaths(host, podDirectory(root, pod), volumeName, signal)
  if (!(await isThere(host, path, signal))) return
  if (mode === 'Block') {
    if ((await host.files.lstat(path, signal)).kind === 'symlink') await host.files.unlink(path, signal)
    return
  }
  const known = registry.all().find(({ name }) => name === plugin)
  if (known) await known.plugin.unmount({ volumeName, pod, target: path }, signal)
  else {
    await cleanMountPoint(host, join(path, 'mount'), {}, signal)
    await cleanMountPoint(host, path, {}, signal)
  }
}
