// `hawser exec` and `hawser attach`: a command beside a container's own, and what that one says.
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { namesOf } from '../completions.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { inNamespace } from '../hints.ts'
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
  brief: 'Container (default: the only one)',
} as const

const stdinFlag = { kind: 'boolean', default: false, brief: 'Pass stdin to the container' } as const

export const exec = buildCommand<ExecFlags, string[], Context>({
  docs: {
    brief: 'Run a command in a running container',
    fullDescription: [
      'Runs a command in a container: with the same files, volumes and user.',
      'Exits with the exit code of the command. The command is killed when this program ends. Needs the role admin.',
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
      tty: { kind: 'boolean', default: false, brief: 'Allocate a terminal (with --stdin)' },
    },
    aliases: { c: 'container', i: 'stdin', t: 'tty', n: 'namespace' },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        placeholder: 'POD -- COMMAND',
        proposeCompletions: namesOf('Pod'),
        brief: 'Pod and command',
      },
      minimum: 2,
    },
  },
  async func(flags, pod = '', ...words) {
    const command = words[0] === '--' ? words.slice(1) : words
    using connection = connect(this, flags)
    const terminal = flags.tty && process.stdin.isTTY
    if (flags.tty && !terminal) this.note('stdin is not a terminal: the command does not get one')
    if (flags.tty && !flags.stdin)
      throw new UsageError('--tty needs --stdin', `hawser exec ${pod}${inNamespace(flags.namespace)} -it -- sh`)
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
    brief: 'Print the output of a running container',
    fullDescription: [
      'Prints the output of the container from now on, until it ends. Input reaches it only if it has `stdin: true`.',
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
      parameters: [
        {
          parse: (text: string) => podFrom(text, 'containers'),
          placeholder: 'POD',
          proposeCompletions: namesOf('Pod'),
          brief: 'Name of the pod',
        },
      ],
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
