// A whole cluster in this process on virtual time: the API server with its HTTP surface, controllers, CSI jobs and agents as
// they ship, on model hosts and a model storage. Nothing fails.
import type { Client } from '../../src/client/client.ts'
import { createRandom } from '../../src/clock/random.ts'
import type { VirtualClock } from '../../src/clock/virtual-clock.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { startControllers } from '../../src/main/controllers.ts'
import { createLife } from '../../src/sim/faults.ts'
import { createModelStorage } from '../../src/sim/model/storage.ts'
import { createRealStorage, startAgent, startJobs } from '../../src/sim/real/parts.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { makeServer } from '../kit/api-server.ts'
import type { TestServer } from '../kit/api-server.ts'

export interface ModelCluster extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: Client
  /** What a user types goes through here: requests as kubectl sends them. */
  readonly server: TestServer
  /** Ends the node's agent; containers and mounts stay. */
  stopAgent(): Promise<void>
  startAgent(): void
  /** Moves the clock until it is true, two virtual minutes at most. */
  until(what: string, isTrue: () => Promise<boolean>): Promise<void>
}

const storageView = createModelStorage({ onPublish() {}, onUnpublish() {} })
const rates = { refused: 0, answerLost: 0, watchCut: 0, delayMs: 0, storage: 0 }
const longestMs = 120_000

export async function startModelCluster(node: string): Promise<ModelCluster> {
  const server = await makeServer()
  const { clock } = server
  const random = createRandom(1)
  const client = createInProcessClient(server.server.api())
  const storage = createRealStorage(
    {
      clock,
      random,
      faults: { calm: true, rates },
      view: storageView,
      onStaged() {},
      onUnstaged() {},
      async beforeUnpublish() {},
      refused: (details) => {
        throw new Error(details)
      },
    },
    [node],
  )
  const part = () => {
    return { client, clock, random: random.fork(), log: silentLog, metrics: createMetrics(), life: createLife() }
  }
  await using stack = new AsyncDisposableStack()
  stack.use(server)
  const host = storage.hosts.get(node)!
  const starting = startControllers({ ...part(), host, forceDetachOnTimeout: true, placement: {} })
  await clock.advance(1_000)
  stack.use(await starting)
  stack.use(startJobs(part(), storage.driversFor(node, createLife())))
  const parts = stack.move()
  let agent: AsyncDisposable | undefined
  const cluster: ModelCluster = {
    clock,
    client,
    server,
    async stopAgent() {
      const stopping = agent?.[Symbol.asyncDispose]()
      await clock.advance(1_000)
      await stopping
      agent = undefined
    },
    startAgent() {
      agent = startAgent({ ...part(), name: node }, storage)
    },
    async until(what, isTrue) {
      const start = clock.now()
      while (!(await isTrue())) {
        if (clock.now() - start > longestMs) throw new Error(`${what} did not come true in two minutes`)
        await clock.advance(100)
      }
    },
    async [Symbol.asyncDispose]() {
      if (agent) await cluster.stopAgent()
      await parts[Symbol.asyncDispose]()
    },
  }
  return cluster
}
