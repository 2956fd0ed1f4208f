// CSI as it ships: the built-in driver beside each node, drivers named by the user, and the jobs of the sidecars.
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Client } from '../client/client.ts'
import type { History } from '../client/history.ts'
import type { Informers } from '../client/informer.ts'
import type { Clock } from '../clock/clock.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import { createCsiJobs } from '../csi/sidecars/jobs.ts'
import { spawnLocalDriver } from '../drivers/local/process.ts'
import type { Log } from '../telemetry/log.ts'
import { pluginsDirectory } from '../volume/paths.ts'
import type { HawserConfig, NodeConfig } from './config.ts'
import { builtInDriver } from './config.ts'
import { ensureDefaultObjects } from './default-objects.ts'
import type { StartedNode } from './node.ts'

export interface CsiDeps {
  readonly config: HawserConfig
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  readonly log: Log
  readonly history: History
  readonly nodes: readonly { readonly config: NodeConfig; readonly node: StartedNode }[]
}

export async function startCsi(deps: CsiDeps): Promise<AsyncDisposable> {
  const { config, client, informers, clock, nodes } = deps
  const log = deps.log.child({ part: 'csi' })
  await using stack = new AsyncDisposableStack()
  // Several nodes on one machine share the images, so that a pod can move between them; then volumes are attached.
  const shared = nodes.length > 1
  await ensureDefaultObjects(client, { attachRequired: shared })
  for (const { config: node, node: started } of nodes) {
    const socket = join(pluginsDirectory(node.root), builtInDriver, 'csi.sock')
    mkdirSync(dirname(socket), { recursive: true, mode: 0o750 })
    const dataDirectory = join(config.dataDirectory, 'volumes')
    const mode = shared ? 'shared' : 'local'
    stack.use(await spawnLocalDriver({ clock, log }, { socket, dataDirectory, nodeId: node.name, mode }))
    await started.registerDriver(builtInDriver, socket)
  }
  const [first] = nodes
  if (first) {
    stack.use(registerDrivers({ clock, log }, first.node, config.csiDrivers))
    const leaveTo = Object.fromEntries(config.leaveToSidecars.map((name) => [name, 'all' as const]))
    stack.use(
      createCsiJobs(
        { client, informers, clock, log, drivers: first.node.drivers, history: deps.history },
        { leaveTo, identity: 'hawser' },
      ),
    )
  }
  return stack.move()
}

/** Drivers named by the user, which no registrar announces. One that is not there yet is tried again until it is. */
export function registerDrivers(
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  node: StartedNode,
  drivers: HawserConfig['csiDrivers'],
): AsyncDisposable {
  const loop = createKeyLoop<HawserConfig['csiDrivers'][number]>({
    name: 'driver registration',
    clock,
    workers: 4,
    backoff: { firstMs: 500, capMs: 30_000 },
    look: ({ name, socket }) => node.registerDriver(name, socket),
    onError: ({ name, socket }, error, retryAt) =>
      log.warn('driver not registered', { driver: name, socket, error, retryAt, try: `hawser driver check ${socket}` }),
  })
  for (const driver of drivers) loop.wake(driver)
  return loop
}
