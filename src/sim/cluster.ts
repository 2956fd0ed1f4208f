// What does a simulated cluster consist of? The real API server and controllers, model machines, agents, attacher and
// storage, each in a life of its own that may end at any moment.
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import { createInformers } from '../client/informer.ts'
import { createRecorder } from '../client/recorder.ts'
import type { Random } from '../clock/random.ts'
import { createRandom } from '../clock/random.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import type { VirtualClock } from '../clock/virtual-clock.ts'
import type { AttachmentController, AttachmentOptions } from '../controllers/attachment/controller.ts'
import { createAttachmentController } from '../controllers/attachment/controller.ts'
import { managedAnnotation } from '../controllers/attachment/nodes.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import type { ModelMachine } from '../node/runtime/model.ts'
import type { Log } from '../telemetry/log.ts'
import { createLog, silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRegistry } from '../volume/registry.ts'
import type { Faults, FaultRates, Life } from './faults.ts'
import { createFaultyClient, createLife, roughWeather, strikeHost } from './faults.ts'
import { watchAttachments } from './invariants/attachment.ts'
import type { AttachmentWatch } from './invariants/attachment.ts'
import { followLostNodes } from './invariants/lost-nodes.ts'
import { createModelAttacher } from './model/attacher.ts'
import { createMachine, createModelNode } from './model/node.ts'
import type { Machine } from './model/node.ts'
import { createModelApi } from './model/api.ts'
import { csiRegistered, modelDriver } from './model/plugin.ts'
import { createModelStorage } from './model/storage.ts'
import type { ModelStorage } from './model/storage.ts'
import { createRealStorage, nodeRoot, startAgent as startRealAgent, startControllers, startJobs } from './real/parts.ts'
import type { PartDeps, RealDeps, RealStorage } from './real/parts.ts'
import { createTrace } from './trace.ts'
import type { Trace } from './trace.ts'

export interface ClusterOptions {
  readonly seed: string | number
  readonly nodes: number
  readonly rates?: FaultRates
  /** `model`: model nodes and attacher, attachment controller only. `real`: agents, controllers and CSI jobs as they ship. */
  readonly cast?: 'model' | 'real'
  readonly attachment?: AttachmentOptions
  /** Every part tells its story, as it does when it ships; costs writes, and leads to other runs of the same seeds. */
  readonly history?: boolean
  /** Tampers with what the controller sees, to prove that a broken controller is caught. */
  readonly sabotage?: (client: Client) => Client
}

export interface Cluster extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly random: Random
  readonly trace: Trace
  readonly faults: Faults
  /** A client without faults, for the simulation's own hands. */
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
  /** The node's disk fails from now on, in one way or another; or it is well again. */
  troubleHost(node: string, trouble: boolean): void
  cutOff(node: string, cut: boolean): void
}

interface Parts {
  controller: { life: Life; running: AttachmentController; rest: AsyncDisposable } | undefined
  attacher: { life: Life; running: AsyncDisposable } | undefined
  readonly agents: Map<string, { life: Life; running: AsyncDisposable }>
}

/** A lost node counts as troubled for this long after it came back: caches lag, timers run. */
const troubleLastsMs = 120_000

export async function createCluster(options: ClusterOptions): Promise<Cluster> {
  const clock = createVirtualClock()
  const random = createRandom(options.seed)
  const trace = createTrace(clock)
  const faults: Faults = { calm: false, rates: options.rates ?? roughWeather }
  const admin = await createModelApi(createMemoryStore(), clock, random.fork())
  const nodeNames = Array.from({ length: options.nodes }, (_, index) => `n${index + 1}`)
  const machines = new Map<string, Machine>(nodeNames.map((name) => [name, createMachine()]))
  const violations: string[] = []
  const exclusive = new Set<string>()
  const trouble = new Map<string, number>()
  /** The time at which a node's disk last failed, by name. */
  const ill = new Map<string, number>()
  const lostNodes = followLostNodes(admin, clock)
  const lately = (time: number | undefined) => clock.now() - (time ?? -Infinity) < troubleLastsMs
  const watch = watchAttachments({
    volumeOf: (handle) => `kubernetes.io/csi/${modelDriver}^${handle}`,
    isExclusive: (handle) => exclusive.has(handle),
    holders: (handle) => storage.holders(handle),
    isMounted: (node, volume) => machines.get(node)?.mounted.has(volume) === true,
    // An agent whose disk fails may not come up again, and to the cluster its node is lost then, as rightly as without
    // power; but only then. While it is Ready, nothing may be forced from it, however sick its disk (FD-3).
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
  const shared = { clock, random, trace, faults, admin, storage, machines, watch, metrics, parts, options }
  const real = options.cast === 'real' ? createRealStorage(realDeps(shared, violations), nodeNames) : undefined
  if (real) for (const [name, machine] of real.machines) machines.set(name, realMachine(machine))
  const lives = createLives(shared, real)

  return {
    ...{ clock, random, trace, faults, admin, storage, metrics, nodeNames, machines, violations, exclusive, trouble },
    cast: options.cast ?? 'model',
    controller: () => parts.controller!.running,
    createHandle: (name, isExclusive) => real?.createVolume(name, isExclusive) ?? Promise.resolve(name),
    async leftMounts() {
      const all = await Promise.all(Array.from(real?.hosts.values() ?? [], (host) => host.quiet.mounts.list(never)))
      return all.flat().flatMap(({ mountPoint }) => (/\/(pods|plugins)\//.test(mountPoint) ? [mountPoint] : []))
    },
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
      machines.get(node)?.mounted.clear()
      machines.get(node)?.running.clear()
      real?.hosts.get(node)?.reboot()
      real?.machines.get(node)?.containers.clear()
      real?.machines.get(node)?.requests.clear()
      lives.restartAgent(node)
    },
    troubleHost(node, troubled) {
      const host = real?.hosts.get(node)
      if (!host) return
      host.faults.clear()
      if (troubled) ill.set(node, Infinity)
      else if (ill.get(node) === Infinity) ill.set(node, clock.now())
      if (troubled) trace.line('disk fails', { node, code: strikeHost(host, `${nodeRoot}/pods`, random) })
    },
    cutOff(node, cut) {
      trace.line(cut ? 'cut off' : 'reconnect', { node })
      const agent = parts.agents.get(node)
      if (agent) agent.life.cutOff = cut
    },
    async [Symbol.asyncDispose]() {
      faults.calm = true
      lostNodes[Symbol.dispose]()
      end(parts.controller?.life, parts.controller?.rest)
      for (const part of [parts.attacher, ...parts.agents.values()]) end(part?.life, part?.running)
      await clock.advance(200_000) // what still waits for an answer or a deadline ends
    },
  }
}

interface Shared {
  readonly clock: VirtualClock
  readonly random: Random
  readonly trace: Trace
  readonly faults: Faults
  readonly admin: Client
  readonly storage: ModelStorage
  readonly machines: ReadonlyMap<string, Machine>
  readonly watch: AttachmentWatch
  readonly metrics: Metrics
  readonly parts: Parts
  readonly options: ClusterOptions
}

/** A crash: from this moment no call of the part gets through, and its farewell is not waited for. */
function end(life: Life | undefined, ...parts: (AsyncDisposable | undefined)[]): void {
  if (life) life.alive = false
  for (const part of parts) void part?.[Symbol.asyncDispose]()
}

/** What the invariants hear from the real driver's calls. */
function realDeps(shared: Shared, violations: string[]): RealDeps {
  const { clock, random, faults, storage, machines, trace, watch, admin } = shared
  const nameFor = (handle: string) => `kubernetes.io/csi/${modelDriver}^${handle}`
  return {
    ...{ clock, random, faults, view: storage },
    onStaged(node, handle) {
      if (machines.get(node)?.mounted.has(nameFor(handle))) return
      trace.line('stage', { node, handle })
      watch.onMount(node, nameFor(handle))
      machines.get(node)?.mounted.add(nameFor(handle))
    },
    onUnstaged(node, handle) {
      if (machines.get(node)?.mounted.delete(nameFor(handle))) trace.line('unstage', { node, handle })
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

const isDriver = (actor: string) => actor.startsWith('csi ')

function createLives(shared: Shared, real: RealStorage | undefined) {
  const { clock, random, trace, faults, admin, parts, options, watch, metrics } = shared
  const clientFor = (life: Life) => createFaultyClient(admin, { clock, random: random.fork(), faults }, life)
  const partFor = (life: Life, actor: (name: string) => boolean, log: Log = silentLog): PartDeps => ({
    ...{ client: clientFor(life), clock, random: random.fork(), log, metrics, life },
    ...(options.history === true ? { history: storyOf(life, actor) } : {}),
  })
  const storyOf = (life: Life, actor: (name: string) => boolean) =>
    createHistory({ client: clientFor(life), clock, log: silentLog, owns: actor })
  const startAgent = (name: string) => {
    const life = createLife()
    life.cutOff = parts.agents.get(name)?.life.cutOff ?? false
    const running = real
      ? startRealAgent({ ...partFor(life, (actor) => actor === `node ${name}`), name }, real)
      : startModelAgent(
          shared,
          partFor(life, () => false),
          name,
        )
    parts.agents.set(name, { life, running })
  }
  return {
    startAgent,
    restartAgent(name: string) {
      const agent = parts.agents.get(name)
      end(agent?.life, agent?.running)
      startAgent(name)
    },
    startAttacher() {
      const life = createLife()
      const first = options.nodes > 0 ? 'n1' : ''
      const running = real
        ? startJobs(partFor(life, isDriver), real.driversFor(first, life))
        : startModelAttacher(
            shared,
            partFor(life, () => false),
          )
      parts.attacher = { life, running }
    },
    startController() {
      const life = createLife()
      const log = createLog((level, message, fields) => {
        if (!life.alive) return
        const shown = {
          volume: text(fields['volume']),
          node: text(fields['node']),
          operation: text(fields['operation']),
        }
        if (level !== 'debug') trace.line(`controller: ${message}`, shown)
        if (message === 'volume taken by force') watch.onForce(shown.volume!, shown.node!)
      })
      const part = partFor(life, (actor) => !isDriver(actor) && !actor.startsWith('node '), log)
      const deps = { ...part, client: options.sabotage?.(part.client) ?? part.client }
      parts.controller = { life, ...(real ? realControllers(deps, options) : attachmentOnly(deps, options)) }
    },
  }
}

function realControllers(deps: PartDeps, options: ClusterOptions) {
  const rest = startControllers(deps, options.attachment)
  return { running: rest.attachment, rest }
}

function attachmentOnly(deps: PartDeps, options: ClusterOptions) {
  const { client, clock } = deps
  const informers = createInformers(deps)
  const recorder = createRecorder({ ...deps, component: 'attachdetach-controller' })
  const registry = createRegistry([csiRegistered({ client, informers, clock })])
  const more = options.attachment ? { options: options.attachment } : {}
  const running = createAttachmentController({ ...deps, informers, registry, recorder, ...more })
  const rest = {
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await Promise.all([informers, recorder, deps.history].map((part) => part?.[Symbol.asyncDispose]()))
    },
  }
  return { running, rest }
}

function startModelAgent({ machines, trace, watch }: Shared, deps: PartDeps, name: string): AsyncDisposable {
  const observer = {
    onMount: (node: string, volume: string) => (trace.line('mount', { node, volume }), watch.onMount(node, volume)),
    onUnmount: (node: string, volume: string) => trace.line('unmount', { node, volume }),
  }
  return createModelNode({ ...deps, name, machine: machines.get(name)!, observer })
}

function startModelAttacher({ faults, random, admin, storage, watch }: Shared, deps: PartDeps): AsyncDisposable {
  const rough = () => !faults.calm && random.chance(faults.rates.storage)
  return createModelAttacher({
    ...{ ...deps, storage, driver: modelDriver },
    weather: () => (rough() ? (random.chance(0.5) ? 'fail' : 'lose') : 'fine'),
    async beforeUnpublish(attachment, handle) {
      const node = attachment.spec.nodeName
      const live = await admin.get('Node', { name: node }).catch(() => undefined)
      if (deps.life.alive) watch.beforeUnpublish(handle, node, live)
    },
  })
}

const never = new AbortController().signal

function text(value: unknown): string | undefined {
  return value === undefined ? undefined : String(value)
}

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

/** A Node object as it is registered; that it is ready, its agent says. */
export async function addNode(admin: Client, name: string): Promise<void> {
  const annotations = { [managedAnnotation]: 'true' }
  await admin.create('Node', { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations }, spec: {} })
}

/** Nobody has heard from the node for a while, or ever: what the node controller would write. */
export async function setNotReady(admin: Client, name: string): Promise<void> {
  const known = (await admin.get('Node', { name })).status?.conditions?.some(({ type }) => type === 'Ready')
  const reason = known ? 'NodeStatusUnknown' : 'NodeStatusNeverUpdated'
  const status = { conditions: [{ type: 'Ready', status: 'Unknown', reason }] }
  await admin.patch('Node', { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
}
