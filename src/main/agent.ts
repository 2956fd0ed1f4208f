// A node in a process of its own: `hawser agent`. It knows the control plane only through its API, ours or Kubernetes'.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createHttpTransport } from '../client/http.ts'
import type { HttpConfig } from '../client/http.ts'
import { createHistory } from '../client/history.ts'
import { historyOfJobs, ownedByJobs } from '../client/history-owners.ts'
import { createInformers } from '../client/informer.ts'
import { createRestClient } from '../client/rest.ts'
import { createRandom } from '../clock/random.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import { createLinuxHost } from '../host/linux/linux-host.ts'
import type { NodeServer } from '../streams/node-server.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { openAuditFile } from '../telemetry/audit-file.ts'
import { nodeAuditFileName } from '../installation/config.ts'
import type { HawserConfig } from '../installation/config.ts'
import { startBuiltInDriver, startCsiJobs } from './csi.ts'
import { startNode } from './node.ts'
import type { NodeSettings } from './node.ts'
import { keepNodeCertificate } from './node-certificate.ts'
import { openNodeServer } from './node-server.ts'
import { openNodeIdentity } from '../installation/node-identity.ts'
import { packageVersion } from '../installation/version.ts'

export interface AgentConfig
  extends NodeSettings, Pick<HawserConfig, 'overcommit' | 'csiDrivers' | 'leaveToSidecars' | 'auditFailure'> {
  readonly node: { readonly name: string; readonly root: string }
  readonly server: HttpConfig
  /** The server is known by the certificate that this agent got when it joined. */
  readonly joined: boolean
  /** Where the node's own server listens; without it on the kubelet's port, or a free one. */
  readonly listen?: { readonly host: string; readonly port: number } | undefined
  /** Do the jobs of the CSI sidecars for the drivers registered here. */
  readonly csiJobs: boolean
  /** Files that no pod may read, such as the kubeconfig. */
  readonly secretFiles?: readonly string[]
}

export async function startAgent(config: AgentConfig, { log }: { readonly log: Log }): Promise<AsyncDisposable> {
  const clock = createSystemClock()
  const random = createRandom(randomBytes(32))
  const metrics = createMetrics()
  await using stack = new AsyncDisposableStack()
  const transport = stack.use(createHttpTransport({ ...config.server, userAgent: 'hawser-agent' }))
  const client = createRestClient(transport)
  const host = stack.use(createLinuxHost())
  const { node } = config
  const { dataDirectory, server, listen, csiDrivers, secretFiles = [] } = config
  const identity = stack.use(await openNodeIdentity({ dataDirectory, node, host }, new AbortController().signal))
  const auditPath = join(dataDirectory, nodeAuditFileName)
  const audit = stack.use(openAuditFile({ path: auditPath, clock, log, onFailure: config.auditFailure }))
  const openServer = (nodeServer: NodeServer) =>
    openNodeServer(
      { dataDirectory, node: node.name, server, listen, takesDriverCalls: config.joined },
      { clock, log, transport, nodeServer, audit },
    )
  if (config.joined) stack.use(keepNodeCertificate({ dataDirectory, node: node.name }, { transport, clock, log }))
  const builtIn = config.joined
    ? [stack.use(await startBuiltInDriver({ clock, log }, { ...config, nodes: [node] }, node))]
    : []
  const version = packageVersion
  const deps = {
    config,
    node,
    identity,
    client,
    clock,
    random,
    log,
    metrics,
    host,
    version,
    csiDrivers: [...builtIn, ...csiDrivers],
    openServer,
    secretFiles,
  }
  const { drivers } = stack.use(await startNode(deps))
  if (config.csiJobs) {
    const informers = stack.use(createInformers({ client, clock, random, log }))
    const told = createHistory({ client, clock, log, owns: ownedByJobs(node.name) })
    const history = stack.use(historyOfJobs(told, node.name))
    stack.use(
      startCsiJobs(
        { client, informers, clock, log, history, drivers },
        { leaveToSidecars: config.leaveToSidecars, ownNode: node.name },
      ),
    )
  }
  return stack.move()
}
