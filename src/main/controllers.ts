// The controllers as they ship, on the shared informers of one client.
import type { Client } from '../client/client.ts'
import type { History } from '../client/history.ts'
import type { Informers } from '../client/informer.ts'
import { createInformers } from '../client/informer.ts'
import { createRecorder } from '../client/recorder.ts'
import type { Recorder } from '../client/recorder.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import { createControllers } from '../controllers/index.ts'
import { createNodeHealthController } from '../controllers/node-health/controller.ts'
import type { PlacementOptions } from '../controllers/placement/controller.ts'
import type { Host } from '../host/host.ts'
import type { FlexClusterDeps } from '../plugins/flex-volume/plugin.ts'
import type { FlexProberDeps } from '../plugins/flex-volume/probe.ts'
import { clusterPlugins } from '../plugins/index.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRegistry } from '../volume/registry.ts'
import { startFlexAttachers } from '../installation/flex-attachers.ts'

export interface ControllersDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  /** For hostPath volumes with policy Delete (RCL-6). */
  readonly host: Pick<Host, 'files'>
  /** Where FlexVolume drivers lie and who calls them; without it nobody looks for any. */
  readonly flexDrivers?: FlexClusterDeps & Pick<FlexProberDeps, 'host' | 'directory'>
  readonly forceDetachOnTimeout: boolean
  /** Give pods their nodes; absent where somebody else does (`--bare`). */
  readonly placement?: PlacementOptions
  readonly history?: History
}

export interface StartedControllers extends AsyncDisposable {
  readonly informers: Informers
  recorder(component: string): Recorder
}

export async function startControllers(deps: ControllersDeps): Promise<StartedControllers> {
  const { client, clock, random, metrics, host } = deps
  const log = deps.log.child({ part: 'controllers' })
  await using stack = new AsyncDisposableStack()
  const informers = stack.use(createInformers({ client, clock, log, random }))
  const recorders = new Map<string, Recorder>()
  const recorder = (component: string) =>
    recorders.getOrInsertComputed(component, () => stack.use(createRecorder({ client, clock, log, component })))
  const plugins = createRegistry(clusterPlugins({ client, informers, clock, hostPathProvisioning: { host, random } }))
  if (deps.flexDrivers) stack.use(startFlexAttachers({ clock, log, ...deps.flexDrivers }, plugins))
  const controllers = stack.use(
    createControllers({
      client,
      informers,
      clock,
      log,
      metrics,
      recorder,
      ...(deps.history ? { history: deps.history } : {}),
      plugins,
      options: {
        attachment: { forceDetachOnTimeout: deps.forceDetachOnTimeout },
        ...(deps.placement ? { placement: deps.placement } : {}),
      },
    }),
  )
  stack.use(createNodeHealthController({ client, informers, clock, log }))
  await controllers.started
  const kept = stack.move()
  return { informers, recorder, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
