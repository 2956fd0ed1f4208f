// A real `hawser up` for tests: its own directory, a free port, and nothing left when it is disposed.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeEverything } from '../../src/cli/demo/proof.ts'

export const repository = join(import.meta.dirname, '../..')
export const launcher = join(repository, 'bin/hawser')

export interface ServerProcess extends AsyncDisposable {
  readonly url: string
  readonly token: string
  readonly dataDirectory: string
  readonly kubeconfig: string
  readonly pid: number
  /** What the process wrote so far, both streams. */
  output(): string
  /** Ends the process with this signal and waits. */
  stop(signal?: NodeJS.Signals): Promise<void>
  /** The same directory, a new process. */
  restart(): Promise<void>
}

export async function startServer(
  args: readonly string[] = ['--bare'],
  options: { dataDirectory?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<ServerProcess> {
  const dataDirectory = options.dataDirectory ?? realpathSync(mkdtempSync(join(tmpdir(), 'hawser-test-')))
  // The first process gets a free port from the system; the next ones listen there again.
  let port = '0'
  let text = ''
  let child: ChildProcess
  const start = async () => {
    child = spawn(launcher, ['up', '--data-dir', dataDirectory, '--listen', `127.0.0.1:${port}`, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
    })
    const ready = Promise.withResolvers<void>()
    const onOutput = (chunk: Buffer) => {
      text += chunk.toString()
      // One write holds the address and the kubeconfig; it may come in two pieces.
      const [, at] = /serves https:\/\/[\d.]+:(\d+)[^]*KUBECONFIG=/.exec(text) ?? []
      if (at === undefined) return
      port = at
      ready.resolve()
    }
    child.stdout!.on('data', onOutput)
    child.stderr!.on('data', onOutput)
    child.once('exit', (code) => ready.reject(new Error(`hawser up ended with ${code}:\n${text}`)))
    await ready.promise
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  await start()
  return {
    url: `https://127.0.0.1:${port}`,
    token: readFileSync(join(dataDirectory, 'admin.token'), 'utf8').trim(),
    dataDirectory,
    kubeconfig: join(dataDirectory, 'kubeconfig'),
    get pid() {
      return child.pid!
    },
    output: () => text,
    stop,
    async restart() {
      await stop()
      text = ''
      await start()
    },
    async [Symbol.asyncDispose]() {
      await stop()
      if (options.dataDirectory === undefined) await removeEverything(dataDirectory)
    },
  }
}

/** An input that stays open and silent: script(1) would type its end into the terminal, at some moment or other. */
export const nobodyTypes = Symbol('nobody types')

/** Runs a program to its end; resolves with its code and all it printed. */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; input?: string | typeof nobodyTypes } = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, [...args], {
    cwd: options.cwd ?? repository,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  child.stdin.on('error', () => {})
  if (options.input !== nobodyTypes) child.stdin.end(options.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}
