// `hawser agent`: one node in a process of its own, for a server elsewhere.
import { join, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { loadKubeconfig } from '../../main/kubeconfig.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import type { NodeFlags } from '../node-flags.ts'
import { driversFrom, nodeFlags, nodeFrom } from '../node-flags.ts'

interface Flags extends NodeFlags {
  readonly kubeconfig?: string
  readonly dataDir?: string
  readonly csiJobs: boolean
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
      ...nodeFlags,
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
      csiJobs: {
        kind: 'boolean',
        default: true,
        brief: "Do the sidecars' jobs for drivers registered here (on one agent per driver)",
      },
    },
  },
  async func(flags) {
    const { env } = this.process
    const dataDirectory = resolve(flags.dataDir ?? defaultDataDirectory(env))
    const node = nodeFrom(flags, dataDirectory)
    const path = flags.kubeconfig ?? env['HAWSER_KUBECONFIG'] ?? env['KUBECONFIG'] ?? join(dataDirectory, 'kubeconfig')
    const { startAgent } = await import('../../main/agent.ts')
    const stop = Promise.withResolvers<string>()
    process.once('SIGINT', stop.resolve).once('SIGTERM', stop.resolve)
    const started = await startAgent(
      {
        dataDirectory,
        server: loadKubeconfig(path),
        node,
        csiJobs: flags.csiJobs,
        ...driversFrom(flags),
      },
      { log: createPinoLog({ level: flags.logLevel }) },
    )
    this.print(`node ${node.name} is up`)
    this.note(`${await stop.promise}: stopping (pods and their mounts stay; the next agent adopts them)`)
    process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1))
    await started[Symbol.asyncDispose]()
  },
})
