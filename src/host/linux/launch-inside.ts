// How does the launch server start a command inside a container? Through a thread that has no more rights than the container; one
// thread for each set of capabilities, started when it is first needed.
import { Worker } from 'node:worker_threads'
import type { InsideAnswer, InsideStart } from './inside-thread.ts'

interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, Waiting>
}

interface Waiting {
  started(pid: number): void
  failed(error: Error): void
  exited(exitCode: number): void
}

export interface InsideStarter {
  /** Answers the pid; `onExit` is called once, when the process has gone. */
  start(request: Omit<InsideStart, 'id'>, onExit: (exitCode: number) => void): Promise<number>
}

export function createInsideStarter(): InsideStarter {
  const threads = new Map<string, Thread>()
  let nextId = 1
  return {
    start(request, onExit) {
      const id = nextId++
      const { capabilities, noNewPrivileges } = request.rights
      const key = JSON.stringify([capabilities ? [...capabilities].sort() : 'all', noNewPrivileges === true])
      let thread = threads.get(key)
      if (!thread) {
        thread = startThread(request.rights, () => void threads.delete(key))
        threads.set(key, thread)
      }
      const { worker, waiting } = thread
      return new Promise((resolve, reject) => {
        waiting.set(id, { started: resolve, failed: reject, exited: onExit })
        worker.postMessage({ ...request, id } satisfies InsideStart)
      })
    },
  }
}

function startThread(rights: InsideStart['rights'], onEnd: () => void): Thread {
  const file = import.meta.url.endsWith('.ts') ? './inside-thread.ts' : './inside-thread.js'
  const worker = new Worker(new URL(file, import.meta.url), { workerData: rights, execArgv: [], stdout: false })
  const waiting = new Map<number, Waiting>()
  let cause = new Error('the thread that starts commands has ended')
  worker.on('error', (error: Error) => void (cause = error))
  worker.on('exit', () => {
    onEnd()
    // Nobody hears of the end of its children any more.
    for (const { failed, exited } of waiting.values()) {
      failed(cause)
      exited(137)
    }
  })
  worker.on('message', (answer: InsideAnswer) => {
    const entry = waiting.get(answer.id)
    if (answer.kind !== 'started') waiting.delete(answer.id)
    if (answer.kind === 'started') entry?.started(answer.pid)
    else if (answer.kind === 'failed') entry?.failed(new Error(answer.message))
    else entry?.exited(answer.exitCode)
  })
  return { worker, waiting }
}
