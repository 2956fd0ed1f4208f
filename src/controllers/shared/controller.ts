// What do all controllers have in common? A name, reasons to wait that can be asked for, and an orderly stop.
import type { Client } from '../../client/client.ts'
import type { Informers } from '../../client/informer.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Recorder } from '../../client/recorder.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Transition, Waiting } from './waiting.ts'

export interface Controller extends AsyncDisposable {
  readonly name: string
  /** Why nothing happens, per object (`Kind/namespace/name`). */
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
  /** A recorder that records events as this component. */
  recorder(component: string): Recorder
  /** Called for every change that a controller made. */
  onTransition?(transition: Transition): void
  /** Called with an object's reasons to wait, each time it was synced. */
  onWaiting?(controller: string, object: ObjectKey, waiting: readonly Waiting[]): void
}
