// How do the claim tests run the real controllers? On the tiny server, with virtual time, until nothing moves.
import type { KubeObject } from '../../src/api/meta.ts'
import type { Event } from '../../src/api/types.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import type { Wire } from '../../src/client/in-process.ts'
import { createInformers } from '../../src/client/informer.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import type { Recorder } from '../../src/client/recorder.ts'
import type { Controller, ControllerDeps } from '../../src/controllers/controller.ts'
import type { Transition } from '../../src/controllers/binding/wait-reasons.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createTinyServer } from './tiny-server.ts'

export type MakeControllers = (deps: ControllerDeps) => readonly Controller[]

export function createBench(seed: number | string = 1) {
  const clock = createVirtualClock()
  const random = createRandom(seed)
  const server = createTinyServer({ clock, random })
  return {
    clock,
    random,
    server,
    /** Controllers with their own caches, as one process would have them. */
    run(make: MakeControllers, wire?: Omit<Wire, 'clock'>) {
      const client = createInProcessClient(server, wire === undefined ? undefined : { clock, ...wire })
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
        onTransition: (transition) => void transitions.push(transition),
        recorder(component) {
          const recorder = createRecorder({ client: server, clock, log: silentLog, component })
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

export type Bench = ReturnType<typeof createBench>
