// Nodes that need no root: real agents on model hosts, with a model driver in memory. Nothing is mounted on this machine, and
// containers are entries in a table. For tests of programs that use claims and pods.
import type { StorageClass } from '../api/generated/types.ts'
import { nodeName } from '../api/names.ts'
import type { Client } from '../client/client.ts'
import type { History } from '../client/history.ts'
import { createHistory } from '../client/history.ts'
import { ownedByNode } from '../client/history-owners.ts'
import type { Informers } from '../client/informer.ts'
import { createInformers } from '../client/informer.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import { createDrivers, openDriver } from '../csi/drivers.ts'
import type { Drivers } from '../csi/drivers.ts'
import type { ModelStorage } from '../csi/model/driver.ts'
import { createModelStorage, modelDriverName } from '../csi/model/driver.ts'
import type { ChooseFault } from '../csi/faults.ts'
import { withFaults } from '../csi/faults.ts'
import { directTransport } from '../csi/service.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { createModelNetwork } from '../host/model/network.ts'
import { createAgent } from '../node/agent.ts'
import { createModelMachine, createModelRuntime } from '../node/runtime/model.ts'
import { csiNodePlugin, nodePlugins } from '../plugins/index.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createRegistry } from '../volume/registry.ts'
import { startCsiJobs } from './csi.ts'

export interface ModelNodes {
  readonly names: readonly string[]
  /** What goes wrong with a call to the model driver; undefined: nothing. */
  readonly driverFault?: ChooseFault
}

export interface ModelNodesDeps {
  /** As an administrator. */
  readonly client: Client
  readonly clientFor: (user: string) => Client
  readonly informers: Informers
  readonly history: History
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export async function startModelNodes(deps: ModelNodesDeps, nodes: ModelNodes): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const { client, informers, clock, log, history } = deps
  const storage = createModelStorage({ clock })
  await createObjects(client)
  for (const [index, name] of nodes.names.entries()) {
    const drivers = stack.use(await startModelNode(deps, name, storage, nodes.driverFault))
    // One instance of the driver does the jobs of the whole cluster.
    if (index === 0)
      stack.use(
        startCsiJobs({ client, informers, clock, log, history, drivers: drivers.drivers }, { leaveToSidecars: [] }),
      )
  }
  return stack.move()
}

async function startModelNode(
  deps: ModelNodesDeps,
  name: string,
  storage: ModelStorage,
  driverFault: ChooseFault = () => undefined,
): Promise<AsyncDisposable & { readonly drivers: Drivers }> {
  const { clock, random, log } = deps
  await using stack = new AsyncDisposableStack()
  const stopping = new AbortController()
  const client = deps.clientFor(`system:node:${name}`)
  const host = createModelHost({ clock })
  const transport = withFaults(directTransport(storage.onNode({ nodeId: name, host: host.quiet })), clock, driverFault)
  const quiet = { [Symbol.dispose]: () => {} }
  const connect = () => ({ transport, onLost: () => quiet, onReady: () => quiet, ...quiet })
  const drivers = createDrivers()
  drivers.add(openDriver({ name: modelDriverName, endpoint: `model driver of ${name}`, connect, clock }))
  const history = stack.use(createHistory({ client, clock, log, owns: ownedByNode(name), node: name }))
  const informers = stack.use(createInformers({ client, clock, random: random.fork(), log }))
  const parts = { host, client, clock, random, log, root: '/var/lib/node', nodeName: name, drivers }
  const plugins = { ...parts, csiDrivers: informers.of('CSIDriver'), allocatable: () => ({ memory: '1Gi' }) }
  const agent = stack.use(
    createAgent({
      ...{ node: nodeName(name), root: parts.root, client, clock, random, log, host, history },
      metrics: createMetrics(),
      network: createModelNetwork(),
      runtime: createModelRuntime({ clock, machine: createModelMachine(), script: () => ({}) }),
      hostAddress: '',
      registry: createRegistry([...nodePlugins(plugins), csiNodePlugin(plugins)]),
      description: { labels: {}, addresses: [], capacity: room, allocatable: room, info },
    }),
  )
  stack.defer(() => stopping.abort(new Error('the node is stopping')))
  await agent.start(stopping.signal)
  const driver = { name: modelDriverName, nodeID: name, topologyKeys: [] }
  await deps.client.create('CSINode', { metadata: { name }, spec: { drivers: [driver] } })
  const kept = stack.move()
  return { drivers, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

const room = { memory: '1Gi', cpu: '4', pods: '110' }
const info = {
  ...{ machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: '', kubeletVersion: '' },
  ...{ kubeProxyVersion: '', operatingSystem: 'linux', architecture: 'amd64' },
}

/** The model driver, and a default class for it. */
async function createObjects(client: Client): Promise<void> {
  await client.create('CSIDriver', {
    metadata: { name: modelDriverName },
    spec: { attachRequired: true, fsGroupPolicy: 'ReadWriteOnceWithFSType' },
  })
  const storageClass: StorageClass = {
    metadata: { name: 'model', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: modelDriverName,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
    volumeBindingMode: 'Immediate',
  }
  await client.create('StorageClass', storageClass)
  await client.create('VolumeSnapshotClass', {
    metadata: { name: 'model', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: modelDriverName,
    deletionPolicy: 'Delete',
  })
}
