// Who brings claims and volumes together? One loop over both: changes wake keys, plans decide, carry-out writes.
//
// 1. A key is synced by one worker at a time; different keys run side by side.
// 2. A volume is written for one pair at a time (volume-holds.ts), and decisions see our own writes (fresh-cache.ts).
import { refKey } from '../../api/meta.ts'
import type { Clock } from '../../clock/clock.ts'
import { createPending } from '../../loop/pending.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import { createControllerLoop } from '../shared/controller-loop.ts'
import type { Controller, ControllerDeps } from '../shared/controller.ts'
import { createEventThrottle } from '../shared/event-throttle.ts'
import { createCarryOut } from './carry-out.ts'
import { follow, wakeClaim, wakeVolume } from './follow.ts'
import { createBindingMetrics } from './metrics.ts'
import { createOffers } from './offers.ts'
import { createOperations } from './operations.ts'
import { createReclaim } from './reclaim.ts'
import { claimKey, createBindingState } from './state.ts'
import type { BindingKey } from './state.ts'
import { sync } from './sync.ts'
import { createVolumeHolds } from './volume-holds.ts'
import { createWriter } from './writer.ts'

export interface BindingOptions {
  /** False: no volume is made for a claim (CTL-10). */
  readonly dynamicProvisioning?: boolean
  readonly hostPathProvisioner?: boolean
  readonly workers?: number
  /** A slow sync of everything, as a safety net (WC-1). Zero switches it off. */
  readonly auditMs?: number
}

export interface BindingDeps extends ControllerDeps {
  readonly plugins: Registry<ClusterPlugin>
  readonly options?: BindingOptions
}

/** Starts at once; changes wait until every cache is full (CTL-2). */
export function createBindingController(deps: BindingDeps): Controller {
  const { clock, plugins, options = {} } = deps
  const stack = new AsyncDisposableStack()
  const state = createBindingState(deps.informers, stack)
  const pending = createPending(clock)
  const operations = createOperations(pending)
  const events = createEventThrottle(deps.recorder('persistentvolume-controller'), clock)
  const metrics = createBindingMetrics(deps.metrics, clock, { ...state, plugins })
  const writer = createWriter({ ...deps, ...state })
  const wake = (key: BindingKey) => loop.wake(key)
  const holds = createVolumeHolds(wake, (name) => offers.offer(name))
  const parts = { ...deps, ...state, options, pending, operations, events, metrics, writer, holds, wake }
  const carryOut = createCarryOut({ ...parts, reclaim: createReclaim(parts) })
  const provisioningEnabled = options.dynamicProvisioning ?? true
  const loop = createControllerLoop<BindingKey>(deps, {
    name: 'binding',
    // In process a sync costs microseconds and waits for the store's group commit: many at once make large commits.
    workers: options.workers ?? 128,
    exists: (key) => (key.kind === 'PersistentVolume' ? state.volumes : state.claims).get(refKey(key)) !== undefined,
    async sync(key, signal) {
      try {
        return await sync({ ...deps, state, holds, writer, carryOut, provisioningEnabled }, key, signal)
      } finally {
        if (key.kind === 'PersistentVolumeClaim') offers.settle(refKey(key))
      }
    },
    failure: (error) => ({ reason: 'retrying', message: errorText(error) }),
  })
  const offers = createOffers({
    ...state,
    isReady: () => loop.isOpen,
    isFailing: (claim) => loop.isFailing(claimKey(claim)),
    isHeld: (name) => holds.holder(name) !== undefined,
    wake: (claim) => loop.wake(claimKey(claim)),
  })
  follow({ state, loop, offers, metrics, events, pending, operations }, stack)
  const audit = createAudit(clock, options.auditMs ?? 600_000, () => {
    for (const name of state.claims.items.keys()) wakeClaim({ state, loop }, name)
    for (const name of state.volumes.items.keys()) wakeVolume({ state, loop }, name)
  })
  const { claims, volumes, classes, pods } = state
  const synced = Promise.all([claims.synced, volumes.synced, classes.synced, pods.synced])
  // Disposed in reverse, after the loop: operations before the caches they read.
  stack.use(operations)
  const controller = loop.start({ synced, begin: audit.run, stack })
  return {
    ...controller,
    async idle() {
      do {
        await controller.idle()
        await pending.idle()
      } while (!controller.isIdle())
    },
    async [Symbol.asyncDispose]() {
      audit[Symbol.dispose]()
      await controller[Symbol.asyncDispose]()
    },
  }
}

interface Audit extends Disposable {
  /** Runs now, and again after each period. */
  run(): void
}

function createAudit(clock: Clock, everyMs: number, wakeEverything: () => void): Audit {
  let timer: Disposable | undefined
  let isStopped = false
  const run = () => {
    wakeEverything()
    if (everyMs > 0 && !isStopped) timer = clock.at(clock.now() + everyMs, run)
  }
  return {
    run,
    [Symbol.dispose]() {
      isStopped = true
      timer?.[Symbol.dispose]()
    },
  }
}
