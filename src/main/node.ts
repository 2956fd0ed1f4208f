// One node as it ships: the Linux host, the chosen runtime, the built-in plugins, CSI registration, the agent.
import { join } from 'node:path'
import type { NodeName } from '../api/names.ts'
import type { Client } from '../client/client.ts'
import { getIfExists } from '../client/get-if-exists.ts'
import { createHistory } from '../client/history.ts'
import { ownedByNode } from '../client/history-owners.ts'
import type { Informers } from '../client/informer.ts'
import { createInformers } from '../client/informer.ts'
import { untilAnswered } from '../client/until-answered.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Drivers } from '../csi/drivers.ts'
import { createDrivers } from '../csi/drivers.ts'
import { openChannel } from '../csi/channel.ts'
import { fenced } from './fenced-channel.ts'
import { createConnectionHistory } from '../csi/connection-history.ts'
import type { ConnectionHistory } from '../csi/connection-history.ts'
import { registerDrivers } from '../csi/registration/register-drivers.ts'
import { createRegistrar } from '../csi/registration/registrar.ts'
import type { Network } from '../host/network.ts'
import { createLinuxNetwork } from '../host/linux/network.ts'
import { createLinuxProcesses } from '../host/linux/processes.ts'
import type { LinuxHost } from '../host/linux/linux-host.ts'
import type { NodeDescription } from '../node/report/node-status.ts'
import { createAgent } from '../node/agent.ts'
import type { Agent } from '../node/agent.ts'
import { createNoRuntime } from '../node/runtime/none.ts'
import type { Runtime } from '../node/runtime/port.ts'
import { createProcessRuntime } from '../node/runtime/processes.ts'
import { defaultDriverDirectory } from '../plugins/flex-volume/probe.ts'
import { csiNodePlugin, nodePlugins, probeFlexDrivers } from '../plugins/index.ts'
import type { NodeServer } from '../streams/node-server.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OperationObserver } from '../volume/operation.ts'
import { registrationDirectory } from '../volume/paths.ts'
import type { NodePlugin } from '../volume/plugin.ts'
import { createRegistry } from '../volume/registry.ts'
import type { Registry } from '../volume/registry.ts'
import type { HawserConfig, NodeConfig } from '../installation/config.ts'
import { markOfServer } from '../installation/cluster-mark.ts'
import { describeMachine, hostAddress, measureMachine } from '../installation/machine.ts'
import { fetchManifest } from '../installation/manifest-url.ts'
import type { NodeIdentity } from '../installation/node-identity.ts'
import { requireTrustedPath, requireTrustedUrl } from '../installation/trusted.ts'
import { dialDriver } from './driver-tunnel.ts'
import { claimNode, placeOfAgent } from '../installation/other-agent.ts'
import type { OpenNodeServer } from './node-server.ts'
import { createOwnBinds } from '../host/linux/own-binds.ts'

/** What of the configuration concerns the node, beside a server or without one. */
export type NodeSettings = Pick<
  HawserConfig,
  | 'dataDirectory'
  | 'runtime'
  | 'imageRoots'
  | 'imageEntrypoints'
  | 'volumePluginDirectory'
  | 'manifests'
  | 'manifestUrl'
>

export interface NodeDeps {
  readonly config: NodeSettings
  readonly node: NodeConfig
  /** Holds the root; disposed by whoever opened it. */
  readonly identity: NodeIdentity
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly host: LinuxHost
  readonly version: string
  /** Drivers that no registrar announces: the built-in one, and those named by the user. */
  readonly csiDrivers: HawserConfig['csiDrivers']
  /** Throws where another server may do the jobs of the drivers by now; absent where this process does none for others. */
  readonly requireActive?: () => void
  /** Offers the node's own server to those who may ask it; tells where, if that is an address. */
  readonly openServer?: (nodeServer: NodeServer) => Promise<OpenNodeServer> | void
  /** Files outside the data directory that no pod may read: the kubeconfig of an agent. */
  readonly secretFiles?: readonly string[]
  /** Hears of every step in place of the history; for tests. */
  readonly observer?: OperationObserver
}

export interface StartedNode extends AsyncDisposable {
  readonly agent: Agent
  readonly drivers: Drivers
  readonly logDirectory: string
}

/** What the parts of one node share while it is put together. */
interface NodeParts extends NodeDeps {
  readonly informers: Informers
  readonly drivers: Drivers
  readonly logDirectory: string
  readonly description: NodeDescription
  /** Aborted when the node stops. */
  readonly signal: AbortSignal
}

export async function startNode(deps: NodeDeps): Promise<StartedNode> {
  const { config, node, identity, client, clock, random, host } = deps
  if (config.manifests !== undefined) requireTrustedPath(config.manifests, `the manifest directory ${config.manifests}`)
  if (config.manifestUrl !== undefined) requireTrustedUrl(config.manifestUrl)
  const log = deps.log.child({ part: 'node', node: node.name })
  const stopping = new AbortController()
  const { signal } = stopping
  await using stack = new AsyncDisposableStack()
  const binds = createOwnBinds(host, config.dataDirectory)
  for (const directory of [node.root, containersDirectory(config, node)]) await binds.watch(directory, signal)
  // The mounts of a root that is not ours stay as they are.
  stack.defer(() => (identity.isProven ? binds.undo() : undefined))
  stack.defer(() => stopping.abort(new Error('the node is stopping')))
  const informers = stack.use(createInformers({ client, clock, random, log }))
  const drivers = createDrivers()
  const description = describeMachine(node.name, deps.version)
  const logDirectory = join(config.dataDirectory, 'logs', node.name, 'pods')
  const parts: NodeParts = { ...deps, log, informers, drivers, description, logDirectory, signal }
  const registry = await openPlugins(parts, stack)
  const runtime = createRuntime(parts, stack)
  if (Symbol.asyncDispose in runtime) stack.use(runtime as Runtime & AsyncDisposable)
  const network = createLinuxNetwork()
  const opened = await deps.openServer?.(lazyNodeServer(parts, runtime, network, () => agent))
  if (opened) stack.use(opened)
  const history = stack.use(createHistory({ client, clock, log, owns: ownedByNode(node.name), node: node.name }))
  const told = createConnectionHistory(history, node.name, `node ${node.name}`)
  const register = () => registerCsiDrivers(parts, stack, told)
  const proven = proveIdentity(parts)
  const registeredFirst = proven.then(() => registerOnRestart(parts, register))
  const agent: Agent = stack.use(
    createAgent({
      ...agentDeps(parts),
      network,
      runtime,
      registry,
      history,
      ...(opened ? { nodeServer: opened.address } : {}),
      beforeRegistering: proven,
      beforeManifests: provenOrSilent(parts, proven),
      // A failure is thrown below. If the root is not ours, no pod of this server may come.
      beforeApiPods: registeredFirst.catch(() => proven.catch(() => new Promise(() => {}))),
    }),
  )
  await agent.start(signal)
  if (!(await registeredFirst)) {
    await agent.registered
    await register()
  }
  const kept = stack.move()
  return { agent, drivers, logDirectory, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

function agentDeps(parts: NodeParts) {
  const { config, node, client, clock, random, log, metrics, host, description, observer } = parts
  return {
    node: node.name as NodeName,
    root: node.root,
    client,
    clock,
    random,
    log,
    metrics,
    host,
    description,
    hostAddress: hostAddress(),
    place: placeOf(parts),
    // The second one: the images of the built-in driver.
    diskPaths: [node.root, join(config.dataDirectory, 'volumes')],
    ...(observer === undefined ? {} : { observer }),
    ...(config.manifests === undefined ? {} : { manifestDirectory: config.manifests }),
    ...(config.manifestUrl === undefined ? {} : { manifestUrl: { url: config.manifestUrl, get: fetchManifest } }),
  }
}

/** The built-in plugins, CSI, and the FlexVolume drivers found on this machine. */
async function openPlugins(parts: NodeParts, stack: AsyncDisposableStack): Promise<Registry<NodePlugin>> {
  const { config, node, client, clock, random, log, host, drivers, informers, description, signal } = parts
  const deps = {
    host,
    client,
    clock,
    random,
    log,
    root: node.root,
    nodeName: node.name,
    drivers,
    csiDrivers: informers.of('CSIDriver'),
    allocatable: () => description.allocatable,
    imageRoots: (reference: string) => config.imageRoots?.find((root) => root.reference === reference)?.directory,
  }
  const registry = createRegistry([...nodePlugins(deps), csiNodePlugin(deps)])
  const directory = config.volumePluginDirectory ?? defaultDriverDirectory
  stack.use(await probeFlexDrivers({ ...deps, directory }, registry, signal))
  return registry
}

/** The node's own server, loaded with the first request. */
function lazyNodeServer(parts: NodeParts, runtime: Runtime, network: Network, agent: () => Agent): NodeServer {
  const { node, clock, metrics, logDirectory } = parts
  const startedAt = clock.now()
  const load = async (): Promise<NodeServer> => {
    const { createNodeServer } = await import('../node/server/handle.ts')
    const { createContainerLogs } = await import('../node/server/container-logs.ts')
    const logs = createContainerLogs({ clock, directory: logDirectory })
    const machine = () => measureMachine(node.root)
    const { stats, pods, settings } = agent()
    const deps = { clock, runtime, logs, metrics, settings, stats, pods, machine, node: node.name, startedAt }
    const dialRegistered = (name: string, signal: AbortSignal) => {
      const driver = parts.drivers.get(name)
      return driver && dialDriver(driver.endpoint, signal)
    }
    return createNodeServer({
      ...deps,
      dialDriver: dialRegistered,
      dial: (port, signal) => network.open({ host: '127.0.0.1', port }, signal),
    })
  }
  let loaded: Promise<NodeServer> | undefined
  return async (request) => await (await (loaded ??= load()))(request)
}

const placeOf = ({ node, description }: NodeParts) => placeOfAgent(node.root, description.info.machineID ?? '')

/** Waits for the server's first answer; nothing is cleaned up before. */
async function proveIdentity(parts: NodeParts): Promise<void> {
  const { identity, informers, client, clock, log, node, signal } = parts
  if (identity.isProven) return
  await informers.of('CSIDriver').synced
  const mark = await untilAnswered(parts, 'the cluster', () => markOfServer(client, signal), signal)
  const machineId = parts.description.info.machineID ?? ''
  const onWait = (sentence: string) => log.warn(sentence)
  const claim = () => claimNode({ client, clock, node: node.name, root: node.root, machineId, onWait }, signal)
  await untilAnswered(parts, `the lease of node ${node.name}`, claim, signal)
  await identity.prove(mark, signal)
}

/**
 * Pods of manifests start without the server, but not against it: if it answers, they wait until this root and this name are known to
 * be ours. If that is refused, none starts.
 */
async function provenOrSilent({ informers, clock, signal }: NodeParts, proven: Promise<void>): Promise<void> {
  const answers = informers.of('CSIDriver').synced.then(() => true)
  const silent = clock.sleep(longestSilenceMs, signal).then(
    () => false,
    () => true,
  )
  if (await Promise.race([answers, silent])) await proven.catch(() => new Promise(() => {}))
}

/**
 * After a restart drivers come first, so that no pod's volume is tried without its driver. On the very first start the Node
 * must exist before a driver can be added to it. Pods of manifests wait for neither. Resolves whether drivers were registered.
 */
async function registerOnRestart(parts: NodeParts, register: () => Promise<void>): Promise<boolean> {
  await parts.informers.of('CSIDriver').synced
  const { client, node, signal } = parts
  const read = () => getIfExists(client, 'Node', { name: node.name }, signal)
  const isKnown = (await untilAnswered(parts, `node ${node.name}`, read, signal)) !== undefined
  if (isKnown) await register()
  return isKnown
}

async function registerCsiDrivers(
  parts: NodeParts,
  stack: AsyncDisposableStack,
  told: ConnectionHistory,
): Promise<void> {
  const { node, client, informers, host, clock, log, metrics, drivers, signal } = parts
  await host.files.mkdirAll(registrationDirectory(node.root), 0o750, signal)
  const connect = parts.requireActive ? fenced(openChannel, parts.requireActive) : openChannel
  const deps = { client, informers, host, clock, log, metrics, connect, drivers }
  const create = () => createRegistrar({ ...deps, nodeName: node.name, root: node.root }, signal)
  const registrar = stack.use(await untilAnswered(parts, `the drivers of node ${node.name}`, create, signal))
  const registration = stack.use(registerDrivers({ clock, log, registrar, told }, parts.csiDrivers, signal))
  await Promise.race([registration.tried, clock.sleep(longestRegistrationMs, signal)])
}

function createRuntime(parts: NodeParts, stack: AsyncDisposableStack): Runtime {
  const { config, node, clock, host, log, logDirectory, secretFiles = [] } = parts
  if (config.runtime === 'none') return createNoRuntime({ clock })
  return createProcessRuntime({
    host,
    processes: stack.use(createLinuxProcesses({ clock })),
    clock,
    log,
    directory: containersDirectory(config, node),
    logDirectory,
    // Pods must not see keys, tokens, the store, and the volumes of other pods.
    hidden: [...new Set([config.dataDirectory, node.root, ...secretFiles])],
    entrypoints: config.imageEntrypoints,
  })
}

const longestRegistrationMs = 3_000
/** A server that runs answers within this time. */
const longestSilenceMs = 5_000

const containersDirectory = (config: NodeDeps['config'], node: NodeConfig) =>
  join(config.dataDirectory, 'containers', node.name)
