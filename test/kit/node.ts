// One node on virtual time: the real API server in memory, the real agent and plugins, a model host and model containers.
// `crash` cuts an agent off from host, API and runtime, as kill -9 would; the machine and its containers go on.
import { podUid } from '../../src/api/names.ts'
import type { NodeName } from '../../src/api/names.ts'
import type { Pod } from '../../src/api/generated/types.ts'
import type { Client } from '../../src/client/client.ts'
import { createHistory } from '../../src/client/history.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import type { ModelNetworkDeps } from '../../src/host/model/network.ts'
import { createModelNetwork } from '../../src/host/model/network.ts'
import { createAgent } from '../../src/node/agent.ts'
import type { Agent } from '../../src/node/agent.ts'
import type { AgentDeps } from '../../src/node/agent/parts.ts'
import type { ContainerRequest } from '../../src/node/runtime/port.ts'
import { createModelMachine, createModelRuntime } from '../../src/node/runtime/model.ts'
import type { ContainerScript } from '../../src/node/runtime/model.ts'
import { nodePlugins } from '../../src/plugins/index.ts'
import type { Log } from '../../src/telemetry/log.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import type { Metrics } from '../../src/telemetry/metrics.ts'
import type { NodePlugin } from '../../src/volume/plugin.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import type { Registered, Registry } from '../../src/volume/registry.ts'
import { createTestApi } from './api.ts'
import { podRequest, shortLived } from './objects.ts'

export const root = '/var/lib/node'
export const nodeName = 'n1' as NodeName

export interface NodeWorldOptions {
  script?(request: ContainerRequest): ContainerScript
  /** What listens on the node's ports says to probes. */
  answer?: NonNullable<ModelNetworkDeps['answer']>
  /** Plugins beside the built-in ones. */
  readonly plugins?: readonly Registered<NodePlugin>[]
  /** Stands between the agent and the API server. */
  through?(client: Client): Client
  /** Where the node's own server listens; asked at each start. */
  nodeServer?(): AgentDeps['nodeServer']
  readonly log?: Log
  readonly manifestDirectory?: string
  readonly manifestUrl?: AgentDeps['manifestUrl']
  readonly beforeManifests?: Promise<unknown>
}

export async function createNodeWorld(options: NodeWorldOptions = {}) {
  const clock = createVirtualClock()
  const random = createRandom(7)
  const { client } = await createTestApi({ clock, random })
  const host = createModelHost({ clock })
  const machine = createModelMachine()
  const signal = new AbortController().signal

  const start = async (): Promise<Life> => {
    const power = { on: true }
    const ownHost = cutOff(host, power)
    const ownClient = cutOff(options.through?.(client) ?? client, power)
    const metrics = createMetrics()
    const script = options.script ? { script: options.script } : {}
    const registry = createRegistry([
      ...builtIns({
        host: ownHost,
        client: ownClient,
        clock,
        random,
        log: silentLog,
        root,
        allocatable: () => ({ memory: '1Gi' }),
      }),
      ...(options.plugins ?? []).map((each) => ({ ...each, plugin: cutOffPlugin(each.plugin, power) })),
    ])
    const agent = createAgent({
      node: nodeName,
      root,
      client: ownClient,
      history: createHistory({
        client: ownClient,
        clock,
        log: silentLog,
        owns: (actor) => actor === `node ${nodeName}`,
      }),
      clock,
      random,
      log: options.log ?? silentLog,
      metrics,
      host: ownHost,
      network: createModelNetwork(options.answer ? { answer: options.answer } : {}),
      runtime: cutOff(createModelRuntime({ clock, machine, ...script }), power),
      registry,
      description: { labels: {}, addresses: [], capacity: { memory: '1Gi' }, allocatable: { memory: '1Gi' }, info },
      hostAddress: '10.0.0.1',
      ...nodeServerOf(options),
      ...(options.manifestDirectory ? { manifestDirectory: options.manifestDirectory } : {}),
      ...(options.manifestUrl ? { manifestUrl: options.manifestUrl } : {}),
      ...(options.beforeManifests ? { beforeManifests: options.beforeManifests } : {}),
    })
    await agent.start(signal)
    return { agent, metrics, registry, crash: () => void (power.on = false) }
  }
  const create = async (pod: Pod) => {
    const made = await client.create('Pod', pod)
    return podUid(made.metadata.uid ?? '')
  }
  const mounts = async () =>
    (await host.quiet.mounts.list(signal))
      .map(({ mountPoint }) => mountPoint)
      .filter((at) => at.startsWith(`${root}/pods/`))
      .sort()
  const podDirectories = () => host.quiet.files.readDir(`${root}/pods`, signal)
  const events = async () =>
    (await client.list('Event', {})).items.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
  const phase = async (name: string) => (await client.get('Pod', { namespace: 'default', name })).status?.phase
  return { clock, client, host, machine, signal, start, create, mounts, podDirectories, events, phase }
}

export interface Life {
  readonly agent: Agent
  readonly metrics: Metrics
  readonly registry: Registry<NodePlugin>
  /** From now on nothing this agent does reaches anything. */
  crash(): void
}

export function pod(name: string, volumes: NonNullable<NonNullable<Pod['spec']>['volumes']>, more: object = {}): Pod {
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/mnt/${volume.name}` }))
  const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts }]
  return podRequest(name, { nodeName, ...shortLived, containers, volumes, ...more })
}

export const memory = (name: string) => ({ name, emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } })

/** Calls through this object never return once the power is off; nested parts of a port are cut off with it. */
export function cutOff<T extends object>(port: T, power: { readonly on: boolean }): T {
  return new Proxy(port, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver)
      if (typeof value === 'function') {
        return (...parameters: unknown[]) => (power.on ? value.apply(target, parameters) : new Promise(() => {}))
      }
      return typeof value === 'object' && value !== null ? cutOff(value, power) : value
    },
  })
}

/** The parts a plugin answers for one volume are cut off with it: a dead agent asks nothing more of anybody. */
function cutOffPlugin(plugin: NodePlugin, power: { readonly on: boolean }): NodePlugin {
  const { device, block } = plugin
  const part = <T extends object>(found: T | undefined) => found && cutOff(found, power)
  return {
    ...cutOff(plugin, power),
    ...(device ? { device: (spec) => part(device(spec)) } : {}),
    ...(block ? { block: (spec) => part(block(spec)) } : {}),
  }
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

/** Two plugins must not serve one source: where a test brings its own, the built-in one stays out. */
function builtIns(deps: Parameters<typeof nodePlugins>[0]) {
  return nodePlugins(deps).filter(({ name }) => name !== 'kubernetes.io/fc')
}

function nodeServerOf({ nodeServer }: NodeWorldOptions): Pick<AgentDeps, 'nodeServer'> {
  const found = nodeServer?.()
  return found ? { nodeServer: found } : {}
}
