// What do the agent and its launch server say to each other? Commands go there, messages come back; `id` names the process.
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import type { InteractiveRequest, LaunchRequest, RunRequest } from '../processes.ts'

export type LaunchCommand =
  | { readonly id: number; readonly kind: 'launch'; readonly request: Omit<LaunchRequest, 'prepare'> }
  /** To a launched process that is ready. */
  | { readonly id: number; readonly kind: 'goOn' }
  | { readonly id: number; readonly kind: 'run'; readonly request: RunRequest }
  | { readonly id: number; readonly kind: 'session'; readonly request: SessionRequest }
  | { readonly id: number; readonly kind: 'resize'; readonly size: TerminalSize }
  /** The answer took too long, or nobody wants it any more: what was started for it is killed. */
  | { readonly id: number; readonly kind: 'kill' }

export interface SessionRequest extends InteractiveRequest {
  readonly stdin: boolean
  /** The first size of its terminal. */
  readonly size: TerminalSize | undefined
}

export type SessionStream = 'stdin' | 'stdout' | 'stderr' | 'terminal'

export type LaunchMessage =
  /** Comes with the socket. */
  | { readonly id: number; readonly kind: 'stream'; readonly name: SessionStream }
  /** All streams of the session were sent; its process runs. */
  | { readonly id: number; readonly kind: 'sessionStarted' }
  /** A launched process waits to be told to go on. */
  | { readonly id: number; readonly kind: 'ready' }
  | { readonly id: number; readonly kind: 'launched'; readonly pid: number; readonly message: string }
  | { readonly id: number; readonly kind: 'failed'; readonly message: string }
  | { readonly id: number; readonly kind: 'ended'; readonly exitCode: number; readonly output: string }
  | { readonly id: number; readonly kind: 'exited' }
