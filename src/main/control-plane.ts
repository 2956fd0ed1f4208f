// The control plane as it ships: store, API server, controllers; chosen here, assembled elsewhere.
import { startApiServer } from '../apiserver/http/listen.ts'
import type { StartedApiServer } from '../apiserver/http/listen.ts'
import type { NodeClient } from '../apiserver/request/pass-through.ts'
import type { Client } from '../client/client.ts'
import { createInProcessClient } from '../client/in-process.ts'
import type { Clock } from '../clock/clock.ts'
import type { Random } from '../clock/random.ts'
import type { Store } from '../store/store.ts'
import { isStoreError } from '../store/store.ts'
import type { NodeServer } from '../streams/node-server.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { openAuditFile } from '../telemetry/audit-file.ts'
import { createNodeSigner } from '../apiserver/access/certificates.ts'
import { readAdminCertificate, readAuthority } from '../installation/certificates.ts'
import type { HawserConfig } from '../installation/config.ts'
import { auditFileName } from '../installation/config.ts'
import type { DataDirectory } from '../installation/data-directory.ts'
import { shareKeys } from '../installation/shared-keys.ts'
import { writePrivate } from '../installation/private-files.ts'
import { kubeconfigText } from '../installation/kubeconfig.ts'
import { explainListenError } from '../installation/listen-errors.ts'
import { localUrl } from '../installation/addresses.ts'
import { openStore } from './open-store.ts'
import { firstCertificates, keepAddresses } from './server-addresses.ts'

export interface ControlPlaneDeps {
  readonly config: HawserConfig
  readonly directory: DataDirectory
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  /** Another server may use the store from now on: this process must end at once. */
  readonly onStoreLost: (error: Error) => void
  readonly onProgress: (text: string) => void
  /** Gives up the start. */
  readonly starting?: AbortSignal
}

export interface ControlPlane extends AsyncDisposable {
  readonly url: string
  readonly server: StartedApiServer
  readonly store: Store
  /** Throws where another server may act by now. */
  readonly requireActive: () => void
  /** The servers of nodes in this process, by their names. */
  readonly localNodeServers: Map<string, NodeServer>
  /** Asks a node, in this process or elsewhere. */
  readonly nodeClient: NodeClient
  /** In process, as an administrator of the system. */
  clientFor(name: string): Client
}

export async function startControlPlane(deps: ControlPlaneDeps): Promise<ControlPlane> {
  const { config, directory, clock, random, log, metrics } = deps
  await using stack = new AsyncDisposableStack()
  const { store, keyPlace, requireActive = () => {} } = await openStore(deps)
  stack.use(store)
  await directory.identity.prove(store, clock.now())
  if (keyPlace) await shareKeys(directory.path, keyPlace, clock.now())
  const audit = stack.use(
    openAuditFile({ path: directory.file(auditFileName), clock, log, onFailure: config.auditFailure }),
  )
  const tls = await firstCertificates(config, clock.now())
  const localNodeServers = new Map<string, NodeServer>()
  let nodeClient: NodeClient | undefined
  // Loaded when somebody first asks a node.
  const openNodeClient = async (): Promise<NodeClient> => {
    const { createNodeClient } = await import('../apiserver/request/node-client.ts')
    return createNodeClient({
      local: localNodeServers,
      node: (name) => server.api().get('Node', { name }),
      identity: () => readAdminCertificate(directory.path),
    })
  }
  const askNode: NodeClient = async (node, request) => await (nodeClient ??= await openNodeClient())(node, request)
  const server = await startApiServer({
    store,
    clock,
    random,
    log: log.child({ part: 'apiserver' }),
    audit,
    metrics,
    tokens: [
      { token: directory.adminToken(), user: { name: 'admin', groups: ['system:masters', 'system:authenticated'] } },
    ],
    signingKey: directory.signingKey(),
    rootCertificate: tls.authority,
    mountsTokens: config.mountTokens,
    listen: config.listen,
    alsoListen: config.alsoListen ?? [],
    tls,
    nodeSigner: createNodeSigner(() => readAuthority(directory.path)),
    nodeClient: askNode,
  }).catch((error: unknown) => {
    throw explainListenError(error, [config.listen, ...(config.alsoListen ?? [])])
  })
  stack.use(await rememberStore(deps, store))
  stack.defer(() => server.close())
  const url = localUrl({ listen: server.listening })
  const access = { server: url, certificateAuthority: tls.authority, token: directory.adminToken() }
  writePrivate(directory.kubeconfigFile, kubeconfigText(access))
  const clientFor = (name: string) =>
    createInProcessClient(server.api({ name, groups: ['system:masters', 'system:authenticated'] }))
  stack.use(await keepAddresses({ config, server, tls, client: clientFor('system:apiserver'), clock, log }))
  const kept = stack.move()
  return {
    url,
    server,
    store,
    requireActive,
    localNodeServers,
    nodeClient: askNode,
    clientFor,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** The directory remembers how far its store has come: now, soon after each change, and at the end. */
async function rememberStore({ directory, clock, log }: ControlPlaneDeps, store: Store): Promise<AsyncDisposable> {
  const remember = () =>
    directory.identity.remember(store).catch((error: unknown) => {
      log.warn('the identity of the data directory could not be written', { error })
    })
  await directory.identity.remember(store)
  const stopping = new AbortController()
  const following = follow(store, clock, remember, stopping.signal)
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await following
      await remember()
    },
  }
}

const rememberMs = 60_000

async function follow(store: Store, clock: Clock, remember: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const _change of store.watch('/', store.revision(), signal)) break
      if (signal.aborted) return
    } catch (error) {
      // A store that is closed takes no more changes: there is nothing to remember. What was missed has changed, too.
      if (isStoreError(error, 'unavailable')) return
      if (!isStoreError(error, 'tooOld')) throw error
    }
    await remember()
    await clock.sleep(rememberMs, signal).catch(() => {}) // ended by the signal
  }
}
