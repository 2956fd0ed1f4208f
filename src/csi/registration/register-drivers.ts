// How is a driver registered that no registrar announces? By us; one that does not answer yet is tried again until it does.
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Registrar } from './registrar.ts'

export interface DriverRegistration extends AsyncDisposable {
  /** Resolves when every driver was tried once. */
  readonly tried: Promise<void>
}

export interface SocketDriver {
  readonly name: string
  readonly socket: string
}

export function registerDrivers(
  { clock, log, registrar }: { readonly clock: Clock; readonly log: Log; readonly registrar: Registrar },
  drivers: readonly SocketDriver[],
  signal: AbortSignal,
): DriverRegistration {
  const loop = createKeyLoop<SocketDriver>({
    name: 'driver registration',
    clock,
    workers: 4,
    backoff: { firstMs: 250, capMs: 30_000 },
    look: ({ name, socket }) => registrar.register({ name, endpoint: socket }, signal),
    onError: ({ name, socket }, error, retryAt) =>
      log.warn('driver not registered', { driver: name, socket, error, retryAt, try: `hawser driver check ${socket}` }),
  })
  for (const driver of drivers) loop.wake(driver)
  return { tried: loop.idle(), [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}
