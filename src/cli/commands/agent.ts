// `hawser agent`: one node in a process of its own, for a server elsewhere.
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { loadKubeconfig } from '../../installation/kubeconfig.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { exitCodes } from '../exit-codes.ts'
import type { JoinFlags } from '../join-flags.ts'
import { joinFlags, serverOfAgent } from '../join-flags.ts'
import type { NodeFlags } from '../node-flags.ts'
import { driversFrom, nodeFlags, nodeFrom, overcommitFlag, requireMountRights } from '../node-flags.ts'

interface Flags extends NodeFlags, JoinFlags {
  readonly dataDir?: string
  readonly nodeListen?: string
  readonly csiJobs: boolean
  readonly overcommit?: number
}

const noAnswerMs = 5_000

export const agent = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Run a node of a server on another machine',
    fullDescription: [
      'Runs the pods of this node and mounts their volumes. Pods keep running when the agent stops; the next agent takes them over.',
      'The command with which a machine joins is printed on the server, by "hawser token join-command".',
      'There is one server, so --join takes one address. While the server is away, the agent waits for it.',
      '',
      'Examples:',
      '  hawser agent --join https://storage:7443 --ca-hash sha256:…   # with $HAWSER_JOIN_TOKEN',
      '  hawser agent                                    # again, once it has joined',
      '  hawser agent --kubeconfig /etc/hawser/kubeconfig --node-name worker-1',
      '  hawser agent --node-name worker-1 --csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...nodeFlags,
      ...joinFlags,
      dataDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Directory of container records and logs',
      },
      nodeListen: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'HOST:PORT',
        brief: 'Address for logs and exec (default: port 10250, or a free one)',
      },
      overcommit: overcommitFlag,
      csiJobs: {
        kind: 'boolean',
        default: true,
        brief:
          'With a kubeconfig: provision, attach, resize and snapshot for the drivers of this node. An agent that has joined leaves this to the server',
      },
    },
  },
  async func(flags) {
    const { env } = this.process
    const dataDirectory = resolve(flags.dataDir ?? defaultDataDirectory(env))
    // A wrong name is told before anybody is asked.
    const nodeName = () => nodeFrom(flags, dataDirectory).name
    if (flags.nodeName !== undefined) nodeName()
    const drivers = driversFrom(flags)
    const log = createPinoLog({ level: flags.logLevel })
    const listen = flags.nodeListen === undefined ? undefined : parseNodeListen(flags.nodeListen)
    if (flags.join !== undefined) requireMountRights(env, 'sudo hawser agent --join URL')
    const { kubeconfig: path, joinedAs } = await serverOfAgent(this, flags, { dataDirectory, log, nodeName })
    const node = nodeFrom(flags, dataDirectory, joinedAs)
    const server = loadKubeconfig(path)
    requireMountRights(env, 'sudo hawser agent --kubeconfig FILE')
    const { startAgent } = await import('../../main/agent.ts')
    const stop = Promise.withResolvers<string>()
    process.once('SIGINT', stop.resolve).once('SIGTERM', stop.resolve)
    const late = setTimeout(() => {
      this.note(`the server at ${server.url} has not answered yet; retrying`)
      this.note(`  try: hawser get nodes --kubeconfig ${path}`)
    }, noAnswerMs)
    const joined = joinedAs !== undefined
    // A node's certificate has no right to the jobs of a driver.
    const csiJobs = flags.csiJobs && !joined
    const built = flags.overcommit === undefined ? {} : { overcommit: flags.overcommit }
    const starting = startAgent(
      { dataDirectory, server, node, listen, joined, secretFiles: [resolve(path)], csiJobs, ...built, ...drivers },
      { log },
    )
    const started = await Promise.race([starting, stop.promise]).finally(() => clearTimeout(late))
    // Only pods of manifests can be there by now: they run on, and the next agent adopts them as after a crash.
    if (typeof started === 'string') {
      this.note(`${started}: stopped before the server at ${server.url} answered`)
      return process.exit(exitCodes.unreachable)
    }
    this.print(`node ${node.name} is up`)
    this.note(`${await stop.promise}: stopping (pods and their mounts stay; the next agent takes them over)`)
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
