// How is a program run? Without a shell, in its own process group, with a deadline, and with bounded output.
// A program that outlives its deadline is killed together with its children.

import { spawn } from 'node:child_process'
import type { Command, CommandResult } from '../host.ts'
import { HostError } from '../host-error.ts'
import { distrustOf, trustedUsers } from './trusted-path.ts'

const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export interface RunOptions {
  /** Where programs are looked for; PATH of our own process unless told. Places that others can write to do not count. */
  readonly searchPath?: string
}

/** Directories in which nobody else can put a program of the name that we look for. Relative ones are left out, too. */
export function searchPathOf({ searchPath }: RunOptions = {}): string {
  const given = searchPath ?? process.env['PATH'] ?? defaultPath
  const trusted = trustedUsers()
  const kept = given.split(':').filter((directory) => directory.startsWith('/') && !distrustOf(directory, trusted))
  return kept.join(':') || defaultPath
}

export function createRun(options: RunOptions = {}) {
  const searchPath = searchPathOf(options)
  return (command: Command, signal: AbortSignal): Promise<CommandResult> => runCommand(command, searchPath, signal)
}

/** The command line as it may be shown to people. */
function shownCommand(command: Command): string {
  return command.argv
    .map((word, index) => (command.secretArguments?.includes(index) === true ? '<masked>' : word))
    .join(' ')
}

function runCommand(command: Command, searchPath: string, signal: AbortSignal): Promise<CommandResult> {
  const [program, ...words] = command.argv
  const shown = shownCommand(command)
  if (signal.aborted)
    return Promise.reject(new HostError('ABORTED', `${shown}: given up before it began`, { cause: signal.reason }))
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, {
      detached: true,
      env: { PATH: searchPath, LC_ALL: 'C', ...command.env },
      stdio: [command.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      cwd: '/',
    })
    const limit = command.maxOutputBytes ?? 1_048_576
    const stdout = collect(child.stdout, limit)
    const stderr = collect(child.stderr, limit)
    let settled = false
    const settle = (finish: () => void): void => {
      if (settled) return
      settled = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      finish()
    }
    const giveUp = (code: string, text: string): void => {
      killGroup(child.pid)
      // Killed is not yet gone: a child in an uninterruptible call stays behind, and neither we nor our end wait for it.
      child.unref()
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
      settle(() => reject(new HostError(code, `${shown}: ${text}`, { certain: false })))
    }
    const onAbort = (): void => giveUp('ABORTED', 'given up while it was running')
    const timer = setTimeout(() => giveUp('TIMEOUT', `did not end within ${command.timeoutMs} ms`), command.timeoutMs)
    signal.addEventListener('abort', onAbort, { once: true })
    child.on('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'ENOENT' ? 'NOPROGRAM' : (error.code ?? 'CHILD')
      settle(() => reject(new HostError(code, `${shown}: ${missingOr(error, program)}`, { cause: error })))
    })
    child.on('close', (exitCode, endSignal) => {
      settle(() => resolve({ exitCode: exitCode ?? signalExitCode(endSignal), stdout: stdout(), stderr: stderr() }))
    })
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(command.input)
  })
}

function missingOr(error: NodeJS.ErrnoException, program: string): string {
  return error.code === 'ENOENT' ? `exec: "${program}": executable file not found in $PATH` : error.message
}

/** As a shell says it: 128 and the signal's number; 137 for what we killed. */
function signalExitCode(signal: NodeJS.Signals | null): number {
  return signal === 'SIGTERM' ? 143 : signal === 'SIGSEGV' ? 139 : 137
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It ended meanwhile.
  }
}

function collect(stream: NodeJS.ReadableStream | null, limit: number): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream?.on('data', (chunk: Buffer) => {
    if (size >= limit) return
    const part = chunk.subarray(0, limit - size)
    chunks.push(part)
    size += part.length
  })
  return () => Buffer.concat(chunks).toString()
}
