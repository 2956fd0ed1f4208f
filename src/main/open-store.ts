// Which store does this server use? Memory, SQLite in the data directory, or an etcd elsewhere.
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createRegistryLayout } from '../apiserver/objects/registry-layout.ts'
import type { EtcdConfig, HawserConfig } from '../installation/config.ts'
import { UsageError } from '../installation/config.ts'
import type { DataDirectory } from '../installation/data-directory.ts'
import type { KeyPlace } from '../installation/shared-keys.ts'
import { readIfThere, writePrivate } from '../installation/private-files.ts'
import type { TlsFiles } from '../store/etcd/channel.ts'
import type { Holder } from '../store/etcd/hold.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import { openSqliteStore } from '../store/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { isStoreError } from '../store/store.ts'
import { errorText } from '../telemetry/error-text.ts'
import type { ControlPlaneDeps } from './control-plane.ts'

type StoreDeps = Pick<
  ControlPlaneDeps,
  'config' | 'directory' | 'clock' | 'log' | 'onStoreLost' | 'onProgress' | 'starting'
>

export interface OpenedStore {
  readonly store: Store
  /** Where several servers share their keys. */
  readonly keyPlace?: KeyPlace
  /** Throws where another server may act by now. */
  readonly requireActive?: () => void
}

export async function openStore(deps: StoreDeps): Promise<OpenedStore> {
  const { config, directory } = deps
  switch (config.store) {
    case 'memory':
      return { store: createMemoryStore() }
    case 'embedded':
      return { store: openEmbedded(directory) }
    case 'etcd':
      return openEtcd(deps, requireEtcd(config))
    default:
      return config.store satisfies never
  }
}

function openEmbedded(directory: DataDirectory): Store {
  try {
    return openSqliteFile(directory.storeFile)
  } catch (error) {
    if (isStoreError(error, 'unavailable'))
      throw new UsageError(
        error.message,
        'restore a backup (hawser restore FILE --data-dir NEWDIR), or choose another directory with --data-dir DIR',
      )
    throw error
  }
}

export function openSqliteFile(path: string): Store {
  // Secrets lie in the store: nobody else may read it. SQLite gives its other files the mode of this one.
  closeSync(openSync(path, 'a', 0o600))
  return openSqliteStore({ path })
}

async function openEtcd(deps: StoreDeps, etcd: EtcdConfig): Promise<OpenedStore> {
  const { directory, clock, log, onStoreLost, onProgress, starting } = deps
  const access = etcdAccess(etcd)
  const { standby = false, leaseSeconds } = etcd
  const wait = standby ? 'this one stands by' : 'waiting for the end of its lease'
  // Loaded only where it is used: gRPC takes its time.
  const { openMarkedStore } = await import('../store/etcd-store.ts')
  const { store, keepKeys, readKeys, requireHold } = await refusing(() =>
    openMarkedStore({
      ...access,
      use: { kind: 'serve', adopt: etcd.adopt },
      holder: holderOf(directory.path),
      clock,
      log: log.child({ part: 'store' }),
      onLost: onStoreLost,
      standby,
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
      ...(starting ? { opening: starting } : {}),
      onWait: (server) => onProgress(`the objects are in use by the server ${server}; ${wait}`),
    }),
  )
  return { store, requireActive: requireHold, keyPlace: { where: etcdName(etcd), keepKeys, readKeys } }
}

/** As sentences call it. */
export const etcdName = ({ servers, prefix }: EtcdConfig) => `etcd at ${servers.join(', ')} (${prefix})`

/** How etcd is reached, and how objects lie in it. Wrong names of files are told before etcd is asked. */
export function etcdAccess(etcd: EtcdConfig) {
  const { servers, prefix } = etcd
  const user = etcd.user === undefined ? {} : { user: { name: etcd.user, password: passwordOf(etcd) } }
  tlsFiles(etcd)
  return { servers, prefix, ...user, tls: () => tlsFiles(etcd), layout: createRegistryLayout() }
}

/** A store that cannot be used is told to the user in its own words. */
export async function refusing<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    if (isStoreError(error, 'unavailable')) throw new UsageError(error.message)
    throw error
  }
}

/** Only one process has the data directory open. A copy of it on another machine is another server. */
export function holderOf(directory: string): Holder {
  const machine = existsSync(machineFile) ? readFileSync(machineFile, 'utf8').trim() : ''
  const file = join(directory, 'server.id')
  const own = readIfThere(file) ?? writePrivate(file, randomBytes(16).toString('hex'))
  return {
    id: [own.trim(), machine, hostname()].join(' '),
    name: `${hostname()} (process ${process.pid}, ${directory})`,
  }
}

const machineFile = '/etc/machine-id'

function requireEtcd({ etcd }: HawserConfig): EtcdConfig {
  if (etcd === undefined)
    throw new UsageError('the store etcd needs its servers', '--etcd-servers https://10.0.0.1:2379')
  return etcd
}

function passwordOf({ user, passwordFile }: EtcdConfig): string {
  if (passwordFile === undefined) {
    throw new UsageError(`there is no password for the etcd user ${user}`, '--etcd-password-file FILE')
  }
  return readFile(passwordFile, '--etcd-password-file')
    .toString()
    .replace(/\r?\n$/, '')
}

function tlsFiles({ authorityFile, certificateFile, keyFile }: EtcdConfig): TlsFiles {
  return {
    ...(authorityFile === undefined ? {} : { authority: readFile(authorityFile, '--etcd-cafile') }),
    ...(certificateFile === undefined ? {} : { certificate: readFile(certificateFile, '--etcd-certfile') }),
    ...(keyFile === undefined ? {} : { key: readFile(keyFile, '--etcd-keyfile') }),
  }
}

function readFile(path: string, flag: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new UsageError(`${flag} ${path} cannot be read: ${errorText(error)}`)
  }
}
