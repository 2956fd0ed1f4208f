// A cluster without sockets on virtual time: the real API server in memory, the real controllers and CSI jobs, and the
// model driver behind injected faults. For fault tests: everything that can go wrong, in milliseconds.
import assert from 'node:assert/strict'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { createHistory } from '../../src/client/history.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import { createControllers } from '../../src/controllers/index.ts'
import { createDrivers, openDriver } from '../../src/csi/drivers.ts'
import { createModelStorage, modelConnection, modelDriverName } from '../../src/csi/model/driver.ts'
import type { ModelOptions } from '../../src/csi/model/driver.ts'
import { withFaults } from '../../src/csi/model/faults.ts'
import type { ChooseFault } from '../../src/csi/model/faults.ts'
import { ControllerServiceCapability_RPC_Type as ControllerRpc } from '../../src/csi/proto/csi_pb.ts'
import { directTransport } from '../../src/csi/service.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { createCsiJobs } from '../../src/csi/sidecars/jobs.ts'
import type { CsiJobsOptions } from '../../src/csi/sidecars/jobs.ts'
import type { ControllerCapabilityName } from '../../src/csi/values.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { clusterPlugins } from '../../src/plugins/index.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createApiServer } from '../../src/apiserver/start.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'

export interface WorldOptions {
  readonly faults?: ChooseFault
  readonly topologyKey?: string
  readonly attach?: boolean
  readonly seed?: number
  readonly jobs?: CsiJobsOptions
  readonly model?: Pick<ModelOptions, 'modifies' | 'tellsConditions'>
  /** A driver that answers otherwise. */
  readonly change?: (handlers: DriverHandlers) => DriverHandlers
  /** A driver of another make: some of its capabilities, left out. */
  readonly without?: readonly ControllerCapabilityName[]
}

export async function createCsiWorld(options: WorldOptions = {}) {
  const clock = createVirtualClock()
  const random = createRandom(options.seed ?? 1)
  const store = createMemoryStore()
  const server = await createApiServer({
    store,
    clock,
    random,
    log: silentLog,
    tokens: [],
    signingKey: new Uint8Array(32).fill(7),
  })
  const client = createInProcessClient(server.api())
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
  /** One life of the control plane's process: its caches and memories end with `stop`. */
  const start = () => {
    const drivers = createDrivers()
    drivers.add(
      openDriver({ name: modelDriverName, endpoint: 'model', connect: () => modelConnection(transport), clock }),
    )
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
    client,
    storage,
    calls,
    host,
    handlers,
    start,
    setFaults: (next: ChooseFault) => void (choose = next),
    events: async () =>
      (await client.list('Event')).items.map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
  }
}

function withoutCapabilities(handlers: DriverHandlers, names: readonly ControllerCapabilityName[]): DriverHandlers {
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

export function modelClaim(name: string, annotations: Record<string, string> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', annotations },
    spec: {
      accessModes: ['ReadWriteOnce' as const],
      storageClassName: 'model',
      resources: { requests: { storage: '1Gi' } },
    },
  }
}

/** Moves the clock, a second at a time, until this holds. */
export async function eventually(world: CsiWorld, what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (await holds()) return
    await world.clock.advance(1_000)
  }
  assert.fail(`${what} did not happen; events: ${(await world.events()).join(' | ')}`)
}
