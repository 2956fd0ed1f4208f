// A whole cluster on virtual time: the real API server, all controllers, the CSI jobs and one real agent per node, over the
// model driver, model hosts and model containers. For tests of what `why` says: break something, ask, mend it, ask again.
import { nodeName } from '../../src/api/names.ts'
import type { CSIDriver, PersistentVolumeClaim, Pod, StorageClass } from '../../src/api/generated/types.ts'
import { createHistory } from '../../src/client/history.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import { createRandom } from '../../src/clock/random.ts'
import type { VirtualClock } from '../../src/clock/virtual-clock.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { AttachmentOptions } from '../../src/controllers/attachment/controller.ts'
import { createControllers } from '../../src/controllers/index.ts'
import { createNodeHealthController } from '../../src/controllers/node-health/controller.ts'
import { createDrivers, openDriver } from '../../src/csi/drivers.ts'
import { createModelStorage, modelDriverName } from '../../src/csi/model/driver.ts'
import type { ModelOptions } from '../../src/csi/model/driver.ts'
import { withFaults } from '../../src/csi/faults.ts'
import type { ChooseFault } from '../../src/csi/faults.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import { directTransport } from '../../src/csi/service.ts'
import { createCsiJobs } from '../../src/csi/sidecars/jobs.ts'
import type { ControllerCapabilityName } from '../../src/csi/values.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createModelNetwork } from '../../src/host/model/network.ts'
import { createAgent } from '../../src/node/agent.ts'
import type { ContainerScript } from '../../src/node/runtime/model.ts'
import { createModelMachine, createModelRuntime } from '../../src/node/runtime/model.ts'
import { createNoRuntime } from '../../src/node/runtime/none.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { clusterPlugins, csiNodePlugin, nodePlugins, probeFlexDrivers } from '../../src/plugins/index.ts'
import type { NodePluginDeps } from '../../src/plugins/shared/deps.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createTestApi } from './api.ts'
import type { TestApi } from './api.ts'
import { withControllerRights } from './controller-rights.ts'
import { breakable, withoutCapabilities } from './csi-cluster.ts'
import { cutOff } from './node.ts'
import { withNodeRights } from './node-rights.ts'
import { podRequest, shortLived } from './objects.ts'

export const driver = modelDriverName
/** Where the model driver "listens". */
export const socket = '/run/model/csi.sock'
export const nodeRoot = '/var/lib/node'

export interface WholeClusterOptions {
  readonly nodes?: readonly string[]
  /** Nodes on which the driver is registered; all unless told. */
  readonly driverOn?: readonly string[]
  readonly model?: Omit<Partial<ModelOptions>, 'clock' | 'name'>
  readonly change?: (handlers: DriverHandlers) => DriverHandlers
  readonly without?: readonly ControllerCapabilityName[]
  readonly driverSpec?: CSIDriver['spec']
  readonly attachment?: AttachmentOptions
  /** Nobody gives pods a node. */
  readonly withoutScheduler?: boolean
  readonly withoutControllers?: boolean
  /** `names`: images are names only, so a container without a command cannot run. */
  readonly runtime?: 'none' | 'names'
  /** What the plugins of a node are given beside the usual. */
  readonly plugins?: Partial<NodePluginDeps>
  /** Where nodes look for FlexVolume drivers; nowhere unless told. */
  readonly flexDirectory?: string
  /** What a container does, by its name. */
  readonly containers?: (request: ContainerRequest) => ContainerScript
}

/** Where a test may put a small disk that the node looks after. */
export const modelPool = '/var/pool'

export type WholeCluster = Awaited<ReturnType<typeof createWholeCluster>>

export async function createWholeCluster(options: WholeClusterOptions = {}) {
  const clock = createVirtualClock()
  const random = createRandom(1)
  const api = await createTestApi({ clock, random })
  const { client } = api
  const storage = createModelStorage({ clock, ...options.model })
  const names = options.nodes ?? ['n1']
  let choose: ChooseFault = () => undefined
  let script = options.containers ?? ((): ContainerScript => ({}))
  const refused: string[] = []
  const parts: Parts = {
    ...api,
    clock,
    random,
    client,
    options,
    refused,
    script: (request: ContainerRequest) => script(request),
  }
  const machines = new Map(
    names.map((name) => {
      const host = createModelHost({ clock })
      const own = withoutCapabilities(storage.onNode({ nodeId: name, host: host.quiet }), options.without ?? [])
      const handlers = options.change?.(own) ?? own
      const wire = breakable(withFaults(directTransport(handlers), clock, (rpc, earlier) => choose(rpc, earlier)))
      return [name, { host, wire, containers: createModelMachine() }] as const
    }),
  )
  const driverOn = new Set(options.driverOn ?? names)
  const wires = [...machines.values()].map(({ wire }) => wire)
  const first = wires[0] ?? breakable(directTransport(storage.onNode({ nodeId: '', host: createModelHost({ clock }) })))
  await furnishCluster(client, options)
  const control = startControl(parts, first)
  await clock.settle()
  const agents = new Map<string, Agent>()
  const startNode = async (name: string) => {
    agents.set(name, await startAgent(parts, name, machines.get(name)!, driverOn.has(name)))
    await registerDriver(client, name, driverOn.has(name), options.model?.topologyKey)
  }
  for (const name of names) await startNode(name)
  await clock.advance(2_000)
  return {
    clock,
    client,
    storage,
    /** What agents asked for and their role does not give them. */
    refused,
    host: (name = 'n1'): ModelHost => machines.get(name)!.host,
    containers: (name = 'n1') => machines.get(name)!.containers,
    /** What goes wrong with calls to the driver from now on. */
    setFaults: (next: ChooseFault) => void (choose = next),
    setContainers: (next: (request: ContainerRequest) => ContainerScript) => void (script = next),
    driverDown: () => [first, ...wires].forEach((wire) => wire.down()),
    driverUp: () => [first, ...wires].forEach((wire) => wire.up()),
    startNode,
    /** The agent's process is killed: nothing that it does reaches anything from now on. */
    killNode: (name: string) => agents.get(name)?.kill(),
    /** Every agent that lives is killed and started again, but on a machine with faults, where none could start. */
    async restartNodes() {
      for (const [name, agent] of agents) {
        if (!agent.isAlive() || machines.get(name)!.host.faults.struck > 0) continue
        agent.kill()
        await startNode(name)
      }
    },
    stopControl: () => control.stop(clock),
    async stop() {
      await control.stop(clock)
      for (const agent of agents.values()) await agent.stop(clock)
    },
  }
}

type Parts = Pick<WholeCluster, 'clock' | 'client'> &
  Pick<TestApi, 'server' | 'store'> & {
    readonly refused: string[]
    readonly random: ReturnType<typeof createRandom>
    readonly options: WholeClusterOptions
    script(request: ContainerRequest): ContainerScript
  }
type Wire = ReturnType<typeof breakable>

async function ending(clock: VirtualClock, ended: Promise<unknown>): Promise<void> {
  const over = ended.then(
    () => true,
    () => true,
  )
  for (let tries = 0; tries < 50; tries++) {
    await clock.advance(5_000)
    if (await Promise.race([over, Promise.resolve(false)])) return
  }
}

/** Controllers and CSI jobs, as one process would have them. */
function startControl({ clock, random, client: admin, options }: Parts, wire: Wire) {
  const client = withControllerRights(admin)
  const stack = new AsyncDisposableStack()
  const history = stack.use(
    createHistory({ client, clock, log: silentLog, owns: (actor) => !actor.startsWith('node ') }),
  )
  const informers = stack.use(createInformers({ client, clock, random: random.fork(), log: silentLog }))
  const drivers = createDrivers()
  drivers.add(openDriver({ name: driver, endpoint: socket, connect: () => wire.connection, clock }))
  const recorder = (component: string) => stack.use(createRecorder({ client, clock, log: silentLog, component }))
  if (options.withoutControllers !== true) {
    stack.use(
      createControllers({
        ...{ client, informers, clock, log: silentLog, metrics: createMetrics(), recorder, history },
        plugins: createRegistry(clusterPlugins({ client, informers, clock })),
        options: {
          ...(options.attachment ? { attachment: options.attachment } : {}),
          ...(options.withoutScheduler ? {} : { placement: {} }),
        },
      }),
    )
    stack.use(createNodeHealthController({ client, informers, clock, log: silentLog }))
  }
  stack.use(createCsiJobs({ client, informers, clock, log: silentLog, drivers, history }))
  return { stop: (by: VirtualClock) => ending(by, stack.disposeAsync()) }
}

interface Agent {
  isAlive(): boolean
  kill(): void
  stop(clock: VirtualClock): Promise<void>
}

interface Machine {
  readonly host: ModelHost
  readonly wire: Wire
  readonly containers: ReturnType<typeof createModelMachine>
}

async function startAgent(parts: Parts, name: string, machine: Machine, hasDriver: boolean): Promise<Agent> {
  const { clock, random } = parts
  const power = { on: true }
  const stopping = new AbortController()
  const stack = new AsyncDisposableStack()
  const client = cutOff(withNodeRights(parts, name), power)
  const host = cutOff(machine.host, power)
  const history = stack.use(
    createHistory({ client, clock, log: silentLog, owns: (actor) => actor === `node ${name}`, node: name }),
  )
  const informers = stack.use(createInformers({ client, clock, random: random.fork(), log: silentLog }))
  const drivers = createDrivers()
  const { wire } = machine
  if (hasDriver) drivers.add(openDriver({ name: driver, endpoint: socket, connect: () => wire.connection, clock }))
  const plugins = {
    ...{ host, client, clock, random, log: silentLog, root: nodeRoot, nodeName: name, drivers },
    csiDrivers: informers.of('CSIDriver'),
    allocatable: () => ({ memory: '1Gi' }),
    ...parts.options.plugins,
  }
  const registry = createRegistry([...nodePlugins(plugins), csiNodePlugin(plugins)])
  const { flexDirectory: directory } = parts.options
  if (directory !== undefined)
    stack.use(await probeFlexDrivers({ ...plugins, host, directory }, registry, stopping.signal))
  const runtime =
    parts.options.runtime === 'none'
      ? createNoRuntime({ clock })
      : createModelRuntime({
          clock,
          machine: machine.containers,
          script: parts.script,
          entrypoints: parts.options.runtime === 'names' ? [] : undefined,
        })
  const agent = stack.use(
    createAgent({
      ...{ node: nodeName(name), root: nodeRoot, client, clock, random, log: silentLog, host, history },
      metrics: createMetrics(),
      network: createModelNetwork(),
      runtime: cutOff(runtime, power),
      hostAddress: '',
      diskPaths: [nodeRoot, modelPool],
      registry,
      description: { labels: { zone: name }, addresses: [], capacity: room, allocatable: room, info },
    }),
  )
  await agent.start(stopping.signal)
  return {
    isAlive: () => power.on,
    kill: () => void (power.on = false),
    async stop(by) {
      stopping.abort(new Error('the agent is stopping'))
      if (power.on) await ending(by, stack.disposeAsync())
    },
  }
}

const room = { memory: '1Gi', cpu: '4', pods: '110' }
const info = {
  ...{ machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: '', kubeletVersion: '' },
  ...{ kubeProxyVersion: '', operatingSystem: 'linux', architecture: 'amd64' },
}

/** As the registrar of a node does. */
async function registerDriver(
  client: WholeCluster['client'],
  name: string,
  registered: boolean,
  key: string | undefined,
): Promise<void> {
  const topologyKeys = key === undefined ? [] : [key]
  const spec = { drivers: registered ? [{ name: driver, nodeID: name, topologyKeys }] : [] }
  await client.create('CSINode', { metadata: { name }, spec }).catch(() => {})
}

async function furnishCluster(client: WholeCluster['client'], { driverSpec }: WholeClusterOptions): Promise<void> {
  await client.create('CSIDriver', {
    metadata: { name: driver },
    spec: { attachRequired: true, fsGroupPolicy: 'ReadWriteOnceWithFSType', ...driverSpec },
  })
  await client.create('StorageClass', classRequest('model'))
  await client.create('StorageClass', classRequest('later', { volumeBindingMode: 'WaitForFirstConsumer' }))
}

export function classRequest(name: string, more: Partial<StorageClass> = {}): StorageClass {
  return {
    metadata: { name },
    provisioner: driver,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    volumeBindingMode: 'Immediate',
    ...more,
  }
}

export function claimOf(name: string, more: Partial<PersistentVolumeClaim['spec']> = {}): PersistentVolumeClaim {
  return {
    metadata: { name, namespace: 'default' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'model',
      ...more,
    },
  }
}

type PodVolumes = NonNullable<NonNullable<Pod['spec']>['volumes']>

export function podWith(name: string, volumes: PodVolumes, more: Partial<NonNullable<Pod['spec']>> = {}): Pod {
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/mnt/${volume.name}` }))
  const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts }]
  return podRequest(name, { ...shortLived, containers, volumes, ...more })
}

export const podOfClaim = (name: string, claim: string, more: Partial<NonNullable<Pod['spec']>> = {}): Pod =>
  podWith(name, [{ name: 'v', persistentVolumeClaim: { claimName: claim } }], more)
