// How do the claim tests run the real controllers? On an API server in memory, with virtual time, until nothing moves.
import type { KubeObject } from '../../src/api/meta.ts'
import type { Event } from '../../src/api/generated/types.ts'
import type { Client } from '../../src/client/client.ts'
import { createHistory } from '../../src/client/history.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import type { Wire } from '../../src/client/in-process.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import type { Recorder } from '../../src/client/recorder.ts'
import type { Controller, ControllerDeps } from '../../src/controllers/shared/controller.ts'
import type { Transition } from '../../src/controllers/shared/waiting.ts'
import { createControllerHistory } from '../../src/controllers/shared/history.ts'
import type { ControllerHistory } from '../../src/controllers/shared/history.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { withControllerRights } from './controller-rights.ts'
import { createObservedApi } from './observed-api.ts'

export type MakeControllers = (deps: ControllerDeps) => readonly Controller[]

export async function createVirtualCluster(seed: number | string = 1) {
  const clock = createVirtualClock()
  const random = createRandom(seed)
  const server = await createObservedApi({ clock, random })
  const told: Telling[] = []
  return {
    clock,
    /** For assertWhy: the objects of the server, and what the history would say of them by now. */
    asked: async () => ({ client: withStory(server, await storyOf(told)), clock }),
    random,
    server,
    /** Controllers with their own caches, as one process would have them. */
    run(make: MakeControllers, wire?: Omit<Wire, 'clock'>) {
      const limited = withControllerRights(server.forControllers)
      const client = createInProcessClient(limited, wire === undefined ? undefined : { clock, ...wire })
      const informers = createInformers({ client, clock, random: random.fork(), log: silentLog })
      const recorders: Recorder[] = []
      const transitions: Transition[] = []
      const metrics = createMetrics()
      const controllers = make({
        client,
        informers,
        clock,
        metrics,
        log: silentLog,
        onWaiting: (...words) => void told.push({ at: clock.now(), tell: (history) => history.onWaiting(...words) }),
        onTransition(transition) {
          transitions.push(transition)
          told.push({ at: clock.now(), tell: (history) => history.onTransition(transition) })
        },
        recorder(component) {
          const recorder = createRecorder({ client: limited, clock, log: silentLog, component })
          recorders.push(recorder)
          return recorder
        },
      })
      return {
        controllers,
        transitions,
        metrics,
        waiting: () => new Map(controllers.flatMap((controller) => [...controller.waiting()])),
        /** Lets everything that can happen now happen. */
        settle: () => clock.settle(),
        async stop() {
          const stopped = Promise.all([
            ...controllers.map((controller) => controller[Symbol.asyncDispose]()),
            informers[Symbol.asyncDispose](),
          ])
          await clock.settle()
          await stopped
          for (const recorder of recorders) await recorder[Symbol.asyncDispose]()
        },
      }
    },
    events: (): string[] =>
      (server.all('Event') as Event[]).map(
        ({ type, reason, involvedObject, message }) =>
          `${type} ${reason} ${involvedObject.kind}/${involvedObject.name}: ${message}`,
      ),
    put: async <T extends KubeObject>(kind: never, object: T) => server.create(kind, object as never),
  }
}

export type VirtualCluster = Awaited<ReturnType<typeof createVirtualCluster>>

interface Telling {
  readonly at: number
  tell(history: ControllerHistory): void
}

/**
 * What the controllers told, told again to a history of its own, at its own time. The history writes behind the work, by
 * timers; on the controllers' server and clock its writes and timers would count among theirs.
 */
async function storyOf(told: readonly Telling[]): Promise<Client> {
  const clock = createVirtualClock()
  const ledger = await createObservedApi({ clock, random: createRandom(1) })
  const history = createHistory({ client: ledger, clock, log: silentLog, owns: () => true })
  const controllers = createControllerHistory(history, clock)
  for (const { at, tell } of told) {
    if (at > clock.now()) await clock.advance(at - clock.now())
    tell(controllers)
  }
  await clock.advance(10_000)
  await history[Symbol.asyncDispose]()
  return ledger
}

function withStory(server: Client, story: Client): Client {
  const list: Client['list'] = (kind, ...rest) => (kind === 'Operation' ? story : server).list(kind, ...rest)
  return { ...server, list }
}
