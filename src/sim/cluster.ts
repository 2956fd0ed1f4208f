// What does a simulated cluster consist of? The real API server and controllers, model machines, agents, attacher and
// storage, each in a life of its own that may end at any moment.
import type { Client } from '../client/client.ts'
import type { Random } from '../clock/random.ts'
import { createRandom } from '../clock/random.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import type { VirtualClock } from '../clock/virtual-clock.ts'
import type { AttachmentController } from '../controllers/attachment/controller.ts'
import { managedAnnotation } from '../controllers/attachment/nodes.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import type { ModelMachine } from '../node/runtime/model.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Faults, FaultRates } from './faults.ts'
import { roughWeather, strikeHost } from './faults.ts'
import { watchAttachments } from './invariants/attachment.ts'
import type { LostNodes } from './invariants/lost-nodes.ts'
import { followLostNodes } from './invariants/lost-nodes.ts'
import type { LifeDeps, LifeOptions, Parts } from './lives.ts'
import { createLives, end } from './lives.ts'
import { createMachine } from './model/node.ts'
import type { Machine } from './model/node.ts'
import { createModelApi } from './model/api.ts'
import { modelDriver, modelVolume } from './model/plugin.ts'
import { createModelStorage } from './model/storage.ts'
import type { ModelStorage } from './model/storage.ts'
import { createRealStorage, nodeRoot } from './real/parts.ts'
import type { RealDeps, RealStorage } from './real/parts.ts'
import { createTrace } from './trace.ts'
import type { Trace } from './trace.ts'

export interface ClusterOptions extends LifeOptions {
  readonly seed: string | number
  readonly rates?: FaultRates
  /** `model`: model nodes and attacher, attachment controller only. `real`: agents, controllers and CSI jobs as they ship. */
  readonly cast?: 'model' | 'real'
}

export interface Cluster extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly random: Random
  readonly trace: Trace
  readonly faults: Faults
  /** A client without faults, for the simulation itself. */
  readonly admin: Client
  readonly cast: 'model' | 'real'
  readonly storage: ModelStorage
  readonly metrics: Metrics
  readonly nodeNames: readonly string[]
  readonly machines: ReadonlyMap<string, Machine>
  readonly violations: readonly string[]
  /** Which volumes are exclusive, by handle; the workload says so. */
  readonly exclusive: Set<string>
  /** The time of a node's last trouble, by name. */
  readonly trouble: Map<string, number>
  controller(): AttachmentController
  /** A volume in the storage, and the handle by which it is known there. */
  createHandle(name: string, exclusive: boolean): Promise<string>
  /** What is still mounted for pods on the machines' hosts; only real agents mount there. */
  leftMounts(): Promise<readonly string[]>
  /** Starts all parts; resolves when the server knows the nodes. */
  start(): Promise<void>
  crashController(): void
  crashAttacher(): void
  crashAgent(node: string): void
  /** Power failure: mounts and containers are gone, then the agent starts anew. */
  powerCycle(node: string): void
  /** The node's disk fails from now on, in one way or another; or it works again. */
  troubleHost(node: string, trouble: boolean): void
  cutOff(node: string, cut: boolean): void
}

/** A lost node counts as troubled for this long after it came back: caches lag, timers run. */
const troubleLastsMs = 120_000

export async function createCluster(options: ClusterOptions): Promise<Cluster> {
  const shared = await createShared(options)
  const { clock, random, trace, faults, admin, storage, machines, metrics, parts } = shared
  const { nodeNames, violations, exclusive, trouble, real } = shared
  const lives = createLives(shared)
  return {
    ...{ clock, random, trace, faults, admin, storage, metrics, nodeNames, machines, violations, exclusive, trouble },
    cast: options.cast ?? 'model',
    controller: () => parts.controller!.running,
    createHandle: (name, isExclusive) => real?.createVolume(name, isExclusive) ?? Promise.resolve(name),
    leftMounts: () => leftMounts(real),
    async start() {
      await setUpCluster(admin, nodeNames)
      lives.startController()
      lives.startAttacher()
      for (const name of nodeNames) lives.startAgent(name)
    },
    crashController() {
      trace.line('crash', { part: 'controller' })
      end(parts.controller?.life, parts.controller?.rest)
      lives.startController()
    },
    crashAttacher() {
      trace.line('crash', { part: 'attacher' })
      end(parts.attacher?.life, parts.attacher?.running)
      lives.startAttacher()
    },
    crashAgent(node) {
      trace.line('crash', { part: 'agent', node })
      lives.restartAgent(node)
    },
    powerCycle(node) {
      trace.line('power cycle', { node })
      losePower(shared, node)
      lives.restartAgent(node)
    },
    troubleHost: (node, troubled) => troubleHost(shared, node, troubled),
    cutOff(node, cut) {
      trace.line(cut ? 'cut off' : 'reconnect', { node })
      const agent = parts.agents.get(node)
      if (agent) agent.life.cutOff = cut
    },
    async [Symbol.asyncDispose]() {
      faults.calm = true
      shared.lostNodes[Symbol.dispose]()
      end(parts.controller?.life, parts.controller?.rest)
      for (const part of [parts.attacher, ...parts.agents.values()]) end(part?.life, part?.running)
      await clock.advance(200_000) // what still waits for an answer or a deadline ends
    },
  }
}

interface Shared extends LifeDeps {
  readonly machines: Map<string, Machine>
  readonly nodeNames: readonly string[]
  readonly violations: string[]
  readonly exclusive: Set<string>
  readonly trouble: Map<string, number>
  /** The time at which a node's disk last failed, by name. */
  readonly ill: Map<string, number>
  readonly lostNodes: LostNodes
}

async function createShared(options: ClusterOptions): Promise<Shared> {
  const clock = createVirtualClock()
  const random = createRandom(options.seed)
  const trace = createTrace(clock)
  const faults: Faults = { calm: false, rates: options.rates ?? roughWeather }
  const admin = await createModelApi(createMemoryStore(), clock, random.fork())
  const nodeNames = Array.from({ length: options.nodes }, (_, index) => `n${index + 1}`)
  const machines = new Map<string, Machine>(nodeNames.map((name) => [name, createMachine()]))
  const [violations, exclusive] = [[] as string[], new Set<string>()]
  const [trouble, ill] = [new Map<string, number>(), new Map<string, number>()]
  const lostNodes = followLostNodes(admin, clock)
  const lately = (time: number | undefined) => clock.now() - (time ?? -Infinity) < troubleLastsMs
  const watch = watchAttachments({
    volumeOf: modelVolume,
    isExclusive: (handle) => exclusive.has(handle),
    holders: (handle) => storage.holders(handle),
    isMounted: (node, volume) => machines.get(node)?.mounted.has(volume) === true,
    // An agent whose disk fails may not come up again. Its node is then lost to the cluster, as without power; but only
    // then. While the node is Ready, nothing may be forced from it, however often its disk fails (FD-3).
    wasTroubled: (node) => lately(trouble.get(node)) || (lately(ill.get(node)) && lately(lostNodes.lastLost(node))),
    violated(rule, details) {
      trace.line('VIOLATION', { rule, details })
      violations.push(`${rule}: ${details}`)
    },
  })
  const storage = createModelStorage({
    onPublish: (handle, node) => (trace.line('publish', { handle, node }), watch.onPublish(handle, node)),
    onUnpublish: (handle, node) => (trace.line('unpublish', { handle, node }), watch.onUnpublish(handle, node)),
  })
  const metrics = createMetrics()
  const parts: Parts = { controller: undefined, attacher: undefined, agents: new Map() }
  const seen = { clock, random, trace, faults, admin, storage, machines, watch }
  const real = options.cast === 'real' ? createRealStorage(realDeps(seen, violations), nodeNames) : undefined
  if (real) for (const [name, machine] of real.machines) machines.set(name, realMachine(machine))
  return { ...seen, nodeNames, metrics, parts, options, violations, exclusive, trouble, ill, lostNodes, real }
}

async function leftMounts(real: RealStorage | undefined): Promise<readonly string[]> {
  const all = await Promise.all(Array.from(real?.hosts.values() ?? [], (host) => host.quiet.mounts.list(never)))
  return all.flat().flatMap(({ mountPoint }) => (/\/(pods|plugins)\//.test(mountPoint) ? [mountPoint] : []))
}

function losePower({ machines, real }: Shared, node: string): void {
  machines.get(node)?.mounted.clear()
  machines.get(node)?.running.clear()
  real?.hosts.get(node)?.reboot()
  real?.machines.get(node)?.containers.clear()
  real?.machines.get(node)?.requests.clear()
}

function troubleHost({ real, ill, clock, trace, random }: Shared, node: string, troubled: boolean): void {
  const host = real?.hosts.get(node)
  if (!host) return
  host.faults.clear()
  if (troubled) ill.set(node, Infinity)
  else if (ill.get(node) === Infinity) ill.set(node, clock.now())
  if (troubled) trace.line('disk fails', { node, code: strikeHost(host, `${nodeRoot}/pods`, random) })
}

type Seen = Pick<Shared, 'clock' | 'random' | 'trace' | 'faults' | 'admin' | 'storage' | 'machines' | 'watch'>

/** What the invariants hear from the real driver's calls. */
function realDeps(seen: Seen, violations: string[]): RealDeps {
  const { clock, random, faults, storage, machines, trace, watch, admin } = seen
  return {
    ...{ clock, random, faults, view: storage },
    onStaged(node, handle) {
      if (machines.get(node)?.mounted.has(modelVolume(handle))) return
      trace.line('stage', { node, handle })
      watch.onMount(node, modelVolume(handle))
      machines.get(node)?.mounted.add(modelVolume(handle))
    },
    onUnstaged(node, handle) {
      if (machines.get(node)?.mounted.delete(modelVolume(handle))) trace.line('unstage', { node, handle })
    },
    async beforeUnpublish(node, handle) {
      const live = await admin.get('Node', { name: node }).catch(() => undefined)
      watch.beforeUnpublish(handle, node, live)
    },
    refused(details) {
      trace.line('refused', { details })
      if (/is published to/.test(details)) violations.push(`one writer node: the storage refused ${details}`)
    },
  }
}

function realMachine(machine: ModelMachine): Machine {
  return {
    mounted: new Set(),
    get running() {
      const alive = [...machine.containers.values()].filter(({ exit }) => !exit)
      return new Map(alive.map(({ pod }) => [pod as string, []]))
    },
  }
}

const never = new AbortController().signal

async function setUpCluster(admin: Client, nodeNames: readonly string[]): Promise<void> {
  await admin.create('CSIDriver', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: modelDriver },
    spec: { attachRequired: true },
  })
  for (const name of nodeNames) {
    await addNode(admin, name)
    const drivers = [{ name: modelDriver, nodeID: name, topologyKeys: [] }]
    await admin.create('CSINode', { metadata: { name }, spec: { drivers } })
  }
}

/** A Node object as it is registered; its agent reports that it is ready. */
export async function addNode(admin: Client, name: string): Promise<void> {
  const annotations = { [managedAnnotation]: 'true' }
  await admin.create('Node', { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations }, spec: {} })
}

/** What the node controller writes when it has not heard from a node for a while, or ever. */
export async function setNotReady(admin: Client, name: string): Promise<void> {
  const known = (await admin.get('Node', { name })).status?.conditions?.some(({ type }) => type === 'Ready')
  const reason = known ? 'NodeStatusUnknown' : 'NodeStatusNeverUpdated'
  const status = { conditions: [{ type: 'Ready', status: 'Unknown', reason }] }
  await admin.patch('Node', { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
}
