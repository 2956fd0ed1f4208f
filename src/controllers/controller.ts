// What do all controllers have in common? A name, reasons to wait that can be asked for, and an orderly stop.
import type { Client } from '../client/client.ts'
import type { Informers } from '../client/informer.ts'
import type { Recorder } from '../client/recorder.ts'
import type { Clock } from '../clock/clock.ts'
import type { KeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Transition, Waiting } from './binding/waiting.ts'

export interface Controller extends AsyncDisposable {
  readonly name: string
  /** Why nothing happens, per object (`Kind/key`). */
  waiting(): ReadonlyMap<string, readonly Waiting[]>
  /** Resolves when nothing is queued or running; timers may be set. */
  idle(): Promise<void>
}

/** What every controller is given; each takes what it needs. */
export interface ControllerDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** A recorder that speaks as this component. */
  recorder(component: string): Recorder
  /** Hears of every change that a rule made. */
  onTransition?(transition: Transition): void
  /** Hears what an object (`Kind/key`) waits for, each time it was looked at. */
  onWaiting?(controller: string, object: string, waiting: readonly Waiting[]): void
}

/** May keys be woken? Not before every cache is full, and not after the stop. */
export interface Gate {
  isOpen: boolean
}

export interface OneLoopParts<Key> {
  readonly name: string
  readonly gate: Gate
  readonly loop: KeyLoop<Key>
  readonly waiting: { readonly all: ReadonlyMap<string, readonly Waiting[]> }
  readonly subscriptions: AsyncDisposableStack
  /** Resolves when every cache is full. */
  readonly synced: Promise<unknown>
  /** Wakes whatever was there before us. */
  begin(): void
}

/** What a controller of one loop is to everybody else. */
export function oneLoopController<Key>(parts: OneLoopParts<Key>): Controller {
  const { name, gate, loop, waiting, subscriptions } = parts
  const started = parts.synced.then(() => {
    gate.isOpen = true
    parts.begin()
  })
  return {
    name,
    waiting: () => waiting.all,
    async idle() {
      await started
      await loop.idle()
    },
    async [Symbol.asyncDispose]() {
      gate.isOpen = false
      await loop[Symbol.asyncDispose]()
      await subscriptions.disposeAsync()
    },
  }
}
