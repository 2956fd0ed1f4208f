// Who makes a system call that may hang? A small pool of worker threads; a thread that hangs is left behind and replaced.
// A path on which calls hang refuses further calls at once, so that one dead server can never use up the threads.
// Threads are handed a few calls ahead, for most are over in less time than an answer needs to be heard; what waits behind
// a slow call is taken back.

import { Worker } from 'node:worker_threads'
import { HostError } from '../host-error.ts'
import { takeBackBehind } from './gate.ts'
import type { HostCalls, ThreadMemory, WorkerAnswer, WorkerRequest } from './worker.ts'

export interface CallOptions {
  /** What the call touches; calls on the same path, above or below it may hang with it. */
  readonly path: string
  readonly timeoutMs?: number
  /** Goes ahead even where earlier calls hang: lazy unmount is the way out of such a place. */
  readonly escape?: boolean
  /** A walk may take long and still be alive: no deadline, only the signal. */
  readonly walk?: boolean
  readonly onProgress?: (done: number) => void
}

export interface WorkerPool extends AsyncDisposable {
  call<K extends keyof HostCalls>(
    name: K,
    parameters: Parameters<HostCalls[K]>,
    options: CallOptions,
    signal: AbortSignal,
  ): Promise<ReturnType<HostCalls[K]>>
  /** Threads that are not (yet) back from the kernel, by path. For diagnosis. */
  hung(): readonly string[]
}

interface Thread {
  readonly worker: Worker
  readonly shared: ThreadMemory
  /** What it was handed and has not answered: the first it makes now, the others come next. */
  readonly jobs: Job[]
  /** Calls that were handed to it and go out together. */
  readonly letter: WorkerRequest[]
  /** When the first of its jobs became the first. */
  since: number
  /** Loaded and able to take calls. */
  ready: boolean
  /** Calls were taken back from behind the one it makes: it gets nothing more before it answers. */
  slow: boolean
}
interface Job {
  readonly call: string
  readonly parameters: readonly unknown[]
  /** A new one each time it is handed to a thread. */
  id: number
  readonly options: CallOptions
  settle: ((answer: WorkerAnswer | HostError) => void) | undefined
}

export interface PoolOptions {
  readonly threads?: number
  readonly maximumThreads?: number
  readonly timeoutMs?: number
}

/** When all threads have been at work for longer than this, one more is started for those who wait. */
const slowMs = 30
/** A thread at work longer than this may be hanging: another takes its place before anybody has to wait for it. */
const stuckMs = 250
/** On a busy machine every call may be slow. Beyond this many threads only calls that take very long count. */
const enoughThreads = 12
const verySlowMs = 1000
const lookEveryMs = 15
/** So many calls are handed to a thread at once. */
const handedAhead = 16
/** How long a call that was given up may take to come back before its path counts as hanging. */
const graceMs = 250

export function createWorkerPool(poolOptions: PoolOptions = {}): WorkerPool {
  const { threads: usual = 3, maximumThreads = 64, timeoutMs: usualTimeoutMs = 30_000 } = poolOptions
  const threads = new Set<Thread>()
  const queue: Job[] = []
  /** Threads inside a call that nobody waits for any more, and since when. */
  const lost = new Map<Thread, { readonly job: Job; readonly since: number }>()
  let nextId = 1
  let closed = false
  let looking: NodeJS.Timeout | undefined

  function start(): void {
    const word = () => new Int32Array(new SharedArrayBuffer(4))
    const shared: ThreadMemory = { cancelled: word(), gate: word() }
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
    const worker = new Worker(new URL(file, import.meta.url), { workerData: shared, execArgv: [], stdout: false })
    const thread: Thread = { worker, shared, jobs: [], letter: [], since: 0, ready: false, slow: false }
    // While calls wait for it, a thread that loads keeps the process alive.
    if (queue.length === 0) worker.unref()
    worker.on('message', (answer: WorkerAnswer) => receive(thread, answer))
    worker.on('error', (error) => fail(thread, error))
    worker.on('exit', () => fail(thread, undefined))
    threads.add(thread)
  }

  function dispatch(): void {
    while (queue[0] !== undefined) {
      const thread = freeFor(queue[0])
      if (thread === undefined) return void replaceSlow()
      hand(thread, queue.shift()!)
    }
  }

  /** The thread with the least before it. Nothing waits behind a walk, and a walk waits behind nothing. */
  function freeFor({ options: { walk } }: Job): Thread | undefined {
    let best: Thread | undefined
    for (const thread of threads) {
      const { ready, slow, jobs } = thread
      const room = walk === true || jobs[0]?.options.walk === true ? 1 : handedAhead
      if (ready && !slow && jobs.length < room && jobs.length < (best?.jobs.length ?? room)) best = thread
    }
    return best
  }

  function hand(thread: Thread, job: Job): void {
    job.id = nextId++
    if (thread.jobs.push(job) === 1) {
      thread.since = performance.now()
      // A worker that waits must not keep the process alive; one that works must.
      thread.worker.ref()
    }
    if (thread.letter.push({ id: job.id, call: job.call, parameters: job.parameters }) === 1)
      process.nextTick(send, thread)
    looking ??= setInterval(look, lookEveryMs).unref()
  }

  /** What is handed to a thread in one go is one message: being woken costs both sides more than most calls do. */
  function send({ worker, letter, jobs }: Thread): void {
    const calls = letter.splice(0)
    try {
      if (calls.length > 0) worker.postMessage(calls)
    } catch (error) {
      // Something that cannot go to another thread: none of them went.
      const ids = new Set(calls.map(({ id }) => id))
      const failed = jobs.filter(({ id }) => ids.has(id))
      jobs.splice(0, jobs.length, ...jobs.filter(({ id }) => !ids.has(id)))
      for (const { call, options, settle } of failed)
        settle?.(new HostError('BUG', `${call}: ${String(error)}`, { path: options.path }))
    }
  }

  /** A call that has not gone out yet goes back to those who wait. */
  function keepBack({ letter, jobs, worker }: Thread, job: Job): boolean {
    const place = letter.findIndex(({ id }) => id === job.id)
    if (place < 0) return false
    letter.splice(place, 1)
    jobs.splice(jobs.indexOf(job), 1)
    if (jobs.length === 0) worker.unref()
    queue.unshift(job)
    return true
  }

  /** What waits behind the call that this thread makes goes to others. Nothing happens if it has just gone on by itself. */
  function takeBack(thread: Thread): void {
    const [first, ...behind] = thread.jobs
    if (first === undefined || behind.length === 0 || !takeBackBehind(thread.shared.gate, first.id, nextId)) return
    thread.jobs.length = 1
    thread.slow = true
    queue.unshift(...behind)
  }

  function look(): void {
    if (queue.length === 0 && [...threads].every(({ jobs }) => jobs.length === 0)) {
      clearInterval(looking)
      looking = undefined
    }
    for (const thread of threads) if (performance.now() - thread.since >= lookEveryMs) takeBack(thread)
    dispatch()
    replaceSlow()
  }

  /**
   * Keeps as many threads that do not hang as usual. One more is started at a time and not lightly, for a start costs as
   * much as hundreds of calls, and calls are slow above all when the machine is busy.
   */
  function replaceSlow(): void {
    const all = [...threads]
    const now = performance.now()
    const within = (limitMs: number) =>
      all.filter(({ jobs, since }) => jobs.length === 0 || now - since < limitMs).length
    const few = all.length < enoughThreads
    const missing = within(few ? stuckMs : verySlowMs) < usual
    const waited = few && queue.length > 0 && within(slowMs) === 0
    const loading = all.some(({ ready }) => !ready)
    if (!closed && !loading && (missing || waited) && all.length < maximumThreads) start()
  }

  function receive(thread: Thread, answer: WorkerAnswer): void {
    if (answer.kind === 'ready') thread.ready = true
    else {
      const [job] = thread.jobs
      if (job === undefined || job.id !== answer.id) return
      if (answer.kind === 'progress') return job.options.onProgress?.(answer.done)
      thread.jobs.shift()
      thread.since = performance.now()
      thread.slow = false
      if (lost.get(thread)?.job === job) lost.delete(thread)
      if (answer.kind === 'done' && job.settle === undefined) releaseForgotten(job, answer.value)
      job.settle?.(answer)
    }
    if (thread.jobs.length === 0) thread.worker.unref()
    const spare = threads.size - lost.size > enoughThreads && queue.length === 0
    if ((spare || closed) && thread.jobs.length === 0) void thread.worker.terminate()
    else dispatch()
  }

  /** Nobody waits for this descriptor any more. */
  function releaseForgotten({ call }: Job, value: unknown): void {
    if (call !== 'openBeneath') return
    const { descriptor } = value as { descriptor: number }
    enqueue('closeDescriptor', [descriptor], { path: '' }, undefined)
  }

  function fail(thread: Thread, error: unknown): void {
    threads.delete(thread)
    lost.delete(thread)
    const reason = error instanceof Error ? error.message : 'a host worker thread ended'
    for (const { call, options, settle } of thread.jobs.splice(0))
      settle?.(new HostError('WORKER', `${call}: ${reason}`, { path: options.path, certain: false }))
    if (!closed) dispatch()
  }

  function enqueue(call: string, parameters: Job['parameters'], options: CallOptions, settle: Job['settle']): Job {
    const job: Job = { id: 0, call, parameters, options, settle }
    queue.push(job)
    dispatch()
    return job
  }

  function abandon(job: Job, code: 'TIMEOUT' | 'ABORTED'): HostError {
    job.settle = undefined
    const { path } = job.options
    const thread = [...threads].find(({ jobs }) => jobs.includes(job))
    if (thread !== undefined && !keepBack(thread, job)) takeBack(thread)
    const waiting = queue.indexOf(job)
    if (waiting >= 0) {
      queue.splice(waiting, 1)
      dispatch()
      return new HostError(code, `${job.call} ${path}: given up before it began`, { path })
    }
    if (thread !== undefined) {
      Atomics.store(thread.shared.cancelled, 0, job.id)
      lost.set(thread, { job, since: performance.now() })
      dispatch()
    }
    const text = code === 'TIMEOUT' ? 'the system did not answer in time' : 'given up while it was under way'
    return new HostError(code, `${job.call} ${path}: ${text}`, { path, certain: false })
  }

  const blockerOf = (path: string) => [...lost.values()].find(({ job }) => touches(job.options.path, path))

  const call: WorkerPool['call'] = (name, parameters, options, signal) => {
    const { path } = options
    if (closed) return Promise.reject(new HostError('CLOSED', 'the host is closed', { path }))
    if (signal.aborted)
      return Promise.reject(
        new HostError('ABORTED', `${name} ${path}: given up before it began`, { path, cause: signal.reason }),
      )
    const blocker = options.escape === true ? undefined : blockerOf(path)
    if (blocker !== undefined) {
      // A call that was given up a moment ago is most likely still on its way back: wait for it before calling it hung.
      if (performance.now() - blocker.since < graceMs)
        return shortly().then(() => call(name, parameters, options, signal))
      const text = `${name} ${path}: an earlier ${blocker.job.call} on ${blocker.job.options.path} still hangs`
      return Promise.reject(new HostError('HUNG', text, { path }))
    }
    // The first call starts the threads: a control plane without a node never pays for them.
    if (threads.size === 0) for (let count = 0; count < usual; count += 1) start()
    return new Promise((resolve, reject) => {
      const finish = (answer: WorkerAnswer | HostError): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        if (answer instanceof HostError) reject(answer)
        else if (answer.kind === 'done') resolve(answer.value as ReturnType<HostCalls[typeof name]>)
        else if (answer.kind === 'failed') reject(toError(answer, path))
      }
      const job = enqueue(name, parameters, options, finish)
      const onAbort = (): void => finish(abandon(job, 'ABORTED'))
      const timer =
        options.walk === true
          ? undefined
          : setTimeout(() => finish(abandon(job, 'TIMEOUT')), options.timeoutMs ?? usualTimeoutMs)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** A thread that still loads its native library takes the whole process down when it is terminated: it may load first. */
  function end(thread: Thread): Promise<unknown> {
    if (thread.ready) return thread.worker.terminate()
    thread.worker.ref()
    return new Promise((resolve) => thread.worker.once('exit', resolve))
  }

  return {
    call,
    hung: () => [...lost.values()].map(({ job }) => job.options.path),

    async [Symbol.asyncDispose]() {
      closed = true
      for (const thread of threads) takeBack(thread)
      for (const job of queue.splice(0))
        job.settle?.(new HostError('CLOSED', 'the host is closed', { path: job.options.path }))
      // A thread inside the kernel cannot be ended; waiting for it would hang us too, now or when the process ends.
      const stuck = [...threads].filter(({ jobs }) => jobs.length > 0)
      for (const { worker } of stuck) worker.unref()
      if (stuck.length > 0) await leaveThreadsBehind(() => stuck.some((thread) => threads.has(thread)))
      await Promise.all([...threads].filter(({ jobs }) => jobs.length === 0).map(end))
    },
  }
}

/** Node waits for all its threads before the process ends; those in the kernel may never come. */
async function leaveThreadsBehind(stillThere: () => boolean): Promise<void> {
  const { exitNow } = await import('./libc.ts')
  process.once('exit', (code) => stillThere() && exitNow(code))
}

function shortly(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 10))
}

/** Is one path the other, or above it? Hanging is a matter of the mount, and mounts are trees. */
function touches(hung: string, path: string): boolean {
  if (hung === '' || path === '') return false
  return hung === path || path.startsWith(`${hung}/`)
}

function toError(answer: Extract<WorkerAnswer, { kind: 'failed' }>, path: string): HostError {
  return new HostError(answer.code, answer.message, { path: answer.path ?? path, certain: answer.code !== 'BUG' })
}
