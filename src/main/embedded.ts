// A cluster inside somebody's program or test: memory store, a free port, a temporary directory; gone with its scope.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../client/client.ts'
import type { Log } from '../telemetry/log.ts'
import { createLog } from '../telemetry/log.ts'
import { startHawser } from './all-in-one.ts'
import { UsageError } from '../installation/config.ts'

export interface EmbeddedOptions {
  /** Names of nodes that run pods as processes of this machine; needs root. Absent: API and controllers only. */
  readonly nodes?: readonly string[]
  /** Absent: a temporary directory that goes with the cluster. */
  readonly dataDirectory?: string
  /** `memory` unless told otherwise. */
  readonly store?: 'memory' | 'embedded'
  /** Absent: 127.0.0.1 and a free port. */
  readonly listen?: { readonly host: string; readonly port: number }
  /** Absent: silence. */
  readonly log?: Log
}

export interface EmbeddedHawser extends AsyncDisposable {
  /** In process, as an administrator. */
  readonly client: Client
  /** For kubectl and everybody else, over HTTPS. */
  readonly url: string
  readonly kubeconfig: string
  readonly dataDirectory: string
}

export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedHawser> {
  const nodes = options.nodes ?? []
  if (nodes.length > 0 && process.getuid?.() !== 0)
    throw new UsageError('nodes mount filesystems: this needs root', 'start without nodes: API and controllers only')
  await using stack = new AsyncDisposableStack()
  const temporary = options.dataDirectory === undefined
  const dataDirectory = options.dataDirectory ?? realpathSync(mkdtempSync(join(tmpdir(), 'hawser-')))
  if (temporary) stack.defer(() => removeTemporary(dataDirectory))
  const hawser = stack.use(
    await startHawser(
      {
        dataDirectory,
        listen: options.listen ?? { host: '127.0.0.1', port: 0 },
        store: options.store ?? 'memory',
        bare: nodes.length === 0,
        nodes: nodes.map((name) => ({ name, root: join(dataDirectory, 'nodes', name) })),
        csiDrivers: [],
        volumePluginDirectory: join(dataDirectory, 'volume-plugins'),
        leaveToSidecars: [],
        runtime: nodes.length === 0 ? 'none' : 'process',
        forceDetachOnTimeout: true,
      },
      { log: options.log ?? createLog(() => {}) },
    ),
  )
  const kept = stack.move()
  return {
    client: hawser.client,
    url: hawser.url,
    kubeconfig: hawser.kubeconfig,
    dataDirectory,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Pods that still run keep their mounts; then the directory stays too, because deletion never crosses a mount. */
async function removeTemporary(directory: string): Promise<void> {
  const { createLinuxHost } = await import('../host/linux/linux-host.ts')
  await using host = createLinuxHost()
  const mounts = await host.mounts.list(new AbortController().signal)
  if (mounts.some(({ mountPoint }) => mountPoint.startsWith(`${directory}/`))) return
  rmSync(directory, { recursive: true, force: true })
}
