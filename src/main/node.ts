// One node as it ships: the Linux host, the chosen runtime, the built-in plugins, CSI registration, the agent.
import { join } from 'node:path'
import type { NodeName } from '../api/names.ts'
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import { createInformers } from '../client/informer.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Drivers } from '../csi/drivers.ts'
import { createDrivers } from '../csi/drivers.ts'
import { openChannel } from '../csi/channel.ts'
import { createRegistrar } from '../csi/registration/registrar.ts'
import { createLinuxNetwork } from '../host/linux/network.ts'
import { createLinuxProcesses } from '../host/linux/processes.ts'
import type { LinuxHost } from '../host/linux/linux-host.ts'
import { createAgent } from '../node/agent.ts'
import type { Agent } from '../node/agent.ts'
import { createNoRuntime } from '../node/runtime/none.ts'
import type { Runtime } from '../node/runtime/port.ts'
import { createProcessRuntime } from '../node/runtime/processes.ts'
import { defaultDriverDirectory } from '../plugins/flex-volume/probe.ts'
import { csiNodePlugin, nodePlugins, probeFlexDrivers } from '../plugins/index.ts'
import type { Door } from '../streams/door.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OperationObserver } from '../volume/operation.ts'
import { registrationDirectory } from '../volume/paths.ts'
import { createRegistry } from '../volume/registry.ts'
import type { HawserConfig, NodeConfig } from './config.ts'
import { describeMachine, hostAddress, measureMachine, measureWork } from './machine.ts'
import type { OpenDoor } from './node-server.ts'
import { registerDrivers } from './driver-registration.ts'
import { createOwnBinds } from './own-binds.ts'

export interface NodeDeps {
  readonly config: Pick<
    HawserConfig,
    'dataDirectory' | 'runtime' | 'imageRoots' | 'volumePluginDirectory' | 'manifests' | 'manifestUrl'
  >
  readonly node: NodeConfig
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly host: LinuxHost
  readonly version: string
  /** Drivers that no registrar announces: the built-in one, and those named by the user. */
  readonly csiDrivers: HawserConfig['csiDrivers']
  /** Offers the node's own server to those who may ask it; tells where, if that is an address. */
  readonly openDoor?: (door: Door) => Promise<OpenDoor> | void
  /** Hears of every step in place of the history; for tests. */
  readonly observer?: OperationObserver
}

export interface StartedNode extends AsyncDisposable {
  readonly agent: Agent
  readonly drivers: Drivers
  readonly logDirectory: string
}

export async function startNode(deps: NodeDeps): Promise<StartedNode> {
  const { config, node, client, clock, random, metrics, host } = deps
  const log = deps.log.child({ part: 'node', node: node.name })
  const stopping = new AbortController()
  await using stack = new AsyncDisposableStack()
  const binds = createOwnBinds(host, config.dataDirectory)
  for (const directory of [node.root, containersDirectory(config, node)]) await binds.watch(directory, stopping.signal)
  stack.defer(() => binds.undo())
  stack.defer(() => stopping.abort(new Error('the node is stopping')))
  const informers = stack.use(createInformers({ client, clock, random, log }))
  const csiDrivers = informers.of('CSIDriver')
  const drivers = createDrivers()
  const description = describeMachine(node.name, deps.version)
  const pluginDeps = {
    host,
    client,
    clock,
    random,
    log,
    root: node.root,
    nodeName: node.name,
    drivers,
    csiDrivers,
    allocatable: () => description.allocatable,
    imageRoots: (reference: string) => config.imageRoots?.find((root) => root.reference === reference)?.directory,
  }
  const network = createLinuxNetwork()
  const registry = createRegistry([...nodePlugins(pluginDeps), csiNodePlugin(pluginDeps)])
  const directory = config.volumePluginDirectory ?? defaultDriverDirectory
  stack.use(await probeFlexDrivers({ ...pluginDeps, directory }, registry, stopping.signal))
  const logDirectory = join(config.dataDirectory, 'logs', node.name, 'pods')
  const runtime = createRuntime(deps, logDirectory, log)
  if (Symbol.asyncDispose in runtime) stack.use(runtime as Runtime & AsyncDisposable)
  const startedAt = clock.now()
  // Loaded when somebody first asks.
  const door = lazily(async () => {
    const { createNodeServer } = await import('../node/server/handle.ts')
    const { createContainerLogs } = await import('./container-logs.ts')
    const logs = createContainerLogs({ clock, directory: logDirectory })
    const machine = () => measureMachine(node.root)
    const { stats, pods, settings } = agent
    const parts = { clock, runtime, logs, metrics, settings, stats, pods, machine, node: node.name, startedAt }
    return createNodeServer({ ...parts, dial: (port, signal) => network.open({ host: '127.0.0.1', port }, signal) })
  })
  const opened = await deps.openDoor?.(door)
  if (opened) stack.use(opened)
  const history = stack.use(createHistory({ client, clock, log, owns: (actor) => actor === `node ${node.name}` }))
  const register = async () => {
    await host.files.mkdirAll(registrationDirectory(node.root), 0o750, stopping.signal)
    const parts = { client, informers, host, clock, log, metrics, connect: openChannel, drivers }
    const registrar = stack.use(
      await createRegistrar({ ...parts, nodeName: node.name, root: node.root }, stopping.signal),
    )
    const registration = stack.use(registerDrivers({ clock, log, registrar }, deps.csiDrivers, stopping.signal))
    await Promise.race([registration.tried, clock.sleep(longestRegistrationMs, stopping.signal)])
  }
  // After a restart drivers come first, so that no pod's volume is tried without its driver; on the very first start the
  // Node must be there before a driver can be told of it. Pods of manifests wait for neither.
  const driversFirst = csiDrivers.synced.then(async () => {
    const isKnown = await client.get('Node', { name: node.name }).then(
      () => true,
      () => false,
    )
    if (isKnown) await register()
    return isKnown
  })
  const agent = stack.use(
    createAgent({
      node: node.name as NodeName,
      root: node.root,
      client,
      clock,
      random,
      log,
      metrics,
      host,
      network,
      ...(opened ? { door: opened.address } : {}),
      runtime,
      registry,
      history,
      description,
      hostAddress: hostAddress(),
      measureWork,
      beforeApiPods: driversFirst.catch(() => {}), // whoever starts the node hears of it, below
      ...(deps.observer === undefined ? {} : { observer: deps.observer }),
      ...(config.manifests === undefined ? {} : { manifestDirectory: config.manifests }),
      ...(config.manifestUrl === undefined ? {} : { manifestUrl: { url: config.manifestUrl, get: fetchText } }),
    }),
  )
  await agent.start(stopping.signal)
  if (!(await driversFirst)) {
    await agent.registered
    await register()
  }
  const kept = stack.move()
  return {
    agent,
    drivers,
    logDirectory,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function lazily(make: () => Promise<Door>): Door {
  let made: Promise<Door> | undefined
  return async (request) => await (await (made ??= make()))(request)
}

function createRuntime({ config, node, clock, host }: NodeDeps, logDirectory: string, log: Log): Runtime {
  if (config.runtime === 'none') return createNoRuntime({ clock })
  return createProcessRuntime({
    host,
    processes: createLinuxProcesses({ clock }),
    clock,
    log,
    directory: containersDirectory(config, node),
    logDirectory,
    // Keys, tokens and the store are nobody's business but ours.
    hidden: [config.dataDirectory],
  })
}

const longestRegistrationMs = 3_000

const containersDirectory = (config: NodeDeps['config'], node: NodeConfig) =>
  join(config.dataDirectory, 'containers', node.name)

const longestManifestBytes = 10 * 1024 * 1024

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  const text = await answer.text()
  if (text.length > longestManifestBytes) throw new Error(`${url} answered more than ${longestManifestBytes} bytes`)
  return text
}
