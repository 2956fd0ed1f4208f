// Who forks? This small process of its own: forking the agent itself, with its hundreds of megabytes, would stop it for
// many milliseconds each time. It starts what it is told, says what descriptor 3 said, and when a child has gone.
// When the agent dies it ends too; what it started lives on.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { LaunchRequest, RunRequest } from '../processes.ts'

export type LaunchOrder =
  | { readonly id: number; readonly kind: 'launch'; readonly request: LaunchRequest }
  | { readonly id: number; readonly kind: 'run'; readonly request: RunRequest }
  /** The answer took too long: whoever was started for it must not go on. */
  | { readonly id: number; readonly kind: 'kill' }

export type LaunchNews =
  | { readonly id: number; readonly kind: 'launched'; readonly pid: number; readonly message: string }
  | { readonly id: number; readonly kind: 'failed'; readonly message: string }
  | { readonly id: number; readonly kind: 'ended'; readonly exitCode: number; readonly output: string }
  | { readonly id: number; readonly kind: 'exited' }

const messageLimit = 16_384
const outputLimit = 10_240
/** What is still written when a process has gone: its children may hold the pipe for ever. */
const lastWordsMs = 100
/** Children whose answer is still waited for. */
const silent = new Map<number, number>()

function tell(news: LaunchNews): void {
  // With a callback a failure is no crash: the agent may have died this very moment.
  if (process.connected) process.send?.(news, () => {})
}

function launch(id: number, request: LaunchRequest): void {
  const [program, ...args] = request.argv
  const output = openSync(request.outputFile, 'a', 0o640)
  try {
    const child = spawn(program, args, {
      detached: true,
      env: { ...request.env },
      cwd: '/',
      stdio: ['ignore', output, output, 'pipe'],
    })
    child.once('error', (error) => tell({ id, kind: 'failed', message: error.message }))
    child.once('exit', () => {
      silent.delete(id)
      tell({ id, kind: 'exited' })
    })
    if (child.pid !== undefined) silent.set(id, child.pid)
    const pipe = child.stdio[3] as Readable // a pipe, as asked for
    let text = ''
    const end = () => {
      pipe.removeAllListeners()
      pipe.on('error', () => {})
      pipe.destroy()
      silent.delete(id)
      if (child.pid !== undefined) tell({ id, kind: 'launched', pid: child.pid, message: text.slice(0, messageLimit) })
    }
    pipe.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      if (text.startsWith('started\n') || text.length > messageLimit) end()
    })
    pipe.on('end', end)
    pipe.on('error', end)
  } finally {
    closeSync(output)
  }
}

function run(id: number, request: RunRequest): void {
  const [program, ...args] = request.argv
  const child = spawn(program, args, {
    detached: true,
    env: { ...request.env },
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (child.pid !== undefined) silent.set(id, child.pid)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      if (output.length < outputLimit) output += chunk.toString('utf8')
    })
  }
  const end = (exitCode: number) => {
    if (!silent.delete(id)) return
    child.stdout.destroy()
    child.stderr.destroy()
    tell({ id, kind: 'ended', exitCode, output: output.slice(0, outputLimit) })
  }
  child.once('error', (error) => tell({ id, kind: 'failed', message: error.message }))
  child.once('close', (code) => end(code ?? 137))
  child.once('exit', (code) => setTimeout(() => end(code ?? 137), lastWordsMs))
}

function killSilent(id: number): void {
  const pid = silent.get(id)
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

process.on('message', (order: LaunchOrder) => {
  try {
    if (order.kind === 'kill') killSilent(order.id)
    else if (order.kind === 'run') run(order.id, order.request)
    else launch(order.id, order.request)
  } catch (error) {
    tell({ id: order.id, kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
})
process.on('disconnect', () => process.exit(0))
