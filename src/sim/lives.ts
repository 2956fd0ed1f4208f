// How do the parts of a simulated cluster start and end? Each has a life of its own; a new one replaces it after a crash.
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import { createInformers } from '../client/informer.ts'
import { createRecorder } from '../client/recorder.ts'
import type { Random } from '../clock/random.ts'
import type { VirtualClock } from '../clock/virtual-clock.ts'
import type { AttachmentController, AttachmentOptions } from '../controllers/attachment/controller.ts'
import { createAttachmentController } from '../controllers/attachment/controller.ts'
import type { Log } from '../telemetry/log.ts'
import { createLog, silentLog } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRegistry } from '../volume/registry.ts'
import type { Faults, Life } from './faults.ts'
import { createFaultyClient, createLife } from './faults.ts'
import type { AttachmentWatch } from './invariants/attachment.ts'
import { createModelAttacher } from './model/attacher.ts'
import type { Machine } from './model/node.ts'
import { createModelNode } from './model/node.ts'
import { csiRegistered, modelDriver } from './model/plugin.ts'
import type { ModelStorage } from './model/storage.ts'
import { startAgent as startRealAgent, startControllers, startJobs } from './real/parts.ts'
import type { PartDeps, RealStorage } from './real/parts.ts'
import type { Trace } from './trace.ts'

export interface LifeOptions {
  readonly nodes: number
  readonly attachment?: AttachmentOptions
  /** Every part writes its history, as it does when it ships; costs writes, and leads to other runs of the same seeds. */
  readonly history?: boolean
  /** Tampers with what the controller sees, to prove that a broken controller is caught. */
  readonly sabotage?: (client: Client) => Client
}

export interface LifeDeps {
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
  readonly options: LifeOptions
  /** Undefined where nodes and attacher are models. */
  readonly real: RealStorage | undefined
}

/** The parts that live now. */
export interface Parts {
  controller: { life: Life; running: AttachmentController; rest: AsyncDisposable } | undefined
  attacher: { life: Life; running: AsyncDisposable } | undefined
  readonly agents: Map<string, { life: Life; running: AsyncDisposable }>
}

/** A crash: from this moment no call of the part reaches the server, and nobody waits until it has stopped. */
export function end(life: Life | undefined, ...parts: (AsyncDisposable | undefined)[]): void {
  if (life) life.alive = false
  for (const part of parts) void part?.[Symbol.asyncDispose]()
}

const isDriver = (actor: string) => actor.startsWith('csi ')

export function createLives(shared: LifeDeps) {
  const { clock, random, trace, faults, admin, parts, options, watch, metrics, real } = shared
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

function realControllers(deps: PartDeps, options: LifeOptions) {
  const rest = startControllers(deps, options.attachment)
  return { running: rest.attachment, rest }
}

function attachmentOnly(deps: PartDeps, options: LifeOptions) {
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

function startModelAgent({ machines, trace, watch }: LifeDeps, deps: PartDeps, name: string): AsyncDisposable {
  const observer = {
    onMount: (node: string, volume: string) => (trace.line('mount', { node, volume }), watch.onMount(node, volume)),
    onUnmount: (node: string, volume: string) => trace.line('unmount', { node, volume }),
  }
  return createModelNode({ ...deps, name, machine: machines.get(name)!, observer })
}

function startModelAttacher({ faults, random, admin, storage, watch }: LifeDeps, deps: PartDeps): AsyncDisposable {
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

function text(value: unknown): string | undefined {
  return value === undefined ? undefined : String(value)
}
