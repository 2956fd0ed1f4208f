// Which server do we speak to? The one whose kubeconfig was named, by flag, by environment, or by the data directory.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createHttpTransport } from '../client/http.ts'
import type { HttpTransport } from '../client/http.ts'
import { createRestClient } from '../client/rest.ts'
import type { Client } from '../client/client.ts'
import { loadKubeconfig } from '../installation/kubeconfig.ts'
import type { Context } from './context.ts'
import { defaultDataDirectory, rootDataDirectory } from './defaults.ts'
import { Unreachable } from './errors.ts'

export interface ConnectFlags {
  readonly kubeconfig?: string
  readonly namespace?: string
}

export interface Connection extends Disposable {
  readonly client: Client
  readonly transport: HttpTransport
  readonly namespace: string
  readonly url: string
  /** The time at the server: ages and silences are counted by its clock, not by ours. */
  now(): Promise<number>
}

/** The flags of every command that talks to a server. */
export const connectFlags = {
  kubeconfig: {
    kind: 'parsed',
    parse: String,
    optional: true,
    placeholder: 'FILE',
    brief: 'Kubeconfig file (default: $KUBECONFIG, then <data-dir>/kubeconfig)',
  },
  namespace: {
    kind: 'parsed',
    parse: String,
    optional: true,
    placeholder: 'NAME',
    async proposeCompletions(this: Context, partial: string) {
      // Loaded only when a shell asks; it imports this file.
      const { namesOf } = await import('./completions.ts')
      return await namesOf('Namespace').call(this, partial)
    },
    brief: 'Namespace (default: the one in the kubeconfig)',
  },
} as const

export function connect(context: Context, flags: ConnectFlags): Connection {
  if (context.server) return connectInProcess(context.server, flags)
  const { env } = context.process
  const named = flags.kubeconfig ?? env['HAWSER_KUBECONFIG'] ?? env['KUBECONFIG']
  const path = named ?? join(defaultDataDirectory(env), 'kubeconfig')
  if (named === undefined && !existsSync(path)) {
    // A server mounts and so is mostly root's; its kubeconfig is in root's place and only root may read it.
    const hint = existsSync(rootDataDirectory)
      ? 'a server of root keeps its data in /var/lib/hawser: sudo hawser …, or a file of your own: sudo hawser token NAME --role admin --as-kubeconfig > FILE, then --kubeconfig FILE'
      : 'hawser up, or --kubeconfig FILE'
    throw new Unreachable(`no server was started here: ${path} does not exist`, hint)
  }
  const config = loadKubeconfig(path)
  const transport = createHttpTransport({ ...config, userAgent: 'hawser-cli' })
  return {
    transport,
    client: createRestClient(transport),
    namespace: flags.namespace ?? config.namespace,
    url: config.url,
    now: () => timeAt(transport),
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  }
}

/** Streams (logs, exec, port-forward) need a real server. */
function connectInProcess(server: NonNullable<Context['server']>, flags: ConnectFlags): Connection {
  const { client } = server
  const transport = createHttpTransport({ url: 'http://in-process.invalid' })
  const namespace = flags.namespace ?? server.namespace
  return {
    client,
    transport,
    namespace,
    url: '',
    now: async () => server.now(),
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  }
}

/** The server tells whole seconds: where the clocks agree, ours is the finer one. */
async function timeAt(transport: HttpTransport): Promise<number> {
  const shown = await transport.time(AbortSignal.timeout(5_000)).catch(() => undefined)
  const own = Date.now()
  return shown === undefined || Math.abs(own - shown) < agreeMs ? own : shown
}

const agreeMs = 3_000
