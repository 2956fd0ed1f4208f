// What goes wrong? Chances that calls fail, answers are lost and watches are cut, per role; all of them end when the
// liveness phase begins.
import { serviceUnavailable } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { createInProcessClient } from '../client/in-process.ts'
import type { Wire } from '../client/in-process.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { ModelHost } from '../host/model/model-host.ts'

export interface FaultRates {
  /** A call never reaches the server. */
  readonly refused: number
  /** The server did it, and the answer is lost. */
  readonly answerLost: number
  /** A watch ends at an event. */
  readonly watchCut: number
  /** Milliseconds, at most, on the way. */
  readonly delayMs: number
  /** The storage refuses or fails a call of the attacher. */
  readonly storage: number
  /** After a step, a machine's disk is full or read-only for a while, or calls fail there; only real agents have one. */
  readonly host?: number
}

export const roughWeather: FaultRates = { refused: 0.03, answerLost: 0.02, watchCut: 0.02, delayMs: 40, storage: 0.1 }

export interface Faults {
  /** Do things go wrong at all? */
  calm: boolean
  readonly rates: FaultRates
}

const writes = ['files.writeFile', 'files.mkdirEach', 'files.mkdirAll', 'files.mkdirDeep', 'files.symlink']
const changes = [...writes, 'files.remove', 'files.removeTree', 'files.rename', 'mounts.unmount']

/** A machine has trouble with its disk below this directory, until its faults are cleared. */
export function strikeHost({ faults }: Pick<ModelHost, 'faults'>, below: string, random: Random): string {
  const [code, calls, kind, times] = random.pick([
    ['ENOSPC', writes, 'fails', undefined],
    ['EROFS', changes, 'fails', undefined],
    ['EIO', changes, 'fails', 3],
    ['TIMEOUT', changes, 'failsAfter', 2],
  ] as const)
  for (const call of calls) {
    if (random.chance(0.5)) faults.plant({ call, below, kind, code, ...(times === undefined ? {} : { times }) })
  }
  if (random.chance(0.3)) faults.plant({ call: 'mounts.unmount', below, kind: 'slow', delayMs: 5_000, times: 3 })
  return code
}

/** One life of one part: when it dies, its calls in flight may or may not have been carried out, and nobody hears. */
export interface Life {
  alive: boolean
  /** Cut off from the server, for nodes. */
  cutOff: boolean
}

export function createLife(): Life {
  return { alive: true, cutOff: false }
}

export function createFaultyClient(
  server: Client,
  deps: { readonly clock: Clock; readonly random: Random; readonly faults: Faults },
  life: Life,
): Client {
  const { clock, random, faults } = deps
  const happens = (rate: number) => !faults.calm && random.chance(rate)
  const reach = () => {
    if (!life.alive) throw new Error('this part is dead')
    if (life.cutOff) throw serviceUnavailable('no route to the server')
  }
  const wire: Wire = {
    clock,
    delayMs: () => (faults.calm ? 1 : random.below(faults.rates.delayMs)),
    before() {
      reach()
      if (happens(faults.rates.refused)) throw serviceUnavailable('simulated: the call did not arrive')
    },
    after() {
      reach()
      if (happens(faults.rates.answerLost)) throw serviceUnavailable('simulated: the answer was lost')
    },
    onWatchEvent() {
      reach()
      if (happens(faults.rates.watchCut)) throw serviceUnavailable('simulated: the watch was cut')
    },
  }
  return createInProcessClient(server, wire)
}
