// The controllers as they ship, on the shared informers of one client.
import { createInformers } from '../client/informer.ts'
import type { Client } from '../client/client.ts'
import { createRecorder } from '../client/recorder.ts'
import type { Recorder } from '../client/recorder.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import { createAttachmentController } from '../controllers/attachment/controller.ts'
import { createBindingController } from '../controllers/binding/controller.ts'
import { createEphemeralController } from '../controllers/ephemeral/controller.ts'
import { createExpansionController } from '../controllers/expansion/controller.ts'
import { createProtectionController } from '../controllers/protection/controller.ts'
import csi from '../plugins/csi/plugin.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRegistry, inCluster } from '../volume/registry.ts'

export interface ControllersDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly forceDetachOnTimeout: boolean
}

export async function startControllers(deps: ControllersDeps): Promise<AsyncDisposable> {
  const { client, clock, random, metrics } = deps
  const log = deps.log.child({ part: 'controllers' })
  await using stack = new AsyncDisposableStack()
  const informers = stack.use(createInformers({ client, clock, log, random }))
  const recorders = new Map<string, Recorder>()
  const recorder = (component: string): Recorder => {
    const known = recorders.get(component)
    if (known) return known
    const made = stack.use(createRecorder({ client, clock, log, component }))
    recorders.set(component, made)
    return made
  }
  const plugins = createRegistry([inCluster(csi, { client, informers, clock })])
  const common = { client, informers, clock, log, metrics, recorder }
  stack.use(createBindingController({ ...common, plugins }))
  stack.use(createExpansionController({ ...common, plugins }))
  stack.use(createProtectionController({ ...common, options: { unusedCondition: false } }))
  stack.use(createEphemeralController(common))
  const attachment = stack.use(
    createAttachmentController({
      client,
      informers,
      clock,
      log,
      metrics,
      registry: plugins,
      recorder: recorder('attachdetach-controller'),
      options: { forceDetachOnTimeout: deps.forceDetachOnTimeout },
    }),
  )
  await informers.synced()
  await attachment.started
  return stack.move()
}
