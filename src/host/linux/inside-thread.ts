// What does a thread do that starts commands inside containers? It gives up all rights that its containers do not have, for good.
// For each command it enters the container as its user and forks there: no program runs inside with more than the container's rights.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { errorText } from '../../telemetry/error-text.ts'
import type { ProcessIdentity, ProcessRights } from '../processes.ts'
import { asContainer, limitThread } from './inside-calls.ts'

export interface InsideStart {
  readonly id: number
  readonly process: ProcessIdentity
  readonly rights: ProcessRights
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Standard input, output and error, as descriptors. */
  readonly stdio: readonly [number, number, number]
}

export type InsideAnswer =
  | { readonly id: number; readonly kind: 'started'; readonly pid: number }
  | { readonly id: number; readonly kind: 'failed'; readonly message: string }
  | { readonly id: number; readonly kind: 'exited'; readonly exitCode: number }

if (parentPort) serve(parentPort)

function serve(port: MessagePort): void {
  limitThread(workerData as ProcessRights)
  const post = (answer: InsideAnswer) => port.postMessage(answer)
  port.on('message', (start: InsideStart) => {
    try {
      // Every path is one of the container by then: the descriptors are open, and a shell is named by its whole path.
      const child = asContainer(
        start.process,
        start.rights,
        () => begin(start),
        () => process.exit(1),
      )
      child.once('error', () => {}) // a program that cannot be started has no pid
      if (child.pid === undefined) throw new Error(`${start.argv[0]} cannot be started`)
      child.once('exit', (code, signal) =>
        post({ id: start.id, kind: 'exited', exitCode: code ?? 128 + (signal ? constants.signals[signal] : 9) }),
      )
      post({ id: start.id, kind: 'started', pid: child.pid })
    } catch (error) {
      post({ id: start.id, kind: 'failed', message: errorText(error) })
    }
  })
}

function begin({ argv: [program = '', ...args], env, stdio }: InsideStart) {
  return spawn(program, args, { detached: true, env: { ...env }, cwd: '/', stdio: [...stdio] })
}
