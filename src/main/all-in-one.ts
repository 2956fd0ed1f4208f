// Everything in one process: `hawser up`, and the library's embedded cluster.
import { randomBytes } from 'node:crypto'
import { annotations } from '../api/annotations.ts'
import type { Clock } from '../clock/clock.ts'
import { createRandom } from '../clock/random.ts'
import type { Random } from '../clock/random.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import type { History } from '../client/history.ts'
import { ownedByServer } from '../client/history-owners.ts'
import type { Drivers } from '../csi/drivers.ts'
import { createLinuxHost } from '../host/linux/linux-host.ts'
import type { LinuxHost } from '../host/linux/linux-host.ts'
import type { HawserConfig } from '../installation/config.ts'
import { openDataDirectory } from '../installation/data-directory.ts'
import { markOfServer } from '../installation/cluster-mark.ts'
import { ensureDefaultObjects } from '../installation/default-objects.ts'
import type { NodeIdentity } from '../installation/node-identity.ts'
import { openNodeIdentity } from '../installation/node-identity.ts'
import { claimNode } from '../installation/other-agent.ts'
import { describeMachine } from '../installation/machine.ts'
import { packageVersion } from '../installation/version.ts'
import { defaultDriverDirectory } from '../plugins/flex-volume/probe.ts'
import type { NodeServer } from '../streams/node-server.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { ControlPlane } from './control-plane.ts'
import { startControlPlane } from './control-plane.ts'
import type { StartedControllers } from './controllers.ts'
import { startControllers } from './controllers.ts'
import type { ModelNodes } from './model-nodes.ts'

export interface Hawser extends AsyncDisposable {
  readonly url: string
  readonly kubeconfig: string
  readonly bare: boolean
  /** In process, as an administrator. */
  readonly client: Client
}

export interface HawserDeps {
  readonly log: Log
  /** Called with a sentence when a part of the program runs, for the person who waits for it. */
  readonly onProgress?: (text: string) => void
  /** Nodes on model hosts, in place of those of the machine. */
  readonly modelNodes?: ModelNodes
  /** Another server may use the store from now on: the process must end at once. */
  readonly onStoreLost?: (error: Error) => void
  /** Gives up the start: a server that stands by may wait for long. */
  readonly starting?: AbortSignal
}

/** What all parts in this process share. */
interface Shared {
  readonly config: HawserConfig
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly host: LinuxHost
  readonly onProgress: (text: string) => void
}

/** The API server and the controllers, for the parts that work beside them. */
interface RunningPlane {
  readonly plane: ControlPlane
  readonly client: Client
  readonly history: History
  readonly controllers: StartedControllers
}

export async function startHawser(config: HawserConfig, deps: HawserDeps): Promise<Hawser> {
  const { log, onProgress = () => {} } = deps
  const onStoreLost =
    deps.onStoreLost ?? ((error) => log.error('the store is lost; nothing can be written any more', { error }))
  const clock = createSystemClock()
  const random = createRandom(randomBytes(32))
  const metrics = createMetrics()
  await using stack = new AsyncDisposableStack()
  const directory = stack.use(openDataDirectory(config.dataDirectory, config))
  const { starting } = deps
  const parts = { config, directory, clock, random, log, metrics, onStoreLost, onProgress }
  const plane = stack.use(await startControlPlane({ ...parts, ...(starting ? { starting } : {}) }))
  onProgress(`API server listens on ${plane.server.urls.join(', ')}`)
  const client = plane.clientFor('system:kube-controller-manager')
  const history = stack.use(createHistory({ client, clock, log, owns: ownedByServer }))
  const host = stack.use(createLinuxHost())
  const shared: Shared = { config, clock, random, log, metrics, host, onProgress }
  const identities = await proveNodes(shared, plane, stack)
  const controllers = stack.use(await startAllControllers(shared, client, history))
  onProgress('controllers run')
  const running: RunningPlane = { plane, client, history, controllers }
  if (config.nodes.length > 0) stack.use(await startNodes(shared, running, identities))
  else {
    const servesAgents = !config.bare && !deps.modelNodes
    // Agents bring the built-in driver along; each has images of its own.
    if (servesAgents) await ensureDefaultObjects(client, { attachRequired: false })
    // Without a driver of our own there are still the snapshots of theirs to be bound.
    if (servesAgents || config.csiDrivers.length > 0) stack.use(await startJobsForRemoteAgents(shared, running))
  }
  if (deps.modelNodes) {
    const { startModelNodes } = await import('./model-nodes.ts')
    const { informers } = controllers
    const parts = {
      client: plane.clientFor('admin'),
      clientFor: plane.clientFor,
      informers,
      history,
      clock,
      random,
      log,
    }
    stack.use(await startModelNodes(parts, deps.modelNodes))
  }
  stack.use(serveRemoteDrivers(shared, running))
  const kept = stack.move()
  return {
    url: plane.url,
    kubeconfig: directory.kubeconfigFile,
    bare: config.bare,
    client: plane.clientFor('admin'),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function startAllControllers(shared: Shared, client: Client, history: History): Promise<StartedControllers> {
  const { config, clock, random, log, metrics, host } = shared
  const { bare, forceDetachOnTimeout, strictScheduling, nodes } = config
  const flexDrivers = {
    host,
    directory: config.volumePluginDirectory ?? defaultDriverDirectory,
    ...(nodes.length === 1 && nodes[0] ? { root: nodes[0].root } : {}),
  }
  const parts = { client, clock, random, log, metrics, host, flexDrivers, history }
  return startControllers({
    ...parts,
    forceDetachOnTimeout,
    ...(bare ? {} : { placement: { strict: strictScheduling === true } }),
  })
}

/** All roots are ours before any controller, driver or node begins to work. */
async function proveNodes(
  { config, clock, host, onProgress }: Shared,
  plane: ControlPlane,
  stack: AsyncDisposableStack,
): Promise<readonly NodeIdentity[]> {
  const { signal } = new AbortController()
  const { dataDirectory } = config
  const identities: NodeIdentity[] = []
  for (const node of config.nodes) {
    const identity = stack.use(await openNodeIdentity({ dataDirectory, node, host }, signal))
    const client = plane.clientFor(`system:node:${node.name}`)
    // An agent elsewhere may run a node of this name, and it could not renew its lease while we were away.
    const { info } = describeMachine(node.name, packageVersion)
    const machineId = info.machineID ?? ''
    await claimNode({ client, clock, node: node.name, root: node.root, machineId, onWait: onProgress }, signal)
    await identity.prove(await markOfServer(client, signal), signal)
    identities.push(identity)
  }
  return identities
}

/** The nodes of this process, one after the other, each with the built-in driver beside it. */
async function startNodes(
  shared: Shared,
  running: RunningPlane,
  identities: readonly NodeIdentity[],
): Promise<AsyncDisposable> {
  const { config, clock, random, log, metrics, host, onProgress } = shared
  const { plane, client } = running
  await using stack = new AsyncDisposableStack()
  // Loaded only where there is a node: gRPC, drivers and plugins are a third of the program's memory.
  const [{ startNode }, csi] = await Promise.all([import('./node.ts'), import('./csi.ts')])
  await ensureDefaultObjects(client, { attachRequired: csi.sharesImages(config) })
  for (const [index, node] of config.nodes.entries()) {
    const builtIn = stack.use(await csi.startBuiltInDriver({ clock, log }, config, node))
    const parts = { config, node, clock, random, log, metrics, host, version: packageVersion }
    const { drivers } = stack.use(
      await startNode({
        ...parts,
        identity: identities[index]!,
        client: plane.clientFor(`system:node:${node.name}`),
        requireActive: plane.requireActive,
        csiDrivers: [builtIn, ...(index === 0 ? config.csiDrivers : [])],
        openServer: (nodeServer: NodeServer) => void plane.localNodeServers.set(node.name, nodeServer),
      }),
    )
    onProgress(`node ${node.name} runs`)
    stack.use(await startJobs(shared, running, drivers, { ownNode: node.name, bindSnapshots: index === 0 }))
  }
  return stack.move()
}

/** Agents elsewhere mount; the sidecars' jobs are done where the driver's controller service is reached. */
async function startJobsForRemoteAgents(shared: Shared, running: RunningPlane): Promise<AsyncDisposable> {
  const { openDrivers } = await import('./csi.ts')
  return startJobs(shared, running, openDrivers(shared.clock, shared.config.csiDrivers, running.plane.requireActive))
}

async function startJobs(
  shared: Shared,
  running: RunningPlane,
  drivers: Drivers,
  options: { readonly ownNode?: string; readonly bindSnapshots?: boolean } = {},
): Promise<AsyncDisposable> {
  const { clock, log, config } = shared
  const { client, history, controllers } = running
  const { startCsiJobs } = await import('./csi.ts')
  const deps = { client, informers: controllers.informers, clock, log, history, drivers }
  return startCsiJobs(deps, { leaveToSidecars: config.leaveToSidecars, ...preferred(config), ...options })
}

/** Of a driver without a topology, the instance on the server's own machine does the jobs. */
function preferred({ nodes: [first] }: HawserConfig): { readonly prefers?: string } {
  return first ? { prefers: first.name } : {}
}

/** Machines that have joined leave the jobs of their drivers to us. Loaded when the first one is there. */
function serveRemoteDrivers(shared: Shared, { plane, client, history, controllers }: RunningPlane): AsyncDisposable {
  const { clock, log, config } = shared
  const { informers } = controllers
  const deps = {
    client,
    informers,
    clock,
    log,
    history,
    nodeClient: plane.nodeClient,
    requireActive: plane.requireActive,
    dataDirectory: config.dataDirectory,
  }
  const stack = new AsyncDisposableStack()
  let loading: Promise<void> | undefined
  const load = async () => {
    const { startRemoteDrivers } = await import('./remote-drivers.ts')
    stack.use(startRemoteDrivers(deps, { leaveToSidecars: config.leaveToSidecars, ...preferred(config) }))
  }
  const watching = informers.of('Node').subscribe(({ object }) => {
    if (object?.metadata.annotations?.[annotations.csiJobs] === 'server') loading ??= load()
  })
  return {
    async [Symbol.asyncDispose]() {
      watching[Symbol.dispose]()
      await loading
      await stack.disposeAsync()
    },
  }
}
