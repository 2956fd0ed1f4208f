// `hawser agent`: one node in a process of its own, for a server elsewhere.
import { join, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../main/config.ts'
import { loadKubeconfig } from '../../main/kubeconfig.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { exitCodes } from '../exit-codes.ts'
import type { NodeFlags } from '../node-flags.ts'
import { driversFrom, nodeFlags, nodeFrom, requireMountRights } from '../node-flags.ts'

interface Flags extends NodeFlags {
  readonly kubeconfig?: string
  readonly dataDir?: string
  readonly nodeListen?: string
  readonly csiJobs: boolean
}

const patienceMs = 5_000

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
      nodeListen: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'HOST:PORT',
        brief: "Where the node's own server listens, for logs and exec (default: port 10250, or a free one)",
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
    const server = loadKubeconfig(path)
    const drivers = driversFrom(flags)
    const listen = flags.nodeListen === undefined ? undefined : parseNodeListen(flags.nodeListen)
    requireMountRights(env, 'sudo hawser agent --kubeconfig FILE')
    const { startAgent } = await import('../../main/agent.ts')
    const stop = Promise.withResolvers<string>()
    process.once('SIGINT', stop.resolve).once('SIGTERM', stop.resolve)
    const late = setTimeout(() => {
      this.note(`the server at ${server.url} has not answered yet; it is tried again until it does`)
      this.note(`  try: hawser get nodes --kubeconfig ${path}`)
    }, patienceMs)
    const starting = startAgent(
      { dataDirectory, server, node, listen, csiJobs: flags.csiJobs, ...drivers },
      { log: createPinoLog({ level: flags.logLevel }) },
    )
    const started = await Promise.race([starting, stop.promise])
    clearTimeout(late)
    // Only pods of manifests can be there by now: they run on, and the next agent adopts them as after a crash.
    if (typeof started === 'string') {
      this.note(`${started}: stopped before the server at ${server.url} answered`)
      return process.exit(exitCodes.unreachable)
    }
    this.print(`node ${node.name} is up`)
    this.note(`${await stop.promise}: stopping (pods and their mounts stay; the next agent adopts them)`)
    process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1))
    await started[Symbol.asyncDispose]()
  },
})

function parseNodeListen(text: string): { readonly host: string; readonly port: number } {
  const [, ipv6, host = ipv6, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535)
    throw new UsageError(`--node-listen takes HOST:PORT, not "${text}"`, '--node-listen 0.0.0.0:10250')
  return { host, port: Number(port) }
}
