// `hawser cp`: files into a pod and out of it. One file needs nothing but a shell there, directories need tar on both sides.
import { spawn } from 'node:child_process'
import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { basename, join } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../main/config.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Missing } from '../errors.ts'
import type { RemoteStreams } from '../remote.ts'
import { runRemote, writerTo } from '../remote.ts'
import { podFrom } from '../resources.ts'
import { containerFlag } from './exec.ts'

interface Flags extends ConnectFlags {
  readonly container?: string
}

interface Place {
  readonly pod: string
  readonly path: string
}

export const cp = buildCommand<Flags, [string, string], Context>({
  docs: {
    brief: 'Copy files into a pod or out of it',
    fullDescription: [
      'One of the two places is POD:PATH. A file becomes the file named; the contents of a directory go into the one named.',
      '',
      'Examples:',
      '  hawser cp report.txt first:/data/report.txt',
      '  hawser cp first:/data/report.txt report.txt',
      '  hawser cp first:/data backup -c writer',
    ].join('\n'),
  },
  parameters: {
    flags: { ...connectFlags, container: containerFlag },
    aliases: { c: 'container', n: 'namespace' },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, placeholder: 'FROM', brief: 'A path, or POD:PATH' },
        { parse: String, placeholder: 'TO', brief: 'The other one' },
      ],
    },
  },
  async func(flags, from, to) {
    using connection = connect(this, flags)
    const [source, target] = [placeFrom(from), placeFrom(to)]
    if (source && !target) return await download(connection, flags, source, to)
    if (target && !source) return await upload(connection, flags, from, target)
    throw new UsageError('one of the two places is in a pod, the other one here', 'hawser cp FILE POD:PATH')
  },
})

/** `pod:/path`; a path of ours that holds a colon can be written as ./a:b. */
function placeFrom(text: string): Place | undefined {
  const cut = text.indexOf(':')
  if (cut <= 0 || text.startsWith('.') || text.startsWith('/')) return undefined
  const path = text.slice(cut + 1)
  if (path === '') throw new UsageError(`"${text}" names no path in the pod`, `${text}/data`)
  return { pod: podFrom(text.slice(0, cut), 'containers'), path }
}

async function upload(connection: Connection, flags: Flags, from: string, { pod, path }: Place): Promise<void> {
  const found = statSync(from, { throwIfNoEntry: false })
  if (!found) throw new Missing(`there is no ${from} here`)
  if (!found.isDirectory()) {
    const target = path.endsWith('/') ? join(path, basename(from)) : path
    return await inPod(connection, flags, pod, ['sh', '-c', 'cat >"$1"', 'sh', target], {
      stdin: createReadStream(from),
    })
  }
  const script = 'mkdir -p "$1" && exec tar -xf - -C "$1"'
  await inPod(connection, flags, pod, ['sh', '-c', script, 'sh', path], { stdin: packed(from) })
}

/** Begins with the first reader: what a process says before anybody listens is lost when it ends. */
async function* packed(directory: string): AsyncGenerator<Uint8Array, void, undefined> {
  const pack = spawn('tar', ['-cf', '-', '-C', directory, '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(pack, 'exit')
  for await (const piece of pack.stdout) yield piece as Buffer
  await checkTar(ended)
}

async function download(connection: Connection, flags: Flags, { pod, path }: Place, to: string): Promise<void> {
  const look = ['sh', '-c', '[ -d "$1" ] && exit 10; [ -e "$1" ]', 'sh', path]
  const request = { pod, verb: 'exec', container: flags.container, command: look, tty: false } as const
  const kind = await runRemote(connection, request, silent, never)
  if (kind !== 0 && kind !== directoryCode) throw new Missing(`there is no ${path} in pod ${pod}`)
  if (kind !== directoryCode) {
    const found = statSync(to, { throwIfNoEntry: false })
    const file = createWriteStream(found?.isDirectory() ? join(to, basename(path)) : to)
    await once(file, 'open')
    await inPod(connection, flags, pod, ['cat', path], { stdout: writerTo(file) })
    file.end()
    await once(file, 'close')
    return
  }
  mkdirSync(to, { recursive: true })
  // What a pod sends is not trusted: no owners, and GNU tar lets nothing out of the directory.
  const unpack = spawn('tar', ['-xf', '-', '--no-same-owner', '-C', to], { stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = once(unpack, 'exit')
  await inPod(connection, flags, pod, ['tar', '-cf', '-', '-C', path, '.'], { stdout: writerTo(unpack.stdin) })
  unpack.stdin.end()
  await checkTar(ended)
}

const directoryCode = 10
const never = new AbortController().signal
const silent: RemoteStreams = { stdout: async () => {}, stderr: async () => {} }

async function inPod(
  connection: Connection,
  { container }: Flags,
  pod: string,
  command: readonly string[],
  streams: Partial<RemoteStreams>,
): Promise<void> {
  let words = ''
  const stderr = async (bytes: Uint8Array) => void (words += Buffer.from(bytes).toString())
  const request = { pod, verb: 'exec', container, command, tty: false } as const
  const code = await runRemote(connection, request, { ...silent, ...streams, stderr }, never)
  if (code !== 0) throw new Missing(words.trim() || `${command[0]} in the pod ended with ${code}`)
}

async function checkTar(ended: Promise<unknown[]>): Promise<void> {
  const [code] = await ended
  if (code !== 0) throw new UsageError(`tar ended with ${String(code)}`)
}
