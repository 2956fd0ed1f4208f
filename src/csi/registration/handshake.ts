// How does a plugin become a registered driver? The handshake of the plugin watcher (REG-4 … REG-8), and the direct
// way for drivers without a registrar (REG-9).
import type { Clock } from '../../clock/clock.ts'
import type { Files } from '../../host/host.ts'
import { requireTrusted } from '../../host/trusted-path.ts'
import { CsiError } from '../codes.ts'
import { asVolumeError, VolumeError } from '../../volume/effect.ts'
import { plainText } from '../answers.ts'
import { createCall } from '../deadline.ts'
import { openDriver } from '../drivers.ts'
import type { Connect, Driver, Drivers } from '../drivers.ts'
import { Registration } from '../generated/registration_pb.ts'
import { unaryClient } from '../service.ts'
import type { NodeInfoPublisher } from './node-info.ts'
import { checkDriverName, compareVersions, highestSupported } from './versions.ts'
import type { Version } from './versions.ts'

export interface HandshakeDeps {
  readonly connect: Connect
  readonly clock: Clock
  readonly drivers: Drivers
  readonly nodeInfo: NodeInfoPublisher
  readonly files: Pick<Files, 'distrust'>
}

/** A finished registration; `driver` was added to the drivers. */
export interface Registered {
  readonly driver: Driver
  readonly version: Version
}

export interface Handshake {
  /** Talks to a registration socket. Failures are told to the plugin and thrown. */
  register(socketPath: string, signal: AbortSignal): Promise<Registered>
  /** A driver without a registrar: its name comes from GetPluginInfo and must be the expected one, if any. */
  registerDirectly(endpoint: string, expectedName: string | undefined, signal: AbortSignal): Promise<Registered>
  /** REG-5: no call is made to the plugin, which is gone. */
  unregister(registered: Registered, signal: AbortSignal): Promise<void>
}

const pluginType = 'CSIPlugin'
const dialMs = 10_000
const infoMs = 1_000
const notifyMs = 5_000

export function createHandshake(deps: HandshakeDeps): Handshake {
  const { connect, clock } = deps
  const registry: VersionedDrivers = { ...deps, versions: new Map() }
  return {
    unregister: (registered, signal) => unregister(registry, registered, signal),
    async register(socketPath, signal) {
      using connection = connect(socketPath)
      const client = unaryClient(Registration, connection.transport)
      await reachable(deps, socketPath, client, signal)
      const info = await createCall(clock, infoMs)('GetInfo', (options) => client.getInfo({}, options), signal)
      const notify: Notify = (pluginRegistered, error) =>
        createCall(clock, notifyMs)(
          'NotifyRegistrationStatus',
          (options) => client.notifyRegistrationStatus({ pluginRegistered, error }, options),
          signal,
        )
      const registered = await installOrNotify(registry, info, socketPath, notify, signal)
      try {
        await notify(true, '')
      } catch (error) {
        await unregister(registry, registered, signal)
        throw error
      }
      return registered
    },
    async registerDirectly(endpoint, expectedName, signal) {
      using probe = openDriver({ name: expectedName ?? '', endpoint, connect, clock })
      await probe.identity.waitReady(signal)
      const { name } = await probe.identity.info(signal)
      if (expectedName !== undefined && expectedName !== name)
        throw registrationRefused(`the driver at ${endpoint} calls itself ${name}, not ${expectedName}`)
      return install(registry, name, endpoint, validate(registry, name, ['1.0.0']), signal)
    },
  }
}

interface VersionedDrivers extends HandshakeDeps {
  /** The version under which each driver is registered. */
  readonly versions: Map<string, Version>
}

type Notify = (pluginRegistered: boolean, error: string) => Promise<unknown>

/** A failure is told to the plugin and thrown. */
async function installOrNotify(
  registry: VersionedDrivers,
  info: {
    readonly type: string
    readonly name: string
    readonly endpoint: string
    readonly supportedVersions: string[]
  },
  socketPath: string,
  notify: Notify,
  signal: AbortSignal,
): Promise<Registered> {
  try {
    if (info.type !== pluginType)
      throw registrationRefused(`no handler registered for plugin type: ${info.type} at socket ${socketPath}`)
    const version = validate(registry, info.name, info.supportedVersions)
    const endpoint = info.endpoint === '' ? socketPath : info.endpoint
    return await install(registry, info.name, endpoint, version, signal)
  } catch (error) {
    const { message } = asVolumeError(error)
    await notify(false, `RegisterPlugin error -- plugin registration failed with err: ${message}`).catch(() => {})
    throw error
  }
}

function validate({ versions }: VersionedDrivers, name: string, offered: readonly string[]): Version {
  checkDriverName(name)
  const highest = highestSupported(offered)
  const present = versions.get(name)
  if (present && compareVersions(present, highest) >= 0) {
    throw registrationRefused(
      `cannot register CSI driver ${name}: a driver of that name is already registered with version ${present.join('.')}`,
    )
  }
  return highest
}

/** The driver counts as registered only when the node has published it; a failure undoes everything (REG-7). */
async function install(
  { connect, clock, drivers, files, nodeInfo, versions }: VersionedDrivers,
  name: string,
  endpoint: string,
  version: Version,
  signal: AbortSignal,
): Promise<Registered> {
  // Secrets of volumes are sent there.
  await requireTrusted(files, endpoint, `the socket ${endpoint} of driver ${name}`, signal)
  const driver = openDriver({ name, endpoint, connect, clock })
  try {
    const info = await driver.node.info(signal)
    await nodeInfo.install(name, info, signal)
  } catch (error) {
    driver[Symbol.dispose]()
    throw error
  }
  versions.set(name, version)
  drivers.add(driver)
  return { driver, version }
}

async function unregister(
  { drivers, nodeInfo, versions }: VersionedDrivers,
  { driver, version }: Registered,
  signal: AbortSignal,
): Promise<void> {
  // A newer instance may have taken the name meanwhile (TP-29): then there is nothing of ours left to remove.
  if (drivers.get(driver.name) !== driver) return driver[Symbol.dispose]()
  if (versions.get(driver.name) === version) versions.delete(driver.name)
  drivers.remove(driver)
  await nodeInfo.uninstall(driver.name, signal)
}

function registrationRefused(message: string): VolumeError {
  return new VolumeError('RegistrationRefused', plainText(message), { effect: 'none' })
}

/** A socket file may exist a moment before its server listens: dialled for up to ten seconds (REG-4). */
async function reachable(
  { clock }: HandshakeDeps,
  socketPath: string,
  client: { getInfo: (request: object, options: { signal: AbortSignal; timeoutMs: number }) => Promise<unknown> },
  signal: AbortSignal,
): Promise<void> {
  using deadline = clock.deadline(dialMs, signal)
  for (;;) {
    try {
      await createCall(clock, infoMs)(
        'GetInfo',
        (options) => client.getInfo({}, { timeoutMs: infoMs, ...options }),
        deadline.signal,
      )
      return
    } catch (error) {
      if (deadline.signal.aborted || !isUnavailable(error)) {
        throw new VolumeError('RegistrationFailed', `failed to dial socket ${socketPath}`, {
          effect: 'none',
          cause: error,
        })
      }
      await clock.sleep(200, deadline.signal).catch(() => {})
    }
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof CsiError && error.status === 'UNAVAILABLE'
}
