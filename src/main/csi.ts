// CSI as it ships: the built-in driver beside each node, and the jobs of the sidecars for drivers registered there.
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Client } from '../client/client.ts'
import type { History } from '../client/history.ts'
import type { Informers } from '../client/informer.ts'
import type { Clock } from '../clock/clock.ts'
import { openChannel } from '../csi/channel.ts'
import type { Drivers } from '../csi/drivers.ts'
import { createDrivers, openDriver } from '../csi/drivers.ts'
import type { CsiJobs, CsiJobsOptions } from '../csi/sidecars/jobs.ts'
import { createCsiJobs } from '../csi/sidecars/jobs.ts'
import { spawnLocalDriver } from '../drivers/local/process.ts'
import type { Log } from '../telemetry/log.ts'
import { pluginsDirectory } from '../volume/paths.ts'
import type { HawserConfig, NodeConfig } from '../installation/config.ts'
import { builtInDriver } from '../installation/config.ts'
import { fenced } from './fenced-channel.ts'

export interface BuiltInDriver extends AsyncDisposable {
  readonly name: string
  readonly socket: string
}

/** Several nodes on one machine share the images, so that a pod can move between them; then volumes are attached. */
export const sharesImages = (config: Pick<HawserConfig, 'nodes'>) => config.nodes.length > 1

export async function startBuiltInDriver(
  deps: { readonly clock: Clock; readonly log: Log },
  config: Pick<HawserConfig, 'dataDirectory' | 'nodes' | 'overcommit'>,
  node: NodeConfig,
): Promise<BuiltInDriver> {
  const socket = join(pluginsDirectory(node.root), builtInDriver, 'csi.sock')
  mkdirSync(dirname(socket), { recursive: true, mode: 0o750 })
  const driver = await spawnLocalDriver(deps, {
    socket,
    dataDirectory: join(config.dataDirectory, 'volumes'),
    nodeId: node.name,
    mode: sharesImages(config) ? 'shared' : 'local',
    ...(config.overcommit === undefined ? {} : { overcommit: config.overcommit }),
  })
  return { name: builtInDriver, socket, [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose]() }
}

/** Drivers reached for their controller service only; jobs start when they answer. */
export function openDrivers(clock: Clock, named: HawserConfig['csiDrivers'], requireActive: () => void): Drivers {
  const drivers = createDrivers()
  for (const { name, socket } of named) {
    drivers.add(openDriver({ name, endpoint: socket, connect: fenced(openChannel, requireActive), clock }))
  }
  return drivers
}

export interface JobsDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  readonly log: Log
  readonly history: History
  readonly drivers: Drivers
}

export interface JobsOptions extends Pick<CsiJobsOptions, 'ownNode' | 'prefers' | 'bindSnapshots'> {
  readonly leaveToSidecars: readonly string[]
}

export function startCsiJobs(deps: JobsDeps, options: JobsOptions): CsiJobs {
  const { leaveToSidecars, ...rest } = options
  const leaveTo = Object.fromEntries(leaveToSidecars.map((name) => [name, 'all' as const]))
  return createCsiJobs({ ...deps, log: deps.log.child({ part: 'csi' }) }, { ...rest, leaveTo, identity: 'hawser' })
}
