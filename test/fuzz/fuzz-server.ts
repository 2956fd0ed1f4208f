// How does the test ask the server under test? One request at a time, by messages to its thread.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { FuzzRequest } from './requests.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

interface Measured extends Answer {
  /** The longest stretch in which the request held the event loop, in milliseconds of processor time. */
  readonly longestMs: number
}

export interface FuzzServer extends AsyncDisposable {
  /** Code is compiled while it first runs, which no later request pays for: these go to another server in the same thread. */
  warmUp(requests: readonly FuzzRequest[]): Promise<void>
  send(request: FuzzRequest): Promise<Measured>
  /** Errors that the server itself did not expect, so far. */
  surprises(): readonly string[]
  /** Stops the caretakers, then closes the store and answers with everything that was in it. */
  close(): Promise<ReadonlyMap<string, string>>
}

export type Asked =
  | { readonly kind: 'send'; readonly request: FuzzRequest }
  | { readonly kind: 'warmUp'; readonly requests: readonly FuzzRequest[] }
  | { readonly kind: 'close' }
export type Told =
  | { readonly kind: 'answer'; readonly answer: Measured; readonly surprises: readonly string[] }
  | { readonly kind: 'done' }
  | { readonly kind: 'contents'; readonly contents: ReadonlyMap<string, string> }
  | { readonly kind: 'error'; readonly error: string }

/** Without a path the store is in memory. */
export async function startFuzzServer(options: { readonly path?: string; readonly seed: number }): Promise<FuzzServer> {
  const worker = new Worker(new URL('server-thread.ts', import.meta.url), { workerData: options })
  const ended = once(worker, 'exit').then(() => Promise.reject(new Error('the thread of the server has ended')))
  ended.catch(() => {})
  const next = async (): Promise<Told> => ((await Promise.race([once(worker, 'message'), ended])) as [Told])[0]
  const ask = async <K extends Told['kind']>(asked: Asked, kind: K): Promise<Extract<Told, { kind: K }>> => {
    worker.postMessage(asked)
    const told = await next()
    if (told.kind === kind) return told as Extract<Told, { kind: K }>
    throw new Error(told.kind === 'error' ? told.error : `an answer of kind ${told.kind}`)
  }
  await next()
  let surprises: readonly string[] = []
  return {
    warmUp: async (requests) => void (await ask({ kind: 'warmUp', requests }, 'done')),
    async send(request) {
      const told = await ask({ kind: 'send', request }, 'answer')
      surprises = told.surprises
      return told.answer
    },
    surprises: () => surprises,
    close: async () => (await ask({ kind: 'close' }, 'contents')).contents,
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  }
}
