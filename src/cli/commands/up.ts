// `hawser up`: everything in one process, until a signal ends it.
import { hostname } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCommand } from '@stricli/core'
import type { HawserConfig } from '../../main/config.ts'
import { parseListen, UsageError } from '../../main/config.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import { mayMount, readMachine } from '../doctor/machine.ts'
import { table } from '../output.ts'

interface Flags {
  readonly dataDir?: string
  readonly listen: string
  readonly store: 'memory' | 'embedded'
  readonly bare: boolean
  readonly nodeName?: string
  readonly rootDir?: string
  readonly extraNode?: readonly string[]
  readonly csiDriver?: readonly string[]
  readonly leaveToSidecars?: readonly string[]
  readonly runtime: 'process' | 'none'
  readonly manifests?: string
  readonly manifestUrl?: string
  readonly disableForceDetachOnTimeout: boolean
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug'
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
      '  hawser up --bare --store memory                 # API and controllers only',
      '  hawser up --csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    ].join('\n'),
  },
  parameters: {
    flags: {
      dataDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Where everything durable lies',
      },
      listen: {
        kind: 'parsed',
        parse: String,
        default: '127.0.0.1:7443',
        placeholder: 'HOST:PORT',
        brief: 'Address of the API server',
      },
      store: { kind: 'enum', values: ['memory', 'embedded'], default: 'embedded', brief: 'Where objects are kept' },
      bare: {
        kind: 'boolean',
        default: false,
        brief: 'API and controllers only: no node, no driver, no default objects',
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
      extraNode: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'NAME',
        brief: 'A further node on this machine (root: <data-dir>/nodes/NAME)',
      },
      csiDriver: {
        kind: 'parsed',
        parse: String,
        optional: true,
        variadic: true,
        placeholder: 'NAME=SOCKET',
        brief: 'A CSI driver without a registrar',
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
      disableForceDetachOnTimeout: {
        kind: 'boolean',
        default: false,
        brief: 'Never detach from an unhealthy node because of time alone',
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
    const config = configOf(flags, this.process.env)
    if (config.nodes.length > 0) requireMountRights(this.process.env)
    const { startHawser } = await import('../../main/all-in-one.ts')
    const log = createPinoLog({ level: flags.logLevel })
    const stop = Promise.withResolvers<string>()
    const onSignal = (signal: NodeJS.Signals) => stop.resolve(signal)
    process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
    const hawser = await startHawser(config, { log, note: (text) => this.note(text) })
    this.print(hawser.bare ? bareText(hawser.url, hawser.kubeconfig) : nextSteps(hawser.url, hawser.kubeconfig))
    const signal = await stop.promise
    this.note(`${signal}: stopping (running pods and their mounts stay; the next "hawser up" finds them again)`)
    // A second signal means: now.
    process.once('SIGINT', () => process.exit(1)).once('SIGTERM', () => process.exit(1))
    await hawser[Symbol.asyncDispose]()
  },
})

/** Told before anything is started: the kernel's own word (EPERM) helps nobody. */
function requireMountRights(env: Readonly<Partial<Record<string, string>>>): void {
  if (mayMount(readMachine(env))) return
  throw new UsageError(
    'a node mounts filesystems, and this user may not',
    'sudo hawser up; or without a node: hawser up --bare; or on models: hawser demo --model',
  )
}

function configOf(flags: Flags, env: Readonly<Partial<Record<string, string>>>): HawserConfig {
  const dataDirectory = resolve(flags.dataDir ?? defaultDataDirectory(env))
  const name = flags.nodeName ?? hostname().toLowerCase()
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name))
    throw new UsageError(`"${name}" cannot be a node's name`, 'name it with --node-name')
  return {
    dataDirectory,
    listen: parseListen(flags.listen),
    store: flags.store,
    bare: flags.bare,
    nodes: flags.bare
      ? []
      : [
          { name, root: resolve(flags.rootDir ?? join(dataDirectory, 'node')) },
          ...(flags.extraNode ?? []).map((extra) => ({ name: extra, root: join(dataDirectory, 'nodes', extra) })),
        ],
    csiDrivers: (flags.csiDriver ?? []).map(parseDriver),
    leaveToSidecars: flags.leaveToSidecars ?? [],
    runtime: flags.runtime,
    forceDetachOnTimeout: !flags.disableForceDetachOnTimeout,
    ...(flags.manifests === undefined ? {} : { manifests: resolve(flags.manifests) }),
    ...(flags.manifestUrl === undefined ? {} : { manifestUrl: flags.manifestUrl }),
  }
}

export function parseDriver(text: string): { name: string; socket: string } {
  const cut = text.indexOf('=')
  if (cut <= 0)
    throw new UsageError(
      `--csi-driver takes NAME=SOCKET, not "${text}"`,
      '--csi-driver hostpath.csi.k8s.io=/run/csi.sock',
    )
  return { name: text.slice(0, cut), socket: resolve(text.slice(cut + 1)) }
}

function bareText(url: string, kubeconfig: string): string {
  return `Hawser (bare) serves ${url}\n  export KUBECONFIG=${kubeconfig}`
}

function nextSteps(url: string, kubeconfig: string): string {
  const example = exampleFile()
  const rows = [
    ['  with kubectl', 'without'],
    [`  export KUBECONFIG=${kubeconfig}`, `export KUBECONFIG=${kubeconfig}`],
    ['  kubectl get nodes,storageclasses', 'hawser get nodes,storageclasses'],
    [`  kubectl apply -f ${example}`, `hawser apply -f ${example}`],
    ['  kubectl get pvc,pods', 'hawser why pod/first'],
  ]
  return [`Hawser serves ${url}. Try next, in another terminal:`, '', table([], rows), '', 'Stop with Ctrl-C.'].join(
    '\n',
  )
}

/** Short where the user stands in the clone; whole where the package is installed somewhere. */
function exampleFile(): string {
  const path = fileURLToPath(new URL('../../../docs/examples/first.yaml', import.meta.url))
  const short = relative(process.cwd(), path)
  return short.startsWith('..') ? path : short
}
