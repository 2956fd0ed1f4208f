// Who does the jobs of drivers on machines that have joined? The server, through each node's own server: a node's certificate
// has no right to them, and so each volume has exactly one process that makes and deletes it.
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { annotations } from '../api/annotations.ts'
import type { CSINode } from '../api/generated/types.ts'
import type { NodeClient } from '../apiserver/request/pass-through.ts'
import { openChannel } from '../csi/channel.ts'
import type { Driver, Drivers } from '../csi/drivers.ts'
import { createDrivers, openDriver } from '../csi/drivers.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import { operationBackoff } from '../clock/backoff.ts'
import type { JobsDeps, JobsOptions } from './csi.ts'
import { startCsiJobs } from './csi.ts'
import { openDriverTunnel } from './driver-tunnel.ts'
import { fenced } from './fenced-channel.ts'

export interface RemoteDriversDeps extends Omit<JobsDeps, 'drivers'> {
  readonly nodeClient: NodeClient
  readonly dataDirectory: string
  /** Throws where another server may act by now. */
  readonly requireActive: () => void
}

interface RemoteNode {
  readonly drivers: Drivers
  readonly tunnels: Map<string, { readonly driver: Driver; readonly tunnel: AsyncDisposable }>
  readonly jobs: AsyncDisposable
}

/** Nodes that leave the jobs of their drivers to the server say so in an annotation. */
export function startRemoteDrivers(deps: RemoteDriversDeps, options: JobsOptions): AsyncDisposable {
  const { informers, clock, log } = deps
  const stack = new AsyncDisposableStack()
  const [csiNodes, nodes] = [informers.of('CSINode'), informers.of('Node')]
  const remotes = new Map<string, RemoteNode>()
  const loop = stack.use(
    createKeyLoop<string>({
      name: 'remote drivers',
      clock,
      workers: 4,
      backoff: operationBackoff,
      async look(node) {
        const isOurs = nodes.get(node)?.metadata.annotations?.[annotations.csiJobs] === 'server'
        const wanted = isOurs ? driversOf(csiNodes.get(node)) : []
        if (wanted.length > 0 || remotes.has(node)) await follow(deps, options, remotes, node, wanted)
      },
      onError: (node, error, retryAt) => log.warn('drivers of a node are not called yet', { node, error, retryAt }),
    }),
  )
  for (const each of [csiNodes, nodes]) stack.use(each.subscribe(({ key }) => loop.wake(key)))
  return {
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync()
      for (const node of [...remotes.keys()]) await follow(deps, options, remotes, node, [])
    },
  }
}

async function follow(
  deps: RemoteDriversDeps,
  options: JobsOptions,
  remotes: Map<string, RemoteNode>,
  node: string,
  wanted: readonly string[],
): Promise<void> {
  const { clock, log, nodeClient, dataDirectory } = deps
  const remote = remotes.getOrInsertComputed(node, () => {
    const drivers = createDrivers()
    const jobs = startCsiJobs({ ...deps, drivers }, { ...options, ownNode: node, bindSnapshots: false })
    return { drivers, jobs, tunnels: new Map() }
  })
  for (const [name, { driver, tunnel }] of remote.tunnels) {
    if (wanted.includes(name)) continue
    remote.drivers.remove(driver)
    remote.tunnels.delete(name)
    await tunnel[Symbol.asyncDispose]()
  }
  for (const name of wanted) {
    if (remote.tunnels.has(name)) continue
    // Short: a socket's path has at most 107 bytes.
    const socket = join(
      dataDirectory,
      'csi',
      `${hash('sha256', JSON.stringify([node, name]), 'hex').slice(0, 16)}.sock`,
    )
    const tunnel = await openDriverTunnel({ socket, node, driver: name }, { nodeClient, log })
    const driver = openDriver({ name, endpoint: socket, connect: fenced(openChannel, deps.requireActive), clock })
    remote.tunnels.set(name, { driver, tunnel })
    remote.drivers.add(driver)
  }
  if (wanted.length > 0) return
  remotes.delete(node)
  await remote.jobs[Symbol.asyncDispose]()
}

function driversOf(csiNode: CSINode | undefined): readonly string[] {
  return csiNode?.spec.drivers.map(({ name }) => name) ?? []
}
