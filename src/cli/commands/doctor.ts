// `hawser doctor`: looks at machine, data directory, sockets and server, and names the command that mends each finding.
import { existsSync, statSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { Pod } from '../../api/generated/types.ts'
import { isForbidden, isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { confirm, yesFlag } from '../confirm.ts'
import { doRepairs } from '../doctor/do-repairs.ts'
import type { Plan, ServerFacts } from '../doctor/repairs.ts'
import { describeRepair, planRepairs } from '../doctor/repairs.ts'
import { markOfServer } from '../../installation/cluster-mark.ts'
import { secondsFrom } from '../wait.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { dataDirFlag, defaultDataDirectory } from '../defaults.ts'
import type { Finding } from '../doctor/finding.ts'
import { ok, problem, warn } from '../doctor/finding.ts'
import type { DirectoryFacts } from '../doctor/leftovers.ts'
import { judgeDirectory, readDirectory } from '../doctor/leftovers.ts'
import type { KnownStorage } from '../doctor/local-volumes.ts'
import { judgeDrivers } from '../doctor/drivers.ts'
import { doctorKubeconfig } from '../doctor/kubeconfig.ts'
import { judgeMachine, readMachine } from '../doctor/machine.ts'
import type { DriverTrouble } from '../../why/driver-links.ts'
import { driversInTrouble } from '../../why/driver-links.ts'
import { exitCodes } from '../exit-codes.ts'
import type { OutputForm } from '../output.ts'
import { json, outputFlag, paint, yaml } from '../output.ts'
import { UsageError } from '../../installation/config.ts'
import { findRefusal } from '../../installation/directory-identity.ts'
import { errorText } from '../../telemetry/error-text.ts'

interface Flags extends ConnectFlags {
  readonly fix: boolean
  readonly olderThan: number
  readonly deleteData: boolean
  readonly yes: boolean
  readonly dataDir?: string
  readonly output: OutputForm
}

export const doctor = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Find problems of this machine and its data directory',
    fullDescription: [
      'Changes nothing without --fix. Each finding is ok, warn or problem, with a command that fixes it.',
      'Exit code 4 when there are problems.',
      '',
      'With --fix, shows which orphans it would remove (mounts, pod and staging directories, loop devices, records; volumes only with',
      '--delete-data), which it keeps and why, and asks. What is in use, new, or not certainly of this cluster is never touched.',
      '',
      'Examples:',
      '  hawser doctor',
      '  sudo hawser doctor --data-dir /srv/hawser',
      '  hawser doctor -o json',
      '  sudo hawser doctor --fix',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      dataDir: dataDirFlag,
      output: outputFlag,
      fix: { kind: 'boolean', default: false, withNegated: false, brief: 'Remove orphans, after asking' },
      olderThan: {
        kind: 'parsed',
        parse: secondsFrom,
        default: '600',
        placeholder: 'SECONDS',
        brief: 'With --fix: keep what changed in this time',
      },
      deleteData: {
        kind: 'boolean',
        default: false,
        withNegated: false,
        brief: 'With --fix: also delete volumes and snapshots that no object names',
      },
      yes: yesFlag,
    },
    aliases: { n: 'namespace', o: 'output', y: 'yes' },
  },
  async func(flags) {
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const server = await askServer(this, withDirectory(flags, directory, this.process.env))
    const facts = readDirectory(directory)
    if (flags.fix) return fix(this, planRepairs(facts, server.facts, choicesOf(flags)), flags.yes)
    const findings = [
      ...judgeMachine(readMachine(this.process.env)),
      server.finding,
      ...judgeDrivers(server.troubles ?? []),
      ...judgeDirectory(facts, server.facts?.pods, server.facts?.storage),
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

/** The directory is judged by its own server: $KUBECONFIG is often that of another cluster. */
function withDirectory(flags: Flags, directory: string, env: Context['process']['env']): ConnectFlags {
  const own = join(directory, 'kubeconfig')
  const kubeconfig = doctorKubeconfig({
    ...(flags.kubeconfig === undefined ? {} : { named: flags.kubeconfig }),
    own,
    directoryNamed: flags.dataDir !== undefined,
    ownExists: existsSync(own),
    hasHawserVariable: env?.['HAWSER_KUBECONFIG'] !== undefined,
  })
  return kubeconfig === undefined ? flags : { ...flags, kubeconfig }
}

async function askServer(
  context: Context,
  flags: ConnectFlags,
): Promise<{ readonly finding: Finding; readonly facts?: ServerFacts; readonly troubles?: readonly DriverTrouble[] }> {
  try {
    using connection = connect(context, flags)
    const { items } = await connection.client.list('Pod', {}, AbortSignal.timeout(5_000))
    const facts = await factsOf(connection.client, items)
    const troubles = await troublesOf(connection.client)
    return { finding: ok('server', `${connection.url} answers, ${items.length} pods`), facts, troubles }
  } catch (error) {
    const text = errorText(error)
    if (isNotFound(error)) return { finding: foreignServer(text) }
    if (isForbidden(error))
      return {
        finding: warn('server', `the server refuses this user: ${text}`, 'name one who may read: --kubeconfig FILE'),
      }
    if (error instanceof UsageError) return { finding: warn('server', text, error.hint) }
    return { finding: warn('server', `the server does not answer: ${text}`, 'hawser up') }
  }
}

/** A Kubernetes without our kinds. */
const foreignServer = (text: string): Finding =>
  warn(
    'server',
    `the server is not of Hawser (${text}): what is on this machine cannot be compared with it`,
    'name the right one: --kubeconfig FILE',
  )

/** What the server and the nodes found when they called their drivers, wherever those listen. */
async function troublesOf(client: Client): Promise<readonly DriverTrouble[]> {
  const { items } = await client.list('Operation', {}, AbortSignal.timeout(5_000))
  return driversInTrouble(items)
}

async function factsOf(client: Client, pods: readonly Pod[]): Promise<ServerFacts> {
  const signal = AbortSignal.timeout(5_000)
  const [mark, claims, snapshots, storage] = await Promise.all([
    markOfServer(client, signal),
    client.list('PersistentVolumeClaim', {}, signal),
    client.list('VolumeSnapshot', {}, signal),
    knownStorage(client),
  ])
  return {
    cluster: mark === 'hidden' ? undefined : mark.cluster,
    // The directory of a static pod has the hash as its name that its mirror is marked with.
    pods: new Set(
      pods.flatMap(({ metadata }) => present(metadata.uid, metadata.annotations?.['kubernetes.io/config.hash'])),
    ),
    storage,
    makers: new Set([...claims.items, ...snapshots.items].flatMap(({ metadata }) => present(metadata.uid))),
  }
}

const present = (...words: readonly (string | undefined)[]) => words.filter((word) => word !== undefined)

const choicesOf = ({ olderThan, deleteData }: Flags) => ({ olderMs: olderThan * 1_000, deleteData })

/** Plan, question, deeds; each says how it went. */
async function fix(context: Context, { repairs, kept }: Plan, yes: boolean): Promise<void> {
  for (const { what, why } of kept) context.print(`kept     ${what}: ${why}`)
  if (repairs.length === 0) return context.print('there are no orphans to remove')
  await confirm(context, repairs.map(describeRepair), yes)
  const done = await doRepairs(repairs, new AbortController().signal)
  for (const { repair, error } of done)
    context.print(
      error === undefined ? `done     ${describeRepair(repair)}` : `failed   ${describeRepair(repair)}: ${error}`,
    )
  if (done.some(({ error }) => error !== undefined)) context.fail(exitCodes.failed)
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
