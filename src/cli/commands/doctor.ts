// `hawser doctor`: looks at machine, data directory, sockets and server, and names the command that mends each finding.
import { connect as connectSocket } from 'node:net'
import { basename, dirname, resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { defaultDataDirectory } from '../defaults.ts'
import type { Finding } from '../doctor/finding.ts'
import { ok, problem, warn } from '../doctor/finding.ts'
import { judgeDirectory, readDirectory } from '../doctor/leftovers.ts'
import { judgeMachine, readMachine } from '../doctor/machine.ts'
import { exitCodes } from '../exit-codes.ts'
import type { OutputForm } from '../output.ts'
import { json, outputFlag, paint, yaml } from '../output.ts'
import { UsageError } from '../../main/config.ts'

interface Flags extends ConnectFlags {
  readonly dataDir?: string
  readonly output: OutputForm
}

export const doctor = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Find what is wrong with this machine or its data directory',
    fullDescription: [
      'Only looks, changes nothing. Each finding is ok, warn or problem, with the command that mends it.',
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
        brief: 'Where everything durable lies (default: that of hawser up)',
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
      ...judgeDirectory(facts, server.pods),
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
): Promise<{ readonly finding: Finding; readonly pods?: ReadonlySet<string> }> {
  try {
    using connection = connect(context, flags)
    const { items } = await connection.client.list('Pod', {}, AbortSignal.timeout(5_000))
    const pods = new Set(items.flatMap(({ metadata }) => (metadata.uid === undefined ? [] : [metadata.uid])))
    return { finding: ok('server', `${connection.url} answers, ${items.length} pods`), pods }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    if (error instanceof UsageError) return { finding: warn('server', text, error.hint) }
    return { finding: warn('server', `it does not answer: ${text}`, 'hawser up') }
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
  if (answers) return ok('sockets', `${path} is listened on`)
  if (running)
    return problem('sockets', `nobody listens on ${path}`, `is its driver running? hawser driver check ${path}`)
  // A killed server leaves the socket of the driver that it starts itself.
  const own = basename(dirname(path)) === 'local.hawser.dev'
  const mend = own ? 'hawser up (starts its driver again)' : `rm ${path} (or start what owns ${dirname(path)})`
  return warn('sockets', `nobody listens on ${path}`, mend)
}
