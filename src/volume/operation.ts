// How is one thing done to one volume? An operation tells its story in named steps; the runner adds what all
// operations share: the pending key, events, metrics, logs, history. Marks reach the world before the key is free (OP-2).
import type { Clock } from '../clock/clock.ts'
import type { Pending, PendingKey, Refusal, Started } from '../loop/pending.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Outcome, VolumeError } from './effect.ts'
import { asVolumeError, outcomeOf } from './effect.ts'
import type { Subject } from './messages.ts'
import { detailedText, eventText } from './messages.ts'

export interface Operation<Request, Deps, Event> {
  /** 'volume_mount': the metric's label and the back-off's name. */
  readonly name: string
  /** 'MountVolume': the prefix of the user's sentence. */
  readonly label: string
  /** 'FailedMount': the reason of the Kubernetes event, if users should hear of failures. */
  readonly failureReason?: string
  key(request: Request): PendingKey
  subject(request: Request): Subject
  /** The plugin label of metrics: `kubernetes.io/nfs`, `kubernetes.io/csi:<driver>`. */
  plugin(request: Request): string
  run(request: Request, deps: Deps, report: Report<Event>, signal: AbortSignal): Promise<void>
}

/** How an operation says what it does and what it knows. */
export interface Report<Event> {
  readonly step: Step<Event>
  /** Tells the world something that no call's outcome says. */
  emit(event: Event): void
}

/** Runs one call; turns its outcome into what we may now say of the world; stops the operation unless done. */
export type Step<Event> = <T>(name: string, call: () => Promise<T> | T, then?: StepOutcomes<T, Event>) => Promise<T>

interface StepOutcomes<T, Event> {
  readonly done?: (value: T) => Event | undefined
  readonly failed?: (error: VolumeError) => Event | undefined
  readonly uncertain?: (error: VolumeError) => Event | undefined
  readonly deferred?: (error: VolumeError) => Event | undefined
  /** The words before `for volume …`; `<label>.<name> failed` unless given. */
  readonly prefix?: string
  /** The event's reason, where it is not the operation's own. */
  readonly reason?: string
}

/** Hears how operations go on; the history behind `hawser why`. */
export interface OperationObserver {
  onOperation(progress: OperationProgress): void
}

export interface OperationProgress {
  readonly operation: string
  readonly key: PendingKey
  readonly plugin: string
  readonly subject: Subject
  readonly phase: 'started' | 'step' | 'succeeded' | 'failed'
  readonly step?: string
  /** The step at the time of asking, for those who put a quick operation into words only later. */
  readonly stepNow: () => string | undefined
  readonly at: number
  readonly startedAt: number
  readonly error?: VolumeError
}

export interface Runner {
  /** Starts the operation, or tells why it may not start now. */
  start<Request, Deps, Event>(
    operation: Operation<Request, Deps, Event>,
    request: Request,
    deps: Deps,
    context: RunContext<Event>,
  ): Refusal | Started
}

export interface RunContext<Event> {
  /** Tells the caller's world. */
  apply(event: Event): void
  /** Says a failure to the users concerned: a Kubernetes Event on each of their objects. */
  tell?(type: 'Normal' | 'Warning', reason: string, message: string): void
  readonly signal: AbortSignal
}

export interface RunnerDeps {
  readonly clock: Clock
  readonly pending: Pending
  readonly log: Log
  readonly metrics: Metrics
  readonly observer?: OperationObserver
}

/** Thrown by a step to end its operation; already told to the world, not yet to the user. */
class StepFailure extends Error {
  readonly prefix: string
  readonly error: VolumeError
  readonly reason: string | undefined
  constructor(prefix: string, error: VolumeError, reason?: string) {
    super(error.message, { cause: error })
    this.prefix = prefix
    this.error = error
    this.reason = reason
  }
}

export function createRunner({ clock, pending, log, metrics, observer }: RunnerDeps): Runner {
  const duration = metrics.histogram('storage_operation_duration_seconds', 'Storage operation duration', [
    'volume_plugin',
    'operation_name',
    'status',
    'migrated',
  ] as const)
  return {
    start(operation, request, deps, context) {
      const key = operation.key(request)
      const subject = operation.subject(request)
      const plugin = operation.plugin(request)
      const startedAt = clock.now()
      let current: string | undefined
      const about = { operation: operation.name, key, plugin, subject, startedAt, stepNow: () => current }
      const seen = (phase: OperationProgress['phase'], more?: { step?: string; error?: VolumeError }) =>
        observer?.onOperation({ ...about, phase, at: clock.now(), ...more })

      const step = stepOf(operation.label, context.apply, (name) => {
        current = name
        seen('step', { step: name })
      })
      const finish = (failure: StepFailure | undefined) => {
        const status = failure ? 'fail-unknown' : 'success'
        const seconds = (clock.now() - startedAt) / 1000
        duration.observe({ volume_plugin: plugin, operation_name: operation.name, status, migrated: 'false' }, seconds)
        const [volume, user] = key
        const fields = { operation: operation.name, volume, user, ms: clock.now() - startedAt }
        if (!failure) {
          log.info('operation succeeded', fields)
          seen('succeeded')
          return
        }
        const error = detailedText(failure.prefix, subject, failure.error)
        // A process that ends gives up what it does; whoever comes after it goes on. That is nobody's trouble.
        if (context.signal.aborted) log.debug('operation given up', { ...fields, error })
        else log.warn('operation failed', { ...fields, error })
        const reason = failure.reason ?? operation.failureReason
        if (reason && !context.signal.aborted)
          context.tell?.('Warning', reason, eventText(failure.prefix, subject, failure.error))
        seen('failed', { error: failure.error })
      }
      return pending.start(key, operation.name, async () => {
        seen('started')
        let failure: StepFailure | undefined
        try {
          await operation.run(request, deps, { step, emit: context.apply }, context.signal)
        } catch (thrown) {
          // A crash between steps is a failure too, never a success (NPO-12).
          failure =
            thrown instanceof StepFailure ? thrown : new StepFailure(`${operation.label} failed`, asVolumeError(thrown))
        }
        finish(failure)
        if (failure) throw new Error(detailedText(failure.prefix, subject, failure.error), { cause: failure.error })
      })
    },
  }
}

function stepOf<Event>(label: string, apply: (event: Event) => void, onStep: (name: string) => void): Step<Event> {
  return async (name, call, then = {}) => {
    onStep(name)
    const answer = outcomeOf(call)
    // A check that answers at once lets its operation go on at once.
    const outcome = answer instanceof Promise ? await answer : answer
    const event = eventOf(outcome, then)
    if (event !== undefined) apply(event)
    if (outcome.kind === 'done') return outcome.value
    throw new StepFailure(then.prefix ?? `${label}.${name} failed`, outcome.error, then.reason)
  }
}

function eventOf<T, Event>(outcome: Outcome<T>, then: StepOutcomes<T, Event>): Event | undefined {
  switch (outcome.kind) {
    case 'done':
      return then.done?.(outcome.value)
    case 'failed':
      return then.failed?.(outcome.error)
    case 'uncertain':
      return then.uncertain?.(outcome.error)
    case 'deferred':
      return then.deferred?.(outcome.error)
    default:
      return outcome satisfies never
  }
}
