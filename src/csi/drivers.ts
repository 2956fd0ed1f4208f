// Which drivers are registered here, how are they reached, and what can they do? One connection per registration;
// capabilities are asked once and forgotten when the connection drops (WART-7, SIDE-2).
import type { Clock } from '../clock/clock.ts'
import { VolumeError } from '../volume/effect.ts'
import { createControllerCalls } from './controller.ts'
import type { ControllerCalls } from './controller.ts'
import { createIdentityCalls } from './identity.ts'
import type { IdentityCalls } from './identity.ts'
import { createNodeCalls } from './node.ts'
import type { NodeCalls } from './node.ts'
import { createWire } from './service.ts'
import type { Transport } from './service.ts'
import type { ControllerCapabilityName, NodeCapabilityName, PluginCapabilityName } from './values.ts'
import { createListeners } from '../loop/listeners.ts'

/** How a connection is made: a gRPC channel in the real program, function calls in the simulator. */
export type Connect = (endpoint: string) => Connection

interface Connection extends Disposable {
  readonly transport: Transport
  onLost(listener: () => void): Disposable
  onReady(listener: () => void): Disposable
}

export interface Driver extends Disposable {
  readonly name: string
  readonly endpoint: string
  readonly identity: IdentityCalls
  readonly node: NodeCalls
  /** Controller calls with the deadline of the job that makes them (SIDE-3). */
  controller(timeoutMs: number): ControllerCalls
  pluginCapabilities(signal: AbortSignal): Promise<ReadonlySet<PluginCapabilityName>>
  controllerCapabilities(signal: AbortSignal): Promise<ReadonlySet<ControllerCapabilityName>>
  nodeCapabilities(signal: AbortSignal): Promise<ReadonlySet<NodeCapabilityName>>
  onLost(listener: () => void): Disposable
  /** The driver can be reached, for the first time or again: no back-off of an outage counts any longer. */
  onReady(listener: () => void): Disposable
}

export function openDriver(deps: {
  readonly name: string
  readonly endpoint: string
  readonly connect: Connect
  readonly clock: Clock
}): Driver {
  const { clock, name, endpoint } = deps
  const connection = deps.connect(endpoint)
  const wire = createWire(connection.transport)
  const identity = createIdentityCalls({ wire, clock })
  const node = createNodeCalls({ wire, clock })
  const plugin = remembered((signal) => identity.capabilities(signal))
  const controllerSet = remembered(async (signal) =>
    (await plugin.get(signal)).has('CONTROLLER_SERVICE')
      ? createControllerCalls({ wire, clock }).capabilities(signal)
      : new Set<ControllerCapabilityName>(),
  )
  const nodeSet = remembered((signal) => node.capabilities(signal))
  connection.onLost(() => {
    plugin.forget()
    controllerSet.forget()
    nodeSet.forget()
  })
  return {
    name,
    endpoint,
    identity,
    node,
    controller: (timeoutMs) => createControllerCalls({ wire, clock, timeoutMs }),
    pluginCapabilities: plugin.get,
    controllerCapabilities: controllerSet.get,
    nodeCapabilities: nodeSet.get,
    onLost: (listener) => connection.onLost(listener),
    onReady: (listener) => connection.onReady(listener),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  }
}

export interface Drivers {
  get(name: string): Driver | undefined
  /** CSI-12: an unknown driver is always a passing trouble. */
  require(name: string): Driver
  all(): readonly Driver[]
  /** Present drivers are told as added before this returns. */
  subscribe(listener: (change: { readonly kind: 'added' | 'removed'; readonly driver: Driver }) => void): Disposable
  add(driver: Driver): void
  /** Removes this very driver; another one under the same name stays. */
  remove(driver: Driver): void
  /** An attachment says that this node takes no more volumes of the driver. */
  tellFull(name: string): void
  onFull(listener: (name: string) => void): Disposable
}

export function createDrivers(): Drivers {
  const byName = new Map<string, Driver>()
  const listeners = createListeners<Parameters<Parameters<Drivers['subscribe']>[0]>>()
  const full = createListeners<[name: string]>()
  const tell = (kind: 'added' | 'removed', driver: Driver) => listeners.tell({ kind, driver })
  const remove = (driver: Driver) => {
    if (byName.get(driver.name) !== driver) return
    byName.delete(driver.name)
    tell('removed', driver)
    driver[Symbol.dispose]()
  }
  return {
    get: (name) => byName.get(name),
    require(name) {
      const driver = byName.get(name)
      if (driver) return driver
      const message = `driver name ${name} not found in the list of registered CSI drivers`
      throw new VolumeError('DriverMissing', message, { effect: 'untried' })
    },
    all: () => [...byName.values()],
    subscribe(listener) {
      const subscription = listeners.listen(listener)
      for (const driver of byName.values()) listener({ kind: 'added', driver })
      return subscription
    },
    add(driver) {
      const old = byName.get(driver.name)
      if (old) remove(old)
      byName.set(driver.name, driver)
      tell('added', driver)
    },
    remove,
    tellFull: (name) => full.tell(name),
    onFull: (listener) => full.listen(listener),
  }
}

/** Asks once; a failure is not remembered, and several askers share one question. */
function remembered<T>(ask: (signal: AbortSignal) => Promise<T>) {
  let known: Promise<T> | undefined
  return {
    async get(signal: AbortSignal): Promise<T> {
      const mine = (known ??= ask(signal))
      try {
        return await mine
      } catch (error) {
        if (known === mine) known = undefined
        throw error
      }
    },
    forget(): void {
      known = undefined
    },
  }
}
