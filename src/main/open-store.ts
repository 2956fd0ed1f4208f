// Which store does this server use? Memory, SQLite in the data directory, or an etcd elsewhere.
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { createRegistryLayout } from '../apiserver/objects/registry-layout.ts'
import type { EtcdConfig, HawserConfig } from '../installation/config.ts'
import { UsageError } from '../installation/config.ts'
import type { DataDirectory } from '../installation/data-directory.ts'
import type { TlsFiles } from '../store/etcd/channel.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import { openSqliteStore } from '../store/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { isStoreError } from '../store/store.ts'
import { errorText } from '../telemetry/error-text.ts'
import type { ControlPlaneDeps } from './control-plane.ts'

type StoreDeps = Pick<ControlPlaneDeps, 'config' | 'directory' | 'clock' | 'log' | 'onStoreLost'>

export async function openStore(deps: StoreDeps): Promise<Store> {
  const { config, directory } = deps
  switch (config.store) {
    case 'memory':
      return createMemoryStore()
    case 'embedded':
      return openEmbedded(directory)
    case 'etcd':
      return openEtcd(deps, requireEtcd(config))
    default:
      return config.store satisfies never
  }
}

function openEmbedded(directory: DataDirectory): Store {
  try {
    // Secrets lie in the store: nobody else may read it. SQLite gives its other files the mode of this one.
    closeSync(openSync(directory.storeFile, 'a', 0o600))
    return openSqliteStore({ path: directory.storeFile })
  } catch (error) {
    if (isStoreError(error, 'unavailable'))
      throw new UsageError(
        error.message,
        'restore a backup (hawser restore FILE --data-dir NEWDIR), or choose another directory with --data-dir DIR',
      )
    throw error
  }
}

async function openEtcd({ directory, clock, log, onStoreLost }: StoreDeps, etcd: EtcdConfig): Promise<Store> {
  const user = etcd.user === undefined ? {} : { user: { name: etcd.user, password: passwordOf(etcd) } }
  // Wrong names of files are told before etcd is asked.
  tlsFiles(etcd)
  // Loaded only where it is used: gRPC takes its time.
  const { openEtcdStore } = await import('../store/etcd-store.ts')
  try {
    return await openEtcdStore({
      servers: etcd.servers,
      prefix: etcd.prefix,
      adopt: etcd.adopt,
      ...user,
      tls: () => tlsFiles(etcd),
      layout: createRegistryLayout(),
      holder: {
        id: holderId(directory),
        name: `${hostname()} (process ${process.pid}, ${directory.path})`,
      },
      clock,
      log: log.child({ part: 'store' }),
      onLost: onStoreLost,
    })
  } catch (error) {
    if (isStoreError(error, 'unavailable')) throw new UsageError(error.message)
    throw error
  }
}

/** Only one process has the data directory open. A copy of it on another machine is another server. */
function holderId(directory: DataDirectory): string {
  const machine = existsSync(machineFile) ? readFileSync(machineFile, 'utf8').trim() : ''
  return [directory.keep('server.id', () => randomBytes(16).toString('hex')).trim(), machine, hostname()].join(' ')
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
