// A cluster without sockets on virtual time: the real API server in memory, the real controllers and CSI jobs, and the
// model driver behind injected faults. For fault tests: everything that can go wrong, in milliseconds.
import assert from 'node:assert/strict'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createHistory } from '../../src/client/history.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import { createControllers } from '../../src/controllers/index.ts'
import { createDrivers, openDriver } from '../../src/csi/drivers.ts'
import { createModelStorage, modelDriverName } from '../../src/csi/model/driver.ts'
import type { ModelOptions } from '../../src/csi/model/driver.ts'
import { withFaults } from '../../src/csi/faults.ts'
import type { ChooseFault } from '../../src/csi/faults.ts'
import { ControllerServiceCapability_RPC_Type as ControllerRpc } from '../../src/csi/generated/csi_pb.ts'
import { directTransport } from '../../src/csi/service.ts'
import type { DriverHandlers, Transport } from '../../src/csi/service.ts'
import { CsiError } from '../../src/csi/codes.ts'
import { createListeners } from '../../src/loop/listeners.ts'
import { createCsiJobs } from '../../src/csi/sidecars/jobs.ts'
import type { CsiJobsOptions } from '../../src/csi/sidecars/jobs.ts'
import type { ControllerCapabilityName } from '../../src/csi/values.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { clusterPlugins } from '../../src/plugins/index.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import type { PersistentVolumeClaim } from '../../src/api/generated/types.ts'
import { createTestApi } from './api.ts'
import { withControllerRights } from './controller-rights.ts'
import { claimRequest } from './objects.ts'

export interface WorldOptions {
  readonly faults?: ChooseFault
  readonly topologyKey?: string
  readonly attach?: boolean
  /** Give pods their nodes. */
  readonly placement?: boolean
  readonly seed?: number
  readonly jobs?: CsiJobsOptions
  readonly model?: Pick<ModelOptions, 'modifies' | 'tellsConditions' | 'capacityBytes'>
  /** A driver that answers otherwise. */
  readonly change?: (handlers: DriverHandlers) => DriverHandlers
  /** A driver of another make: some of its capabilities, left out. */
  readonly without?: readonly ControllerCapabilityName[]
}

export async function createCsiWorld(options: WorldOptions = {}) {
  const clock = createVirtualClock()
  const random = createRandom(options.seed ?? 1)
  const { client: admin } = await createTestApi({ clock, random })
  const host = createModelHost({ clock })
  let choose: ChooseFault = options.faults ?? (() => undefined)
  const calls: string[] = []
  const storage = createModelStorage({
    clock,
    attach: options.attach ?? true,
    ...options.model,
    ...(options.topologyKey !== undefined && { topologyKey: options.topologyKey }),
  })
  const modelHandlers = withoutCapabilities(storage.onNode({ nodeId: 'node-id', host }), options.without ?? [])
  const handlers = options.change?.(modelHandlers) ?? modelHandlers
  const transport = withFaults(directTransport(handlers), clock, (rpc, earlier) => {
    calls.push(rpc)
    return choose(rpc, earlier)
  })
  const wire = breakable(transport)
  /** One life of the control plane's process: its caches and memories end with `stop`. */
  const start = () => {
    const client = withControllerRights(admin)
    const drivers = createDrivers()
    drivers.add(openDriver({ name: modelDriverName, endpoint: 'model', connect: () => wire.connection, clock }))
    const informers = createInformers({ client, clock, random: random.fork(), log: silentLog })
    const recorders: AsyncDisposable[] = []
    const recorder = (component: string) => {
      const made = createRecorder({ client, clock, log: silentLog, component })
      recorders.push(made)
      return made
    }
    const history = createHistory({ client, clock, log: silentLog, owns: () => true })
    const plugins = createRegistry(clusterPlugins({ client, informers, clock }))
    const controllers = createControllers({
      client,
      informers,
      clock,
      log: silentLog,
      metrics: createMetrics(),
      recorder,
      plugins,
      history,
      ...(options.placement && { options: { placement: {} } }),
    })
    const jobs = createCsiJobs({ client, informers, clock, log: silentLog, drivers, history }, options.jobs)
    return {
      jobs,
      async stop() {
        const stopped = Promise.all([jobs, controllers, informers, history].map((part) => part[Symbol.asyncDispose]()))
        await clock.advance(5_000)
        await stopped
        for (const each of recorders) {
          const over = each[Symbol.asyncDispose]()
          await clock.advance(3_000)
          await over
        }
      },
    }
  }
  return {
    clock,
    client: admin,
    storage,
    calls,
    host,
    handlers,
    start,
    /** The driver's process ends, and is started again: until then nobody answers. */
    driverDown: wire.down,
    driverUp: wire.up,
    setFaults: (next: ChooseFault) => void (choose = next),
    events: async () =>
      (await admin.list('Event')).items.map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
  }
}

/** A connection that is lost and made again when the test says so, as a channel to a driver that restarts. */
export function breakable(transport: Transport) {
  const [lost, ready] = [createListeners<[]>(), createListeners<[]>()]
  let isUp = true
  return {
    connection: {
      transport: (async (method, request, options) => {
        if (isUp) return transport(method, request, options)
        throw new CsiError('UNAVAILABLE', 'there is no socket', { rpc: method.name, code: 'DriverUnreachable' })
      }) satisfies Transport,
      onLost: (listener: () => void) => lost.listen(listener),
      onReady: (listener: () => void) => ready.listen(listener),
      [Symbol.dispose]: () => {},
    },
    down() {
      isUp = false
      lost.tell()
    },
    up() {
      isUp = true
      ready.tell()
    },
  }
}

export function withoutCapabilities(
  handlers: DriverHandlers,
  names: readonly ControllerCapabilityName[],
): DriverHandlers {
  const ask = handlers.controller?.controllerGetCapabilities
  if (!ask || names.length === 0) return handlers
  const hidden = new Set<number>(names.map((name) => ControllerRpc[name]))
  const controllerGetCapabilities: typeof ask = async (request, signal) => {
    const { capabilities = [] } = await ask(request, signal)
    return {
      capabilities: capabilities.filter(({ type }) => type?.case !== 'rpc' || !hidden.has(type.value.type ?? 0)),
    }
  }
  return { ...handlers, controller: { ...handlers.controller, controllerGetCapabilities } }
}

export type CsiWorld = Awaited<ReturnType<typeof createCsiWorld>>

/** The objects every scenario starts from: a node with the driver, its CSIDriver, a class. */
export async function furnish(
  { client }: CsiWorld,
  options: { readonly waits?: boolean; readonly attachRequired?: boolean } = {},
) {
  const node = await client.create('Node', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { zone: 'a' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  })
  await client.create('CSINode', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: {
      name: 'n1',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: node.metadata.uid ?? '' }],
    },
    spec: { drivers: [{ name: modelDriverName, nodeID: 'node-id', topologyKeys: ['zone'] }] },
  })
  await client.create('CSIDriver', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: modelDriverName },
    spec: { attachRequired: options.attachRequired ?? true },
  })
  await client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'model' },
    provisioner: modelDriverName,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    volumeBindingMode: options.waits ? 'WaitForFirstConsumer' : 'Immediate',
  })
}

export function modelClaim(name: string, annotations: Record<string, string> = {}): PersistentVolumeClaim {
  return claimRequest(name, { storageClassName: 'model' }, { namespace: 'default', annotations })
}

/** Moves the clock, a second at a time, until this holds. */
export async function eventually(world: CsiWorld, what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (await holds()) return
    await world.clock.advance(1_000)
  }
  assert.fail(`${what} did not happen; events: ${(await world.events()).join(' | ')}`)
}
