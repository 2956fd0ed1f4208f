// How do the real parts run inside the simulator? The real agent on a model host, the real controllers, the real CSI jobs
// against the CSI model driver; every call to the driver is watched, and may be lost.
import { fromBinary } from '@bufbuild/protobuf'
import { nodeName } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import type { History } from '../../client/history.ts'
import { createInformers } from '../../client/informer.ts'
import { createRecorder } from '../../client/recorder.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { AttachmentOptions } from '../../controllers/attachment/controller.ts'
import { createControllers } from '../../controllers/index.ts'
import { createDrivers, openDriver } from '../../csi/drivers.ts'
import type { Drivers } from '../../csi/drivers.ts'
import { createModelStorage, modelConnection } from '../../csi/model/driver.ts'
import { withFaults } from '../../csi/faults.ts'
import { directTransport } from '../../csi/service.ts'
import type { Transport } from '../../csi/service.ts'
import { createCsiJobs } from '../../csi/sidecars/jobs.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import type { ModelHost } from '../../host/model/model-host.ts'
import { createAgent } from '../../node/agent.ts'
import { createModelNetwork } from '../../host/model/network.ts'
import { createModelMachine, createModelRuntime } from '../../node/runtime/model.ts'
import type { ModelMachine } from '../../node/runtime/model.ts'
import { clusterPlugins, csiNodePlugin, nodePlugins } from '../../plugins/index.ts'
import type { Log } from '../../telemetry/log.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createRegistry } from '../../volume/registry.ts'
import type { Faults, Life } from '../faults.ts'
import { modelDriver } from '../model/plugin.ts'
import type { ModelStorage as StorageView } from '../model/storage.ts'

export interface RealDeps {
  readonly clock: Clock
  readonly random: Random
  readonly faults: Faults
  /** What the invariants see of the storage. */
  readonly view: StorageView
  onStaged(node: string, handle: string): void
  onUnstaged(node: string, handle: string): void
  beforeUnpublish(node: string, handle: string): Promise<void>
  refused(details: string): void
}

/** The root directory of every node's agent. */
export const nodeRoot = '/var/lib/node'

export interface RealStorage {
  /** Makes a volume in the storage and answers its handle. */
  createVolume(name: string, exclusive: boolean): Promise<string>
  driversFor(node: string, life: Life): Drivers
  readonly hosts: ReadonlyMap<string, ModelHost>
  readonly machines: ReadonlyMap<string, ModelMachine>
}

const never = new AbortController().signal

export function createRealStorage(deps: RealDeps, nodeNames: readonly string[]): RealStorage {
  const { clock } = deps
  const storage = createModelStorage({ clock, name: modelDriver })
  const hosts = new Map(nodeNames.map((name) => [name, createModelHost({ clock })]))
  const machines = new Map(nodeNames.map((name) => [name, createModelMachine()]))
  const transports = new Map(
    nodeNames.map((name) => {
      const handlers = storage.onNode({ nodeId: name, host: hosts.get(name)!.quiet })
      return [name, watched(directTransport(handlers), name, deps)] as const
    }),
  )
  const open = (transport: Transport) =>
    openDriver({ name: modelDriver, endpoint: modelDriver, connect: () => modelConnection(transport), clock })
  return {
    hosts,
    machines,
    async createVolume(name, exclusive) {
      const mode = exclusive ? ('SINGLE_NODE_WRITER' as const) : ('MULTI_NODE_MULTI_WRITER' as const)
      const capability = { access: { kind: 'mount' as const, fsType: '', mountFlags: [] }, mode }
      const calls = open(transports.values().next().value!).controller(10_000)
      const volume = await calls.createVolume(
        { name, requiredBytes: 1n << 30n, capabilities: [capability as never] },
        never,
      )
      return volume.volumeId
    },
    driversFor(node, life) {
      const drivers = createDrivers()
      drivers.add(open(faulty(transports.get(node)!, deps, life)))
      return drivers
    },
  }
}

/** Tells the invariants what the driver really did, whether or not its answer arrives. */
function watched(transport: Transport, self: string, deps: RealDeps): Transport {
  return async (method, bytes, options) => {
    const { volumeId = '', nodeId = '' } = fromBinary(method.input, bytes) as { volumeId?: string; nodeId?: string }
    if (method.name === 'ControllerUnpublishVolume') await deps.beforeUnpublish(nodeId, volumeId)
    try {
      const answer = await transport(method, bytes, options)
      switch (method.name) {
        case 'ControllerPublishVolume':
          deps.view.publish(volumeId, nodeId)
          break
        case 'ControllerUnpublishVolume':
          deps.view.unpublish(volumeId, nodeId)
          break
        case 'NodeStageVolume':
          deps.onStaged(self, volumeId)
          break
        case 'NodeUnstageVolume':
          deps.onUnstaged(self, volumeId)
          break
      }
      return answer
    } catch (error) {
      // A well-behaved driver refuses what should never have been asked of it.
      if (method.name === 'ControllerPublishVolume') deps.refused(`${volumeId} on ${nodeId}: ${String(error)}`)
      throw error
    }
  }
}

function faulty(transport: Transport, { clock, random, faults }: RealDeps, life: Life): Transport {
  const own = random.fork()
  const alive: Transport = (method, bytes, options) =>
    life.alive ? transport(method, bytes, options) : new Promise(() => {})
  return withFaults(alive, clock, () => {
    if (faults.calm || !own.chance(faults.rates.storage)) return undefined
    return own.pick([
      { kind: 'refused', status: 'UNAVAILABLE' },
      { kind: 'refused', status: 'INTERNAL' },
      { kind: 'answerLost', status: 'DEADLINE_EXCEEDED' },
      { kind: 'twice' },
      { kind: 'late', ms: 1 + own.below(3_000) },
    ] as const)
  })
}

export interface PartDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly life: Life
  readonly history?: History
}

/** All controllers as they ship. */
export function startControllers(deps: PartDeps, attachment: AttachmentOptions | undefined) {
  const { client, clock } = deps
  const informers = createInformers(deps)
  const recorders = new Map<string, Recorder>()
  const recorder = (component: string) =>
    recorders.getOrInsertComputed(component, () => createRecorder({ ...deps, component }))
  const plugins = createRegistry(clusterPlugins({ client, informers, clock }))
  const controllers = createControllers({
    ...deps,
    informers,
    recorder,
    plugins,
    ...(attachment ? { options: { attachment } } : {}),
  })
  return {
    attachment: controllers.attachment,
    async [Symbol.asyncDispose]() {
      await controllers[Symbol.asyncDispose]()
      await informers[Symbol.asyncDispose]()
      await deps.history?.[Symbol.asyncDispose]()
      await Promise.all(Array.from(recorders.values(), (each) => each[Symbol.asyncDispose]()))
    },
  }
}

/** The driver's jobs: the real attacher among them. */
export function startJobs(deps: PartDeps, drivers: Drivers): AsyncDisposable {
  const informers = createInformers(deps)
  const jobs = createCsiJobs({ ...deps, informers, drivers })
  return {
    async [Symbol.asyncDispose]() {
      await jobs[Symbol.asyncDispose]()
      await informers[Symbol.asyncDispose]()
      await deps.history?.[Symbol.asyncDispose]()
    },
  }
}

/** One life of a real agent. Starting may fail while the server is out of reach; it is tried until the life ends. */
export function startAgent(deps: PartDeps & { readonly name: string }, storage: RealStorage): AsyncDisposable {
  const { name, client, clock, random, life } = deps
  const stopping = new AbortController()
  const root = nodeRoot
  const host = tied(storage.hosts.get(name)!, life)
  const runtime = tied(createModelRuntime({ clock, machine: storage.machines.get(name)! }), life)
  const informers = createInformers(deps)
  const drivers = storage.driversFor(name, life)
  const pluginDeps = {
    host,
    client,
    clock,
    random,
    log: silentLog,
    root,
    nodeName: name,
    drivers,
    csiDrivers: informers.of('CSIDriver'),
    allocatable: () => ({ memory: '1Gi' }),
  }
  const make = () =>
    createAgent({
      ...{
        node: nodeName(name),
        root,
        client,
        clock,
        random,
        log: silentLog,
        metrics: createMetrics(),
        host,
        network: createModelNetwork(),
        runtime,
        hostAddress: '',
      },
      registry: createRegistry([...nodePlugins(pluginDeps), csiNodePlugin(pluginDeps)]),
      ...(deps.history ? { history: deps.history } : {}),
      description: { labels: {}, addresses: [], capacity: { memory: '1Gi' }, allocatable: { memory: '1Gi' }, info },
    })
  const starting = (async () => {
    await informers.synced()
    while (life.alive) {
      const agent = make()
      try {
        await agent.start(stopping.signal)
        return agent
      } catch {
        await Promise.resolve(agent[Symbol.asyncDispose]()).catch(() => {})
        await clock.sleep(1_000, stopping.signal)
      }
    }
    return undefined
  })().catch(() => undefined)
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the agent is stopping'))
      const agent = await starting
      await agent?.[Symbol.asyncDispose]()
      await informers[Symbol.asyncDispose]()
      await deps.history?.[Symbol.asyncDispose]()
    },
  }
}

/** Calls through this object never return once the life is over; nested parts of a port die with it. */
function tied<T extends object>(port: T, life: Life): T {
  return new Proxy(port, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver)
      if (typeof value === 'function') {
        return (...parameters: unknown[]) => (life.alive ? value.apply(target, parameters) : new Promise(() => {}))
      }
      return typeof value === 'object' && value !== null ? tied(value, life) : value
    },
  })
}

const info = {
  machineID: '',
  systemUUID: '',
  bootID: '',
  kernelVersion: '',
  osImage: '',
  kubeletVersion: '',
  kubeProxyVersion: '',
  operatingSystem: 'linux',
  architecture: 'amd64',
}
