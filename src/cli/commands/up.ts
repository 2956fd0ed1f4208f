// `hawser up`: everything in one process, until a signal ends it.
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCommand } from '@stricli/core'
import { joinCommand } from '../../installation/bootstrap-tokens.ts'
import { readClusterInfo } from '../../installation/cluster-info.ts'
import type { HawserConfig } from '../../installation/config.ts'
import { parseListen, UsageError } from '../../installation/config.ts'
import { parseAdvertise } from '../../installation/addresses.ts'
import { packageVersion } from '../../installation/version.ts'
import type { Hawser } from '../../main/all-in-one.ts'
import type { Log } from '../../telemetry/log.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import type { EtcdServerFlags } from '../etcd-flags.ts'
import { etcdFlags, etcdFrom } from '../etcd-flags.ts'
import type { NodeFlags } from '../node-flags.ts'
import { driversFrom, nodeFlags, nodeFrom, overcommitFlag, requireMountRights } from '../node-flags.ts'
import { table } from '../output.ts'
import { ownCommand } from '../own-command.ts'

interface Flags extends NodeFlags, EtcdServerFlags {
  readonly dataDir?: string
  readonly listen?: readonly string[]
  readonly advertise?: readonly string[]
  readonly store: 'memory' | 'embedded' | 'etcd'
  readonly acceptStore: boolean
  readonly bare: boolean
  readonly node: boolean
  readonly extraNode?: readonly string[]
  readonly overcommit?: number
  readonly disableForceDetachOnTimeout: boolean
  readonly strictScheduling: boolean
  readonly mountTokens: boolean
}

export const up = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Run API server, controllers, node agent and built-in driver',
    fullDescription: [
      'Starts everything in one process and keeps running until SIGINT or SIGTERM.',
      'The admin kubeconfig is written to <data-dir>/kubeconfig (mode 0600).',
      '',
      'Examples:',
      '  hawser up',
      '  hawser up --data-dir /srv/hawser --listen 127.0.0.1:7000',
      '  hawser up --listen 0.0.0.0:7443                 # other machines can join',
      '  hawser up --bare --store memory                 # API and controllers only',
      '  hawser up --store etcd --etcd-servers http://127.0.0.1:2379',
      '  hawser up --no-node --store etcd --etcd-servers http://127.0.0.1:2379 --standby   # a second server, ready to take over',
      '  hawser up --csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...nodeFlags,
      dataDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Data directory: objects, keys, volumes of the built-in driver',
      },
      listen: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'HOST:PORT',
        brief: 'Address to listen on (default: 127.0.0.1:7443); 0.0.0.0 means every address of this machine',
      },
      advertise: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'HOST[:PORT]',
        brief: 'Name or address by which other machines reach the server (default: those of this machine)',
      },
      store: {
        kind: 'enum',
        values: ['memory', 'embedded', 'etcd'],
        default: 'embedded',
        brief: 'Store of the objects: SQLite (embedded), memory, or an etcd that runs elsewhere',
      },
      ...etcdFlags,
      acceptStore: {
        kind: 'boolean',
        default: false,
        brief: 'Go on with a store that is older than the one last used here: later changes are lost',
      },
      bare: {
        kind: 'boolean',
        default: false,
        brief: 'API and controllers only: no node, no driver, no default objects',
      },
      node: {
        kind: 'boolean',
        default: true,
        brief: 'Run a node on this machine; with --no-node agents do all work, also that of this machine',
      },
      extraNode: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'NAME',
        brief: 'Another node on this machine (root: <data-dir>/nodes/NAME)',
      },
      overcommit: overcommitFlag,
      disableForceDetachOnTimeout: {
        kind: 'boolean',
        default: false,
        brief: 'Never detach from an unhealthy node by force after six minutes',
      },
      strictScheduling: {
        kind: 'boolean',
        default: false,
        brief: 'As Kubernetes: bind no WaitForFirstConsumer claims for pods that set spec.nodeName',
      },
      mountTokens: {
        kind: 'boolean',
        default: false,
        brief: 'As Kubernetes: mount the token of its ServiceAccount into every pod; the account must exist',
      },
    },
  },
  async func(flags) {
    const config = configOf(flags, this.process.env)
    if (config.nodes.length > 0)
      requireMountRights(
        this.process.env,
        'sudo hawser up; or without a node: hawser up --bare; or on models: hawser demo --model',
      )
    // The first word comes before the rest of the program is loaded.
    this.note(`Hawser ${packageVersion} is starting. Data directory: ${config.dataDirectory}`)
    const { startHawser } = await import('../../main/all-in-one.ts')
    const log = createPinoLog({ level: flags.logLevel })
    const stop = Promise.withResolvers<string>()
    const starting = new AbortController()
    const onSignal = (signal: NodeJS.Signals) => {
      stop.resolve(signal)
      starting.abort()
    }
    process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
    const hawser = await startHawser(config, {
      log,
      onProgress: (text) => this.note(text),
      onStoreLost: (error) => endAtOnce(error, log),
      starting: starting.signal,
    }).catch((error: unknown) => {
      if (starting.signal.aborted && error === starting.signal.reason) return undefined
      throw error
    })
    if (hawser === undefined) return this.note(`${await stop.promise}: stopping before the start was complete`)
    this.print(
      hawser.bare
        ? bareText(hawser.url, hawser.kubeconfig)
        : nextSteps(hawser.url, hawser.kubeconfig, this.process.env['PATH'] ?? ''),
    )
    const join = await howToJoin(hawser, this)
    if (join !== undefined) this.print(join)
    const signal = await stop.promise
    this.note(`${signal}: stopping (pods and their mounts stay; the next "hawser up" takes them over)`)
    // A second signal means: now.
    process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1))
    await hawser[Symbol.asyncDispose]()
  },
})

/** Another server may act from now on: nothing of ours may be under way any more. Pods and their mounts stay. */
function endAtOnce(error: Error, log: Log): never {
  log.error('the store is lost: this server ends', { error: error.message })
  process.exit(1)
}

function configOf(flags: Flags, env: Readonly<Partial<Record<string, string>>>): HawserConfig {
  const dataDirectory = resolve(flags.dataDir ?? defaultDataDirectory(env))
  const etcd = etcdFrom(flags.store, flags)
  if (!flags.node && flags.extraNode !== undefined)
    throw new UsageError('--extra-node and --no-node contradict each other', 'leave one of them out')
  const [listen, ...alsoListen] = (flags.listen ?? ['127.0.0.1:7443']).map(parseListen)
  return {
    dataDirectory,
    listen: listen ?? parseListen(''),
    alsoListen,
    advertise: (flags.advertise ?? []).map(parseAdvertise),
    store: flags.store,
    ...(etcd === undefined ? {} : { etcd }),
    acceptStore: flags.acceptStore,
    bare: flags.bare,
    nodes:
      flags.bare || !flags.node
        ? []
        : [
            nodeFrom(flags, dataDirectory),
            ...(flags.extraNode ?? []).map((extra) => ({ name: extra, root: join(dataDirectory, 'nodes', extra) })),
          ],
    ...driversFrom(flags),
    ...(flags.overcommit === undefined ? {} : { overcommit: flags.overcommit }),
    forceDetachOnTimeout: !flags.disableForceDetachOnTimeout,
    strictScheduling: flags.strictScheduling,
    mountTokens: flags.mountTokens,
  }
}

function bareText(url: string, kubeconfig: string): string {
  return `Hawser (bare) serves ${url}\n  export KUBECONFIG=${kubeconfig}`
}

function nextSteps(url: string, kubeconfig: string, searchPath: string): string {
  const example = exampleFile()
  const hawser = ownCommand(searchPath, process.cwd())
  const rows = [
    ['  with kubectl', 'without'],
    [`  export KUBECONFIG=${kubeconfig}`, `export KUBECONFIG=${kubeconfig}`],
    ['  kubectl get nodes,storageclasses', `${hawser} get nodes,storageclasses`],
    [`  kubectl apply -f ${example}`, `${hawser} apply -f ${example}`],
    ['  kubectl get pvc,pods', `${hawser} why pod/first`],
  ]
  return [`Hawser serves ${url}. Try next, in another terminal:`, '', table([], rows), '', 'Stop with Ctrl-C.'].join(
    '\n',
  )
}

/** A token is printed on a terminal only: what a service prints is kept in the machine's log. */
async function howToJoin({ client }: Hawser, { interactive }: Context): Promise<string | undefined> {
  if ((await readClusterInfo(client)) === undefined) return undefined
  const command = interactive ? await joinCommand(client, { hours: 1, uses: 1 }, Date.now()) : undefined
  if (command === undefined) return 'Another machine joins with the command that this prints: hawser token join-command'
  return `Another machine joins with this command, as root, within an hour:\n  ${command}`
}

/** Short where the user stands in the clone; whole where the package is installed somewhere. */
function exampleFile(): string {
  const path = fileURLToPath(new URL('../../../docs/examples/first.yaml', import.meta.url))
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}
