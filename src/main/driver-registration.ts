// Drivers that no registrar announces are registered by us; one that is not there yet is tried again until it is.
import type { Clock } from '../clock/clock.ts'
import type { Registrar } from '../csi/registration/registrar.ts'
import { createKeyLoop } from '../loop/key-loop.ts'
import type { Log } from '../telemetry/log.ts'
import type { HawserConfig } from './config.ts'

export interface DriverRegistration extends AsyncDisposable {
  /** Resolves when every driver was tried once. */
  readonly tried: Promise<void>
}

export function registerDrivers(
  { clock, log, registrar }: { readonly clock: Clock; readonly log: Log; readonly registrar: Registrar },
  drivers: HawserConfig['csiDrivers'],
  signal: AbortSignal,
): DriverRegistration {
  const loop = createKeyLoop<HawserConfig['csiDrivers'][number]>({
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
