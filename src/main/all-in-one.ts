// Everything in one process: `hawser up`, and the library's embedded cluster.
import { randomBytes } from 'node:crypto'
import { createRandom } from '../clock/random.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { HawserConfig, NodeConfig } from './config.ts'
import { startControlPlane } from './control-plane.ts'
import { startControllers } from './controllers.ts'
import { createLinuxHost } from '../host/linux/linux-host.ts'
import { openDataDirectory } from './data-directory.ts'
import type { StartedNode } from './node.ts'
import { packageVersion } from './version.ts'

export interface Hawser extends AsyncDisposable {
  readonly url: string
  readonly kubeconfig: string
  readonly bare: boolean
  /** In process, as an administrator. */
  readonly client: Client
}

export interface HawserDeps {
  readonly log: Log
  /** Says something to the person who started us. */
  readonly note: (text: string) => void
}

export async function startHawser(config: HawserConfig, { log }: HawserDeps): Promise<Hawser> {
  const clock = createSystemClock()
  const random = createRandom(randomBytes(32))
  const metrics = createMetrics()
  await using stack = new AsyncDisposableStack()
  const directory = stack.use(openDataDirectory(config.dataDirectory))
  const plane = stack.use(await startControlPlane({ config, directory, clock, random, log, metrics }))
  const client = plane.clientFor('system:kube-controller-manager')
  const { forceDetachOnTimeout } = config
  const history = stack.use(createHistory({ client, clock, log, owns: (actor) => !actor.startsWith('node ') }))
  const host = stack.use(createLinuxHost())
  const placement = !config.bare
  const controllers = stack.use(
    await startControllers({ client, clock, random, log, metrics, host, forceDetachOnTimeout, placement, history }),
  )
  if (config.nodes.length > 0) {
    // Loaded only where there is a node: gRPC, drivers and plugins are a third of the program's memory.
    const [{ startNode }, { startCsi }] = await Promise.all([import('./node.ts'), import('./csi.ts')])
    const nodes: { config: NodeConfig; node: StartedNode }[] = []
    for (const node of config.nodes) {
      const own = plane.clientFor(`system:node:${node.name}`)
      const version = packageVersion
      const started = await startNode({ config, node, client: own, clock, random, log, metrics, host, version })
      nodes.push({ config: node, node: stack.use(started) })
    }
    stack.use(await startCsi({ config, client, informers: controllers.informers, clock, log, history, nodes }))
  }
  const kept = stack.move()
  return {
    url: plane.url,
    kubeconfig: directory.kubeconfigFile,
    bare: config.bare,
    client: plane.clientFor('admin'),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
