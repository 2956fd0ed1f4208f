// The control plane as it ships: store, API server, controllers; chosen here, assembled elsewhere.
import { closeSync, openSync } from 'node:fs'
import { hostname } from 'node:os'
import { createClientCertificate, createAuthority, createServerCertificate } from '../apiserver/certificates.ts'
import type { KeyPair } from '../apiserver/certificates.ts'
import { startApiServer } from '../apiserver/listen.ts'
import type { StartedApiServer } from '../apiserver/listen.ts'
import type { NodeDoors } from '../apiserver/pass-through.ts'
import type { ServerTls } from '../apiserver/server.ts'
import type { Client } from '../client/client.ts'
import { createInProcessClient } from '../client/in-process.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import { createMemoryStore } from '../store/memory-store.ts'
import { openSqliteStore } from '../store/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { isStoreError } from '../store/store.ts'
import type { Door } from '../streams/door.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { openAuditFile } from './audit-file.ts'
import type { HawserConfig } from './config.ts'
import { UsageError } from './config.ts'
import type { DataDirectory } from './data-directory.ts'
import { readIfThere, writePrivate } from './data-directory.ts'
import { kubeconfigText } from './kubeconfig.ts'

export interface ControlPlaneDeps {
  readonly config: HawserConfig
  readonly directory: DataDirectory
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  /** What must happen before the server is ready; empty in the end. */
  readonly starting?: () => readonly string[]
}

export interface ControlPlane extends AsyncDisposable {
  readonly url: string
  readonly server: StartedApiServer
  readonly store: Store
  readonly tls: ServerTls
  /** The servers of nodes in this process, by their names. */
  readonly localDoors: Map<string, Door>
  /** In process, as an administrator of the system. */
  clientFor(name: string): Client
}

export async function startControlPlane(deps: ControlPlaneDeps): Promise<ControlPlane> {
  const { config, directory, clock, random, log, metrics, starting } = deps
  await using stack = new AsyncDisposableStack()
  const store = stack.use(openStore(config, directory))
  const audit = stack.use(openAuditFile({ path: directory.file('audit.log'), clock, log }))
  const authority = await keepAuthority(directory, clock.now())
  const localDoors = new Map<string, Door>()
  let doors: NodeDoors | undefined
  // Loaded when somebody first asks a node.
  const openDoors = async (): Promise<NodeDoors> => {
    const { createNodeDoors } = await import('./node-doors.ts')
    return createNodeDoors({
      local: localDoors,
      node: (name) => server.api().get('Node', { name }),
      identity: () => ({
        certificate: readIfThere(directory.file('admin.crt')) ?? '',
        key: readIfThere(directory.file('admin.key')) ?? '',
      }),
    })
  }
  const server = await listen(config, () =>
    startApiServer({
      store,
      clock,
      random,
      log: log.child({ part: 'apiserver' }),
      audit: audit.write,
      metrics,
      tokens: [
        { token: directory.adminToken, user: { name: 'admin', groups: ['system:masters', 'system:authenticated'] } },
      ],
      signingKey: directory.signingKey,
      listen: config.listen,
      tls: authority.tls,
      doors: async (node, request) => await (doors ??= await openDoors())(node, request),
      ...(starting === undefined ? {} : { starting }),
    }),
  )
  stack.defer(() => server.close())
  const text = kubeconfigText({
    server: server.url,
    certificateAuthority: authority.certificate,
    token: directory.adminToken,
  })
  writePrivate(directory.kubeconfigFile, text)
  const kept = stack.move()
  return {
    url: server.url,
    server,
    store,
    tls: authority.tls,
    localDoors,
    clientFor: (name) =>
      createInProcessClient(server.api({ name, groups: ['system:masters', 'system:authenticated'] })),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function openStore(config: HawserConfig, directory: DataDirectory): Store {
  if (config.store === 'memory') return createMemoryStore()
  try {
    // Secrets lie in the store: nobody else may read it. SQLite gives its other files the mode of this one.
    closeSync(openSync(directory.storeFile, 'a', 0o600))
    return openSqliteStore({ path: directory.storeFile })
  } catch (error) {
    if (isStoreError(error, 'unavailable'))
      throw new UsageError(error.message, 'choose another directory with --data-dir DIR')
    throw error
  }
}

async function listen(config: HawserConfig, start: () => Promise<StartedApiServer>): Promise<StartedApiServer> {
  const { host, port } = config.listen
  try {
    return await start()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new UsageError(`the address ${host}:${port} is in use`, `choose another one with --listen ${host}:PORT`)
    if (code === 'EACCES')
      throw new UsageError(`this user may not listen on ${host}:${port}`, 'choose a port above 1023 with --listen')
    if (code === 'EADDRNOTAVAIL')
      throw new UsageError(`this machine has no address ${host}`, 'choose another one with --listen')
    throw error
  }
}

interface Authority {
  readonly certificate: string
  readonly tls: ServerTls
}

/** The authority is made once; the server's certificate anew when its names change or half of its time is over. */
async function keepAuthority(directory: DataDirectory, now: number): Promise<Authority> {
  const authority = await keepPair(directory, 'ca', () => createAuthority(now))
  const names = [
    'localhost',
    hostname(),
    '127.0.0.1',
    '::1',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
  ]
  const stamp = JSON.stringify({ names, year: Math.floor(now / (180 * 86_400_000)) })
  if (readIfThere(directory.file('server.stamp')) !== stamp) {
    writePair(directory, 'server', await createServerCertificate(authority, { names }, now))
    writePair(
      directory,
      'admin',
      await createClientCertificate(authority, { name: 'admin', groups: ['system:masters'] }, now),
    )
    writePrivate(directory.file('server.stamp'), stamp)
  }
  const server = await keepPair(directory, 'server', () => createServerCertificate(authority, { names }, now))
  return {
    certificate: authority.certificate,
    tls: { certificate: server.certificate, key: server.key, authority: authority.certificate },
  }
}

async function keepPair(directory: DataDirectory, name: string, make: () => Promise<KeyPair>): Promise<KeyPair> {
  const certificate = readIfThere(directory.file(`${name}.crt`))
  const key = readIfThere(directory.file(`${name}.key`))
  return certificate && key ? { certificate, key } : writePair(directory, name, await make())
}

function writePair(directory: DataDirectory, name: string, pair: KeyPair): KeyPair {
  writePrivate(directory.file(`${name}.key`), pair.key)
  writePrivate(directory.file(`${name}.crt`), pair.certificate)
  return pair
}
