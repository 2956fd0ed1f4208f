// Who forks? This small process of its own: forking the agent itself, with its hundreds of megabytes, would stop it for
// many milliseconds each time. It starts what it is told, says what descriptor 3 said, and when a child has gone.
// When the agent dies it ends too; what it started lives on.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import type { ConverseRequest, LaunchRequest, RunRequest } from '../processes.ts'
import type { Talk } from './launch-talk.ts'

export type LaunchOrder =
  | { readonly id: number; readonly kind: 'launch'; readonly request: LaunchRequest }
  | { readonly id: number; readonly kind: 'run'; readonly request: RunRequest }
  | { readonly id: number; readonly kind: 'talk'; readonly request: TalkRequest }
  | { readonly id: number; readonly kind: 'resize'; readonly size: TerminalSize }
  /** The answer took too long, or nobody wants it any more: whoever was started for it must not go on. */
  | { readonly id: number; readonly kind: 'kill' }

export interface TalkRequest extends ConverseRequest {
  readonly stdin: boolean
  /** What its terminal begins with. */
  readonly size: TerminalSize | undefined
}

export type TalkStream = 'stdin' | 'stdout' | 'stderr' | 'terminal'

export type LaunchNews =
  /** Comes with the socket. */
  | { readonly id: number; readonly kind: 'stream'; readonly name: TalkStream }
  /** All its streams were told; it runs. */
  | { readonly id: number; readonly kind: 'talking' }
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
/** Processes whose streams are open; undefined while one is being started. */
const talks = new Map<number, Talk | undefined>()

function tell(news: LaunchNews, socket?: Socket): void {
  // With a callback a failure is no crash: the agent may have died this very moment.
  if (process.connected) process.send?.(news, socket, { keepOpen: false }, () => {})
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

/** Loaded when somebody first asks: terminals need the system's library, and most nodes never see one. */
async function talk(id: number, request: TalkRequest): Promise<void> {
  talks.set(id, undefined)
  try {
    const { startTalk } = await import('./launch-talk.ts')
    // It may have been called off meanwhile.
    if (!talks.has(id)) return tell({ id, kind: 'ended', exitCode: 137, output: '' })
    const end = (exitCode: number) => {
      talks.delete(id)
      tell({ id, kind: 'ended', exitCode, output: '' })
    }
    talks.set(id, startTalk(request, { tell: (name, socket) => tell({ id, kind: 'stream', name }, socket), end }))
    tell({ id, kind: 'talking' })
  } catch (error) {
    talks.delete(id)
    tell({ id, kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}

function endTalk(id: number): void {
  const running = talks.get(id)
  if (running) running.kill()
  else talks.delete(id)
}

function killSilent(id: number): void {
  const pid = silent.get(id)
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

process.on('message', (order: LaunchOrder) => {
  try {
    if (order.kind === 'kill') {
      killSilent(order.id)
      endTalk(order.id)
    } else if (order.kind === 'talk') void talk(order.id, order.request)
    else if (order.kind === 'resize') talks.get(order.id)?.resize(order.size)
    else if (order.kind === 'run') run(order.id, order.request)
    else launch(order.id, order.request)
  } catch (error) {
    tell({ id: order.id, kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
})
process.on('disconnect', () => {
  // Whoever talked through the agent has gone with it; containers live on.
  for (const running of talks.values()) running?.kill()
  process.exit(0)
})
