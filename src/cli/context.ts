// What does a command see of the world? Streams, the environment, and how to end; tests hand in their own.
import { fstatSync } from 'node:fs'
import type { CommandContext, StricliProcess } from '@stricli/core'
import type { Client } from '../client/client.ts'
import type { ExitCode } from './exit-codes.ts'
import { terminalText } from './terminal-text.ts'

export interface Context extends CommandContext {
  readonly process: StricliProcess & { readonly env: Readonly<Partial<Record<string, string>>> }
  /** Colours only on a terminal, and never when NO_COLOR is set. */
  readonly color: boolean
  readonly interactive: boolean
  /** A server that is not reached by a kubeconfig; for tests that run commands in their own process. */
  readonly server?: { readonly client: Client; readonly namespace: string; now(): number }
  /** While a shell completes: the server and namespace that were typed already. */
  readonly typed?: { readonly kubeconfig?: string; readonly namespace?: string }
  print(text: string): void
  /** To stdout as it is: the output of somebody else's program. */
  write(bytes: Uint8Array): void
  /** To stderr: progress, warnings, hints. */
  note(text: string): void
  fail(code: ExitCode): void
  /** Stdin if somebody sends something through it: a pipe or a file, not a terminal and not /dev/null. */
  pipedInput(): NodeJS.ReadableStream | undefined
  /** Ends with the exit code of a program that was run for the user. */
  exitLike(code: number): void
}

interface Streams {
  readonly env: Readonly<Partial<Record<string, string>>>
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  /** Absent: there is no input. */
  readonly stdin?: NodeJS.ReadStream
  exitCode?: number | string | null | undefined
}

export function createContext(streams: Streams): Context {
  const color = streams.stdout.isTTY && streams.env['NO_COLOR'] === undefined
  const line = (text: string) => terminalText(text.endsWith('\n') ? text : `${text}\n`, color)
  return {
    process: streams as Context['process'],
    color,
    interactive: streams.stdout.isTTY,
    print: (text) => void streams.stdout.write(line(text)),
    write: (bytes) => void streams.stdout.write(bytes),
    note: (text) => void streams.stderr.write(line(text)),
    fail: (code) => void (streams.exitCode = code),
    pipedInput: () => (isPiped(streams) ? streams.stdin : undefined),
    exitLike: (code) => void (streams.exitCode = code),
  }
}

function isPiped({ stdin }: Streams): boolean {
  if (!stdin || stdin.isTTY) return false
  const found = fstatSync(0)
  return found.isFIFO() || found.isFile() || found.isSocket()
}
