// `hawser cp`: files into a pod and out of it. One file needs nothing but a shell there, a directory needs tar there (and here, to
// send one). What a pod sends is not trusted: unpack.ts.
import { spawn } from 'node:child_process'
import { createReadStream, mkdirSync, statSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { once } from 'node:events'
import { basename, join } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { createByteQueue } from '../../streams/byte-stream.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Failed, Missing } from '../errors.ts'
import type { RemoteStreams } from '../remote.ts'
import { runRemote } from '../remote.ts'
import { podFrom } from '../resources.ts'
import { unpack } from '../unpack.ts'
import { containerFlag } from './exec.ts'

interface Flags extends ConnectFlags {
  readonly container?: string
}

/** Where the pods are, and which of their containers. */
interface Remote {
  readonly connection: Connection
  readonly container: string | undefined
}

interface Place {
  readonly pod: string
  readonly path: string
}

export const cp = buildCommand<Flags, [string, string], Context>({
  docs: {
    brief: 'Copy files into a pod or out of it',
    fullDescription: [
      'One of the two paths is POD:PATH. A file is copied to the named file, the contents of a directory into the named directory.',
      'From a pod, files, directories and links inside them are copied; devices and links to other places are skipped.',
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
        { parse: String, placeholder: 'TO', brief: 'A path, or POD:PATH' },
      ],
    },
  },
  async func(flags, from, to) {
    using connection = connect(this, flags)
    const [source, target] = [placeFrom(from), placeFrom(to)]
    const remote: Remote = { connection, container: flags.container }
    const note = (text: string) => this.note(text)
    if (source && !target) return await download(remote, source, to, note)
    if (target && !source) return await upload(remote, from, target)
    throw new UsageError('one path must be in a pod, the other one on this machine', 'hawser cp FILE POD:PATH')
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

async function upload(remote: Remote, from: string, place: Place): Promise<void> {
  const { path } = place
  const found = statSync(from, { throwIfNoEntry: false })
  if (!found) throw new Missing(`there is no ${from} here`)
  const what = `copying ${from} to ${path}`
  if (!found.isDirectory()) {
    const target = path.endsWith('/') ? join(path, basename(from)) : path
    const stdin = createReadStream(from)
    return await inPod(remote, place, what, ['sh', '-c', 'cat >"$1"', 'sh', target], { stdin })
  }
  const script = 'mkdir -p -- "$1" && exec tar -xf - -C "$1"'
  await inPod(remote, place, what, ['sh', '-c', script, 'sh', path], { stdin: packed(from) })
}

/** Begins with the first reader: what a process says before anybody listens is lost when it ends. */
async function* packed(directory: string): AsyncGenerator<Uint8Array, void, undefined> {
  const pack = spawn('tar', ['-cf', '-', '-C', directory, '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(pack, 'exit').catch((error: Error) => [error.message])
  try {
    for await (const piece of pack.stdout) yield piece as Buffer
    const [code] = await ended
    if (code !== 0) throw new Failed(`packing ${directory} failed: tar ended with ${String(code)}`)
  } finally {
    pack.kill()
  }
}

async function download(remote: Remote, place: Place, to: string, note: (text: string) => void): Promise<void> {
  const { pod, path } = place
  const look = ['sh', '-c', '[ -d "$1" ] && exit 10; [ -e "$1" ] || exit 11', 'sh', path]
  const { code, words } = await run(remote, pod, look, {})
  if (code === codes.missing) throw new Missing(`there is no ${path} in pod ${pod}`)
  if (code === 0) return await downloadFile(remote, place, to)
  if (code !== codes.directory) throw failure(`looking for ${path}`, pod, code, words)
  mkdirSync(to, { recursive: true })
  await downloadDirectory(remote, place, to, note)
}

const codes = { directory: 10, missing: 11 } as const

/** Our file is touched when the first bytes are there: what cannot be read there destroys nothing here. */
async function downloadFile(remote: Remote, place: Place, to: string): Promise<void> {
  const found = statSync(to, { throwIfNoEntry: false })
  const name = found?.isDirectory() ? join(to, basename(place.path)) : to
  let file: FileHandle | undefined
  const write = async (bytes: Uint8Array) => {
    file ??= await open(name, 'w')
    await file.writeFile(bytes)
  }
  const stdout = async (bytes: Uint8Array) => (bytes.length > 0 ? await write(bytes) : undefined)
  try {
    await inPod(remote, place, `copying ${place.path} to ${name}`, ['cat', '--', place.path], { stdout })
    await write(Buffer.alloc(0))
  } catch (error) {
    if (!file || !(error instanceof Error)) throw error
    throw new Failed(`${error.message}; ${name} is incomplete`)
  } finally {
    await file?.close()
  }
}

async function downloadDirectory(remote: Remote, place: Place, to: string, note: (text: string) => void) {
  const archive = createByteQueue()
  let problem: Error | undefined
  const unpacking = unpack(archive, to, note).catch((error: Error) => {
    problem = error
    archive.discard()
  })
  const stdout = async (bytes: Uint8Array) => {
    if (problem) throw problem
    await archive.write(bytes)
  }
  const what = `copying ${place.path} to ${to}`
  try {
    await inPod(remote, place, what, ['tar', '-cf', '-', '-C', place.path, '.'], { stdout })
    archive.end()
  } catch (error) {
    archive.fail(error as Error)
    await unpacking
    throw error
  }
  await unpacking
  if (problem) throw problem
}

/** Fails in the words of the command, if it has any. */
async function inPod(
  remote: Remote,
  { pod }: Place,
  what: string,
  command: readonly string[],
  streams: Partial<RemoteStreams>,
): Promise<void> {
  const { code, words } = await run(remote, pod, command, streams)
  if (code !== 0) throw failure(what, pod, code, words)
}

const failure = (what: string, pod: string, code: number, words: string) =>
  new Failed(`${what} in pod ${pod} failed: ${words || `the command there ended with ${code}`}`)

const longestWords = 4_096

async function run(
  { connection, container }: Remote,
  pod: string,
  command: readonly string[],
  streams: Partial<RemoteStreams>,
): Promise<{ readonly code: number; readonly words: string }> {
  let words = ''
  const stderr = async (bytes: Uint8Array) => {
    if (words.length < longestWords) words += Buffer.from(bytes).toString()
  }
  const request = { pod, verb: 'exec', container, command, tty: false } as const
  const all = { stdout: async () => {}, ...streams, stderr }
  const code = await runRemote(connection, request, all, new AbortController().signal)
  return { code, words: words.trim().slice(0, longestWords) }
}
