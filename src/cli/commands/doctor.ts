// `hawser doctor`: looks at machine, data directory, sockets and server, and names the command that mends each finding.
import { statSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { basename, dirname, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { Client } from '../../client/client.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import type { Finding } from '../doctor/finding.ts'
import { ok, problem, warn } from '../doctor/finding.ts'
import type { DirectoryFacts } from '../doctor/leftovers.ts'
import { judgeDirectory, readDirectory } from '../doctor/leftovers.ts'
import type { KnownStorage } from '../doctor/local-volumes.ts'
import { judgeMachine, readMachine } from '../doctor/machine.ts'
import { exitCodes } from '../exit-codes.ts'
import type { OutputForm } from '../output.ts'
import { json, outputFlag, paint, yaml } from '../output.ts'
import { UsageError } from '../../installation/config.ts'
import { findRefusal } from '../../installation/directory-identity.ts'
import { errorText } from '../../telemetry/error-text.ts'

interface Flags extends ConnectFlags {
  readonly dataDir?: string
  readonly output: OutputForm
}

export const doctor = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Find problems of this machine and its data directory',
    fullDescription: [
      'Changes nothing. Each finding is ok, warn or problem, with a command that fixes it.',
      'Exit code 4 when there are problems.',
      '',
      'Examples:',
      '  hawser doctor',
      '  sudo hawser doctor --data-dir /srv/hawser',
      '  hawser doctor -o json',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      dataDir: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Data directory (default: that of hawser up)',
      },
      output: outputFlag,
    },
    aliases: { n: 'namespace', o: 'output' },
  },
  async func(flags) {
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const server = await askServer(this, withDirectory(flags, directory))
    const facts = readDirectory(directory)
    const findings = [
      ...judgeMachine(readMachine(this.process.env)),
      server.finding,
      ...judgeDirectory(facts, server.pods, server.storage),
      ...judgeStore(facts),
      ...(await Promise.all(facts.sockets.map((path) => checkSocket(path, facts.holder !== undefined)))),
    ]
    if (findings.some(({ level }) => level === 'problem')) this.fail(exitCodes.waiting)
    if (flags.output === 'json') return this.print(json(findings))
    if (flags.output === 'yaml') return this.print(yaml(findings))
    for (const finding of findings) show(this, finding)
    const count = (level: Finding['level']) => findings.filter((finding) => finding.level === level).length
    this.print(`${count('problem')} problems, ${count('warn')} warnings, ${count('ok')} fine`)
  },
})

const styles = { ok: 'green', warn: 'yellow', problem: 'red' } as const

function show(context: Context, { level, about, text, fix }: Finding): void {
  context.print(`${paint(context, styles[level], level.padEnd(8))} ${about}: ${text}`)
  if (fix !== undefined) context.print(`${' '.repeat(9)}${paint(context, 'dim', `→ ${fix}`)}`)
}

/** A directory that was named brings its own kubeconfig, unless another one was named too. */
function withDirectory(flags: Flags, directory: string): ConnectFlags {
  if (flags.kubeconfig !== undefined || flags.dataDir === undefined) return flags
  return { ...flags, kubeconfig: `${directory}/kubeconfig` }
}

async function askServer(
  context: Context,
  flags: ConnectFlags,
): Promise<{ readonly finding: Finding; readonly pods?: ReadonlySet<string>; readonly storage?: KnownStorage }> {
  try {
    using connection = connect(context, flags)
    const { items } = await connection.client.list('Pod', {}, AbortSignal.timeout(5_000))
    const pods = new Set(items.flatMap(({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid])))
    const storage = await knownStorage(connection.client)
    return { finding: ok('server', `${connection.url} answers, ${items.length} pods`), pods, storage }
  } catch (error) {
    const text = errorText(error)
    if (error instanceof UsageError) return { finding: warn('server', text, error.hint) }
    return { finding: warn('server', `the server does not answer: ${text}`, 'hawser up') }
  }
}

/** Would a server start here? */
function judgeStore({ exists, path, holder }: DirectoryFacts): Finding[] {
  // Only its owner may read what the directory remembers.
  const mayRead = exists && [0, statSync(path).uid].includes(process.getuid?.() ?? -1)
  const refusal = mayRead && holder === undefined ? findRefusal(path) : undefined
  return refusal ? [problem('store', refusal.sentence, refusal.remedy)] : []
}

async function knownStorage(client: Client): Promise<KnownStorage> {
  const [volumes, contents] = await Promise.all([
    client.list('PersistentVolume', {}, AbortSignal.timeout(5_000)),
    client.list('VolumeSnapshotContent', {}, AbortSignal.timeout(5_000)),
  ])
  const handles = (pairs: readonly (readonly [string | undefined, string | undefined])[]) => {
    const byDriver = new Map<string, Set<string>>()
    for (const [driver, handle] of pairs) {
      if (driver !== undefined && handle !== undefined)
        byDriver.getOrInsertComputed(driver, () => new Set<string>()).add(handle)
    }
    return byDriver
  }
  return {
    volumes: handles(volumes.items.map(({ spec }) => [spec?.csi?.driver, spec?.csi?.volumeHandle])),
    snapshots: handles(
      contents.items.map(({ spec, status }) => [spec.driver, status?.snapshotHandle ?? spec.source.snapshotHandle]),
    ),
  }
}

/** A socket file that nobody listens on: with a server running, its driver is down. */
async function checkSocket(path: string, running: boolean): Promise<Finding> {
  const answers = await new Promise<boolean>((settle) => {
    const socket = connectSocket(path)
    socket.once('connect', () => settle(true)).once('error', () => settle(false))
    setTimeout(() => settle(false), 2_000).unref()
    socket.once('close', () => settle(false))
    socket.once('connect', () => socket.destroy())
  })
  if (answers) return ok('sockets', `${path} accepts connections`)
  if (running)
    return problem('sockets', `no program listens on ${path}`, `is its driver running? hawser driver check ${path}`)
  // A killed server leaves the socket of the driver that it starts itself.
  const own = basename(dirname(path)) === 'local.hawser.dev'
  const mend = own ? 'hawser up (starts its driver again)' : `rm ${path} (or start what owns ${dirname(path)})`
  return warn('sockets', `no program listens on ${path}`, mend)
}
