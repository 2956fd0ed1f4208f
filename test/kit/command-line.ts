// How is the command line tested? In this process with its own streams for speed, as a real process where signals and
// pipes matter; always against a server that the test started on a free port and ends again.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '@stricli/core'
import { createApplication } from '../../src/cli/app.ts'
import { createContext } from '../../src/cli/context.ts'
import { ownExitCode } from '../../src/cli/exit-codes.ts'
import { launcher, startServer as startServerProcess } from './server-process.ts'

export const isRoot = process.getuid?.() === 0

export interface Answer {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a command in this process. */
export async function hawser(args: readonly string[], env: Record<string, string> = {}): Promise<Answer> {
  const [out, err] = [collector(), collector()]
  const streams = {
    stdout: out.stream,
    stderr: err.stream,
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', HAWSER_DATA_DIR: '/nonexistent/hawser', ...env },
    exitCode: undefined as number | string | null | undefined,
  }
  await run(await createApplication(args), [...args], createContext(streams))
  return { code: ownExitCode(Number(streams.exitCode ?? 0)), out: out.text(), err: err.text() }
}

/** Runs it as a user would. */
export function spawnHawser(args: readonly string[], env: Record<string, string> = {}): Answer {
  const result = spawnSync(launcher, args, {
    env: { ...process.env, ...env },
    timeout: 60_000,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  })
  return { code: result.status ?? -1, out: result.stdout, err: result.stderr }
}

export interface Server extends AsyncDisposable {
  readonly directory: string
  readonly kubeconfig: string
  readonly env: Record<string, string>
  /** Runs a command against this server. */
  hawser(...args: string[]): Promise<Answer>
  /** Ends the process and keeps the directory. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

export async function startServer(...flags: string[]): Promise<Server> {
  const server = await startServerProcess(flags)
  const { dataDirectory: directory, kubeconfig, stop } = server
  const env = { KUBECONFIG: kubeconfig, HAWSER_DATA_DIR: directory }
  return {
    directory,
    kubeconfig,
    env,
    hawser: (...args) => hawser(args, env),
    stop,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** What differs from run to run is replaced, so that the rest can be compared as a whole. */
export function stable(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
    .replaceAll(/\b\d+(\.\d+)? (ms|s|min|h)\b/g, 'TIME')
    .replaceAll(/\b\d+(s|m|m\d+s)\b/g, 'AGE')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'WHEN')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/ +$/gm, '')
    .trim()
}

export function fileIn(directory: string, name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

function collector() {
  const pieces: Buffer[] = []
  const stream = {
    isTTY: false,
    write: (piece: string | Uint8Array) => pieces.push(Buffer.from(piece)) > 0,
    getColorDepth: () => 1,
  } as unknown as NodeJS.WriteStream // a test's stream: only these three are used
  return { stream, text: () => Buffer.concat(pieces).toString() }
}
