// `hawser agent`: one node in a process of its own, for a server elsewhere.
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { loadKubeconfig } from '../../main/kubeconfig.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { parseDriver } from './up.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly dataDir?: string
  readonly nodeName?: string
  readonly rootDir?: string
  readonly csiDriver?: readonly string[]
  readonly csiJobs: boolean
  readonly leaveToSidecars?: readonly string[]
  readonly runtime: 'process' | 'none'
  readonly manifests?: string
  readonly manifestUrl?: string
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug'
}

export const agent = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Run one node against a server elsewhere',
    fullDescription: [
      'Mounts the volumes of the pods bound to this node and runs them. Pods go on when the agent stops; the next one adopts them.',
      '',
      'Examples:',
      '  hawser agent --kubeconfig /etc/hawser/kubeconfig --node-name worker-1',
      '  hawser agent --node-name worker-1 --csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    ].join('\n'),
  },
  parameters: {
    flags: {
      kubeconfig: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'FILE',
        brief: 'Where the server is (default: $KUBECONFIG)',
      },
      dataDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Records of containers and logs',
      },
      nodeName: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'NAME',
        brief: 'Name of this node (default: the host name)',
      },
      rootDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: "The node's root, laid out as a kubelet's (default: <data-dir>/node)",
      },
      csiDriver: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'NAME=SOCKET',
        brief: 'A CSI driver without a registrar',
      },
      csiJobs: {
        kind: 'boolean',
        default: true,
        brief: "Do the sidecars' jobs for drivers registered here (on one agent per driver)",
      },
      leaveToSidecars: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'DRIVER',
        brief: "Leave this driver's jobs to upstream sidecars",
      },
      runtime: {
        kind: 'enum',
        values: ['process', 'none'],
        default: 'process',
        brief: 'How pods run: as processes, or volumes only',
      },
      manifests: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'A directory of pod manifests',
      },
      manifestUrl: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'URL',
        brief: 'An HTTP address of pod manifests',
      },
      logLevel: {
        kind: 'enum',
        values: ['error', 'warn', 'info', 'debug'],
        default: 'warn',
        brief: 'What is logged to stderr',
      },
    },
  },
  async func(flags) {
    const { env } = this.process
    const dataDirectory = resolve(flags.dataDir ?? defaultDataDirectory(env))
    const name = flags.nodeName ?? hostname().toLowerCase()
    const path = flags.kubeconfig ?? env['HAWSER_KUBECONFIG'] ?? env['KUBECONFIG'] ?? join(dataDirectory, 'kubeconfig')
    const { startAgent } = await import('../../main/agent.ts')
    const stop = Promise.withResolvers<string>()
    process.once('SIGINT', stop.resolve).once('SIGTERM', stop.resolve)
    const started = await startAgent(
      {
        dataDirectory,
        server: loadKubeconfig(path),
        node: { name, root: resolve(flags.rootDir ?? join(dataDirectory, 'node')) },
        csiDrivers: (flags.csiDriver ?? []).map(parseDriver),
        csiJobs: flags.csiJobs,
        leaveToSidecars: flags.leaveToSidecars ?? [],
        runtime: flags.runtime,
        ...(flags.manifests === undefined ? {} : { manifests: resolve(flags.manifests) }),
        ...(flags.manifestUrl === undefined ? {} : { manifestUrl: flags.manifestUrl }),
      },
      { log: createPinoLog({ level: flags.logLevel }) },
    )
    this.print(`node ${name} is up`)
    this.note(`${await stop.promise}: stopping (pods and their mounts stay; the next agent adopts them)`)
    process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1))
    await started[Symbol.asyncDispose]()
  },
})
