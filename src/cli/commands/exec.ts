// `hawser exec` and `hawser attach`: a command beside a container's own, and what that one says.
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../main/config.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import type { RemoteStreams } from '../remote.ts'
import { runRemote, writerTo } from '../remote.ts'
import { podFrom } from '../resources.ts'

interface AttachFlags extends ConnectFlags {
  readonly container?: string
  readonly stdin: boolean
}

interface ExecFlags extends AttachFlags {
  readonly tty: boolean
}

export const containerFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'NAME',
  brief: 'Which container (default: the only one)',
} as const

const stdinFlag = { kind: 'boolean', default: false, brief: 'Pass our input on to it' } as const

export const exec = buildCommand<ExecFlags, string[], Context>({
  docs: {
    brief: 'Run a command inside a running pod',
    fullDescription: [
      "Runs a command beside a container's own: it sees the same files and volumes, as the same user.",
      "Its exit code becomes this program's. When this program ends, so does the command. Only administrators may.",
      '',
      'Examples:',
      '  hawser exec first -- ls -l /data',
      '  hawser exec first -it -- sh',
      "  hawser exec pod/first -c writer -i -- sh -c 'cat > /data/file' < file",
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      container: containerFlag,
      stdin: stdinFlag,
      tty: { kind: 'boolean', default: false, brief: 'Give it a terminal (with --stdin)' },
    },
    aliases: { c: 'container', i: 'stdin', t: 'tty', n: 'namespace' },
    positional: {
      kind: 'array',
      parameter: { parse: String, placeholder: 'POD -- COMMAND', brief: 'Where, and what to run' },
      minimum: 2,
    },
  },
  async func(flags, pod = '', ...words) {
    const command = words[0] === '--' ? words.slice(1) : words
    using connection = connect(this, flags)
    const terminal = flags.tty && process.stdin.isTTY
    if (flags.tty && !terminal) this.note('our input is no terminal: the command gets none')
    if (flags.tty && !flags.stdin) throw new UsageError('--tty needs --stdin', `hawser exec ${pod} -it -- sh`)
    using _input = inputToClose()
    using _raw = terminal ? rawMode() : undefined
    const streams: RemoteStreams = {
      stdin: flags.stdin ? process.stdin : undefined,
      stdout: writerTo(process.stdout),
      stderr: writerTo(process.stderr),
      ...(terminal ? { sizes: tellSizes } : {}),
    }
    const request = {
      pod: podFrom(pod, 'containers'),
      verb: 'exec',
      container: flags.container,
      command,
      tty: terminal,
    } as const
    this.exitLike(await runRemote(connection, request, streams, new AbortController().signal))
  },
})

export const attach = buildCommand<AttachFlags, [string], Context>({
  docs: {
    brief: "Listen to a pod's container from now on",
    fullDescription: [
      'Prints what the container says from now on, until it ends. It hears what we say only if it was made with `stdin: true`.',
      '',
      'Examples:',
      '  hawser attach first',
      '  hawser attach pod/first -c writer',
      '  hawser attach first -i < answers',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, container: containerFlag, stdin: stdinFlag },
    aliases: { c: 'container', i: 'stdin', n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: (text: string) => podFrom(text, 'containers'), placeholder: 'POD', brief: 'Whose output' }],
    },
  },
  async func(flags, pod) {
    using connection = connect(this, flags)
    using _input = inputToClose()
    const streams: RemoteStreams = {
      stdin: flags.stdin ? process.stdin : undefined,
      stdout: writerTo(process.stdout),
      stderr: writerTo(process.stderr),
    }
    const request = { pod, verb: 'attach', container: flags.container, command: [], tty: false } as const
    await runRemote(connection, request, streams, new AbortController().signal)
  },
})

/** However it ends: an input that is still open would keep this program. */
function inputToClose(): Disposable {
  return { [Symbol.dispose]: () => void process.stdin.destroy() }
}

/** Every key goes to the command, Ctrl-C too. */
function rawMode(): Disposable {
  process.stdin.setRawMode(true)
  return { [Symbol.dispose]: () => void process.stdin.setRawMode(false) }
}

function tellSizes(tell: (width: number, height: number) => void): void {
  const { stdout } = process
  const say = () => tell(stdout.columns, stdout.rows)
  say()
  stdout.on('resize', say)
}
