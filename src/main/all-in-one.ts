// Everything in one process: `hawser up`, and the library's embedded cluster.
import { randomBytes } from 'node:crypto'
import { forgetRecentObjects } from '../apiserver/objects.ts'
import type { ServerTls } from '../apiserver/server.ts'
import type { Clock } from '../clock/clock.ts'
import { createRandom } from '../clock/random.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import type { Client } from '../client/client.ts'
import { createHistory } from '../client/history.ts'
import type { Door } from '../streams/door.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { HawserConfig } from './config.ts'
import { startControlPlane } from './control-plane.ts'
import { startControllers } from './controllers.ts'
import type { Host } from '../host/host.ts'
import { defaultDriverDirectory } from '../plugins/flex-volume/probe.ts'
import { createLinuxHost } from '../host/linux/linux-host.ts'
import { openDataDirectory } from './data-directory.ts'
import { ensureDefaultObjects } from './default-objects.ts'
import { giveBackWhenCalm } from './idle-memory.ts'
import { rehearse } from './rehearsal.ts'
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
  /** Called when there is nothing to do after a burst. */
  readonly giveBackMemory?: (() => void) | undefined
  /** Practise before the server is ready (rehearsal.ts): for a program that stays, not for a test of a second. */
  readonly rehearse?: boolean
  /** Says something to the person who started us. */
  readonly note: (text: string) => void
}

/** A rehearsal of so many claims takes one second, for most of what a thousand would bring; that of so many pods, too. */
const rehearsedClaims = 304
const rehearsedPods = 192
/** With more changes behind it a store has a life of its own: those who wait for its start wait for nothing else. */
const youngRevision = 1_000
/** A collection takes compiled code along: what was practised is kept until the first users have had their time to come. */
const practiceMs = 600_000

export async function startHawser(config: HawserConfig, deps: HawserDeps): Promise<Hawser> {
  const { log, giveBackMemory } = deps
  const clock = createSystemClock()
  const random = createRandom(randomBytes(32))
  const metrics = createMetrics()
  await using stack = new AsyncDisposableStack()
  const directory = stack.use(openDataDirectory(config.dataDirectory))
  let started = false
  const starting = () => (started ? [] : ['start'])
  const plane = stack.use(await startControlPlane({ config, directory, clock, random, log, metrics, starting }))
  const client = plane.clientFor('system:kube-controller-manager')
  const { forceDetachOnTimeout } = config
  const history = stack.use(createHistory({ client, clock, log, owns: (actor) => !actor.startsWith('node ') }))
  const host = stack.use(createLinuxHost())
  const placement = !config.bare
  const controllers = stack.use(
    await startControllers({
      client,
      clock,
      random,
      log,
      metrics,
      host,
      flexDrivers: {
        host,
        directory: config.volumePluginDirectory ?? defaultDriverDirectory,
        ...(config.nodes.length === 1 && config.nodes[0] ? { root: config.nodes[0].root } : {}),
      },
      forceDetachOnTimeout,
      placement,
      history,
    }),
  )
  if (config.nodes.length > 0) {
    // Loaded only where there is a node: gRPC, drivers and plugins are a third of the program's memory.
    const [{ startNode }, csi] = await Promise.all([import('./node.ts'), import('./csi.ts')])
    await ensureDefaultObjects(client, { attachRequired: csi.sharesImages(config) })
    for (const [index, node] of config.nodes.entries()) {
      const own = plane.clientFor(`system:node:${node.name}`)
      const builtIn = stack.use(await csi.startBuiltInDriver({ clock, log }, config, node))
      const csiDrivers = [builtIn, ...(index === 0 ? config.csiDrivers : [])]
      const version = packageVersion
      const openDoor = (door: Door) => void plane.localDoors.set(node.name, door)
      const deps = { config, node, client: own, clock, random, log, metrics, host, version, csiDrivers, openDoor }
      const started = stack.use(await startNode(deps))
      // One instance of each driver does the jobs of the whole cluster.
      if (index > 0) continue
      const { informers } = controllers
      const { drivers } = started
      stack.use(csi.startCsiJobs({ client, informers, clock, log, history, drivers }, config.leaveToSidecars))
    }
  }
  if (config.nodes.length === 0 && config.csiDrivers.length > 0) {
    // Agents elsewhere mount; whoever sits beside a driver's controller does the sidecars' jobs.
    const csi = await import('./csi.ts')
    const drivers = csi.openDrivers(clock, config.csiDrivers)
    const { informers } = controllers
    stack.use(csi.startCsiJobs({ client, informers, clock, log, history, drivers }, config.leaveToSidecars))
  }
  const isYoung = deps.rehearse === true && plane.store.revision() < youngRevision
  if (giveBackMemory) {
    const giveBack = () => {
      forgetRecentObjects()
      giveBackMemory()
    }
    const keepMs = isYoung ? practiceMs : 0
    stack.use(giveBackWhenCalm({ store: plane.store, clock, log, keepMs, giveBack }))
  }
  if (isYoung) await practise(clock, host, log, plane.tls, config.nodes.length > 0)
  started = true
  const kept = stack.move()
  return {
    url: plane.url,
    kubeconfig: directory.kubeconfigFile,
    bare: config.bare,
    client: plane.clientFor('admin'),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Whatever goes wrong here is a slower start of the first burst, and nothing else. */
async function practise(clock: Clock, host: Host, log: Log, tls: ServerTls, withPods: boolean): Promise<void> {
  const began = clock.now()
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))
  try {
    const pods = withPods ? rehearsedPods : 0
    const rehearsed = await rehearse({ clock, host, tls, claims: rehearsedClaims, pods, nextTurn })
    log.debug('rehearsed', { ...rehearsed, ms: clock.now() - began })
  } catch (error) {
    log.debug('rehearsal failed', { error })
  }
  // Nobody asks for those objects again.
  forgetRecentObjects()
}
