// How is a driver registered that no registrar announces? By us; one that does not answer yet is tried again until it does.
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { CsiError } from '../codes.ts'
import type { ConnectionHistory } from '../connection-history.ts'
import type { Registrar } from './registrar.ts'

export interface DriverRegistration extends AsyncDisposable {
  /** Resolves when every driver was tried once. */
  readonly tried: Promise<void>
}

export interface SocketDriver {
  readonly name: string
  readonly socket: string
}

/** A socket cannot say that somebody listens: so often we look whether anybody does. */
const awayMs = 500

export function registerDrivers(
  deps: {
    readonly clock: Clock
    readonly log: Log
    readonly registrar: Registrar
    /** Hears of drivers that do not answer, for `hawser why`. */
    readonly told?: ConnectionHistory
  },
  drivers: readonly SocketDriver[],
  signal: AbortSignal,
): DriverRegistration {
  const { clock, log, registrar, told } = deps
  const away = new Set<SocketDriver>()
  const loop = createKeyLoop<SocketDriver>({
    name: 'driver registration',
    clock,
    workers: 4,
    backoff: { firstMs: 250, capMs: 30_000 },
    async look(driver) {
      const { name, socket } = driver
      await registrar.register({ name, endpoint: socket }, signal)
      away.delete(driver)
      told?.works({ name, endpoint: socket })
    },
    onError(driver, error, retryAt) {
      const { name, socket } = driver
      told?.failed({ name, endpoint: socket }, error)
      if (isAway(error)) {
        loop.wakeAt(driver, clock.now() + awayMs)
        if (away.has(driver)) return
        away.add(driver)
      } else away.delete(driver)
      const hint = `hawser driver check ${socket}`
      log.warn('driver not registered', { driver: name, socket, error, retryAt, try: hint })
    },
  })
  for (const driver of drivers) loop.wake(driver)
  return { tried: loop.idle(), [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}

const isAway = (error: unknown) => error instanceof CsiError && error.status === 'UNAVAILABLE'
