// A `hawser` process that runs on while a test listens to what it says.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { launcher } from './server-process.ts'

export interface Speaking extends AsyncDisposable {
  readonly child: ChildProcess
  /** Both streams, so far. */
  text(): string
  /** Fails after half a minute, or when the process has ended without it. */
  says(what: RegExp): Promise<void>
  /** Sends the signal, and waits for the end. */
  end(signal: NodeJS.Signals): Promise<void>
}

export function speaking(args: readonly string[], env: Readonly<Record<string, string>> = {}): Speaking {
  const child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (text += piece.toString()))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const end = async (signal: NodeJS.Signals) => {
    if (hasEnded()) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  return {
    child,
    text: () => text,
    async says(what) {
      for (let tries = 0; tries < 600 && !what.test(text) && !hasEnded(); tries++)
        await new Promise((resolve) => setTimeout(resolve, 50))
      assert.match(text, what)
    },
    end,
    [Symbol.asyncDispose]: () => end('SIGTERM'),
  }
}
