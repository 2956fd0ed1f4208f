// How does a node's agent come to its drivers? The watched directory, and the drivers named by hand (`--csi-driver
// NAME=SOCKET`), both end in the same list; attach limits are refreshed where a driver asks for it (CSINODE-9).
import { operationBackoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Client } from '../../client/client.ts'
import type { Informers } from '../../client/informer.ts'
import type { Host } from '../../host/host.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { registrationDirectory } from '../../volume/paths.ts'
import type { Connect, Driver, Drivers } from '../drivers.ts'
import { createHandshake } from './handshake.ts'
import { createNodeInfoPublisher } from './node-info.ts'
import { watchSockets } from './sockets.ts'
import { createStorageHealth } from './storage-health.ts'

export interface RegistrarDeps {
  readonly client: Client
  readonly informers: Informers
  readonly host: Pick<Host, 'files'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly connect: Connect
  readonly drivers: Drivers
  readonly nodeName: string
  /** The node's root directory. */
  readonly root: string
}

interface NamedDriver {
  /** Checked against what the driver calls itself; absent: any name. */
  readonly name?: string
  readonly endpoint: string
}

export interface Registrar extends AsyncDisposable {
  /** Registers a driver that no registrar announces. From then on it is ours: it may restart as often as it likes. */
  register(driver: NamedDriver, signal: AbortSignal): Promise<void>
}

/** Resolves when the node's CSINode exists and the directory is watched; drivers come and go from then on. */
export async function createRegistrar(deps: RegistrarDeps, signal: AbortSignal): Promise<Registrar> {
  const { client, clock, log, connect, drivers, host, nodeName } = deps
  await using stack = new AsyncDisposableStack()
  const nodeInfo = createNodeInfoPublisher({ client, clock, nodeName })
  const handshake = createHandshake({ connect, clock, drivers, nodeInfo, files: host.files })
  await nodeInfo.ensure(signal)
  stack.use(await watchSockets({ host, clock, log, handshake, directory: registrationDirectory(deps.root) }, signal))
  const restarted = stack.use(
    createKeyLoop<Driver>({
      name: 'restarted drivers',
      clock,
      workers: 4,
      backoff: operationBackoff,
      // A driver that restarts keeps its place, but what it says of the node may have changed (SIDE-2).
      async look(driver, stop) {
        if (drivers.get(driver.name) === driver) await nodeInfo.install(driver.name, await driver.node.info(stop), stop)
      },
      onError: (driver, error, retryAt) => log.warn('driver does not answer', { driver: driver.name, error, retryAt }),
    }),
  )
  stack.use(createLimitRefresher(deps, nodeInfo))
  stack.use(createStorageHealth({ clock, log, metrics: deps.metrics, drivers, nodeInfo }))
  const owned = stack.move()
  return {
    async register(named, stop) {
      const { driver } = await handshake.registerDirectly(named.endpoint, named.name, stop)
      let wasLost = false
      driver.onLost(() => {
        wasLost = true
        // A moment later: it is either back by then, or we are both being stopped.
        restarted.wakeAt(driver, clock.now() + 1_000)
      })
      driver.onReady(() => {
        if (!wasLost) return // what it says of the node was published when it was registered
        restarted.forget(driver)
        restarted.wake(driver)
      })
      log.info('driver registered', { driver: driver.name, endpoint: driver.endpoint })
    },
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync()
      for (const driver of drivers.all()) drivers.remove(driver)
    },
  }
}

/** CSINODE-9: on the driver's own period, and when an attach failed because the node is full. */
function createLimitRefresher(
  { clock, drivers, informers, log }: RegistrarDeps,
  nodeInfo: ReturnType<typeof createNodeInfoPublisher>,
): AsyncDisposable {
  const stack = new AsyncDisposableStack()
  const objects = informers.of('CSIDriver')
  const period = (name: string) => objects.get(name)?.spec.nodeAllocatableUpdatePeriodSeconds
  const loop = stack.use(
    createKeyLoop<string>({
      name: 'attach limits',
      clock,
      workers: 2,
      backoff: { firstMs: 10_000, capMs: 300_000 },
      async look(name, signal) {
        const driver = drivers.get(name)
        const seconds = period(name)
        if (!driver || seconds === undefined) return
        await nodeInfo.refresh(name, await driver.node.info(signal), signal)
        return { again: clock.now() + Math.max(10, seconds) * 1_000 }
      },
      onError: (name, error) => log.warn('attach limit not refreshed', { driver: name, error }),
    }),
  )
  stack.use(objects.subscribe(({ object, key }) => object && period(key) !== undefined && loop.wake(key)))
  stack.use(drivers.subscribe(({ kind, driver }) => kind === 'added' && loop.wake(driver.name)))
  stack.use(drivers.onFull((name) => loop.wake(name)))
  return stack
}
