// Who makes a system call that may hang? A small pool of worker threads; a thread that hangs is left behind and replaced.
// A path on which calls hang refuses further calls at once, so that one dead server can never use up the threads.

import { Worker } from 'node:worker_threads'
import { HostError } from '../host-error.ts'
import type { HostCalls, WorkerAnswer } from './worker.ts'

interface CallOptions {
  /** What the call touches; calls on the same path, above or below it may hang with it. */
  readonly path: string
  readonly timeoutMs?: number
  /** Goes ahead even where earlier calls hang: a lazy unmount is how such a place is cleaned up. */
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
  /** Paths of calls that nobody waits for any more and that have not returned from the kernel. For diagnosis. */
  hung(): readonly string[]
}

export interface PoolOptions {
  readonly threads?: number
  readonly maximumThreads?: number
  readonly timeoutMs?: number
}

interface Thread {
  readonly worker: Worker
  /** One word of shared memory: the id of a call that nobody waits for any more. Long walks read it. */
  readonly cancelled: Int32Array
  job: Job | undefined
  /** When the job was handed over. */
  since: number
  /** Loaded and able to take calls. */
  ready: boolean
}

interface Job {
  readonly id: number
  readonly call: string
  readonly parameters: readonly unknown[]
  readonly options: CallOptions
  settle: ((answer: WorkerAnswer | HostError) => void) | undefined
}

interface Pool {
  readonly options: Required<PoolOptions>
  readonly threads: Set<Thread>
  /** Calls that wait for a free thread. */
  readonly queue: Job[]
  /** Threads inside a call that nobody waits for any more, and since when. */
  readonly lost: Map<Thread, { readonly job: Job; readonly since: number }>
  nextId: number
  closed: boolean
  /** Runs while calls are under way: finds threads that take long. */
  timer: NodeJS.Timeout | undefined
}

/** When all threads have been at work for longer than this, one more is started for the calls that wait. */
const slowMs = 30
/** A thread at work longer than this may be hanging: another takes its place before a call has to wait for it. */
const stuckMs = 250
/** On a busy machine every call may be slow. Beyond this many threads only calls that take very long count. */
const enoughThreads = 12
const verySlowMs = 1000
const checkEveryMs = 15
/** How long a call that was given up may take to come back before its path counts as hanging. */
const graceMs = 250

export function createWorkerPool(options: PoolOptions = {}): WorkerPool {
  const pool: Pool = {
    options: { threads: 3, maximumThreads: 64, timeoutMs: 30_000, ...options },
    threads: new Set(),
    queue: [],
    lost: new Map(),
    nextId: 1,
    closed: false,
    timer: undefined,
  }
  const call: WorkerPool['call'] = async (name, parameters, options, signal) => {
    while (mustWait(pool, name, options, signal)) await new Promise((resolve) => setTimeout(resolve, 10))
    // The first call starts the threads: a control plane without a node never pays for them.
    if (pool.threads.size === 0) for (let count = 0; count < pool.options.threads; count += 1) startThread(pool)
    return (await runJob(pool, name, parameters, options, signal)) as ReturnType<HostCalls[typeof name]>
  }
  return {
    call,
    hung: () => [...pool.lost.values()].map(({ job }) => job.options.path),
    [Symbol.asyncDispose]: () => closePool(pool),
  }
}

// ---- calls ---------------------------------------------------------------------------------------------------------

/**
 * Throws when the call must not begin: the pool is closed, the caller has given up, or the path hangs. A call that was
 * given up a moment ago is most likely still on its way back: calls on its path wait before it counts as hung.
 */
function mustWait(pool: Pool, name: string, options: CallOptions, signal: AbortSignal): boolean {
  const { path } = options
  if (pool.closed) throw new HostError('CLOSED', 'the host is closed', { path })
  if (signal.aborted)
    throw new HostError('ABORTED', `${name} ${path}: given up before it began`, { path, cause: signal.reason })
  if (options.escape === true) return false
  const blocker = [...pool.lost.values()].find(({ job }) => isSameOrBelow(path, job.options.path))
  if (blocker === undefined) return false
  if (performance.now() - blocker.since < graceMs) return true
  const text = `${name} ${path}: an earlier ${blocker.job.call} on ${blocker.job.options.path} still hangs`
  throw new HostError('HUNG', text, { path })
}

function runJob(
  pool: Pool,
  call: string,
  parameters: readonly unknown[],
  options: CallOptions,
  signal: AbortSignal,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const finish = (answer: WorkerAnswer | HostError): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      if (answer instanceof HostError) reject(answer)
      else if (answer.kind === 'done') resolve(answer.value)
      else if (answer.kind === 'failed') reject(toError(answer, options.path))
    }
    const onAbort = (): void => finish(abandon(pool, job, 'ABORTED'))
    const onTimeout = (): void => finish(abandon(pool, job, 'TIMEOUT'))
    const timeoutMs = options.timeoutMs ?? pool.options.timeoutMs
    const timer = options.walk === true ? undefined : setTimeout(onTimeout, timeoutMs)
    signal.addEventListener('abort', onAbort, { once: true })
    const job = enqueue(pool, call, parameters, options, finish)
  })
}

function enqueue(
  pool: Pool,
  call: string,
  parameters: Job['parameters'],
  options: CallOptions,
  settle: Job['settle'],
): Job {
  const job: Job = { id: pool.nextId++, call, parameters, options, settle }
  pool.queue.push(job)
  dispatch(pool)
  return job
}

/** Nobody waits for this call any more. One that still waits for a thread is never made. */
function abandon(pool: Pool, job: Job, code: 'TIMEOUT' | 'ABORTED'): HostError {
  job.settle = undefined
  const { path } = job.options
  const waiting = pool.queue.indexOf(job)
  if (waiting >= 0) {
    pool.queue.splice(waiting, 1)
    return new HostError(code, `${job.call} ${path}: given up before it began`, { path })
  }
  const thread = [...pool.threads].find((one) => one.job === job)
  if (thread !== undefined) {
    Atomics.store(thread.cancelled, 0, job.id)
    pool.lost.set(thread, { job, since: performance.now() })
  }
  const text = code === 'TIMEOUT' ? 'the system did not answer in time' : 'given up while it was under way'
  return new HostError(code, `${job.call} ${path}: ${text}`, { path, certain: false })
}

/** Hanging is a matter of the mount, and mounts are trees. */
function isSameOrBelow(path: string, hung: string): boolean {
  if (hung === '' || path === '') return false
  return hung === path || path.startsWith(`${hung}/`)
}

function toError(answer: Extract<WorkerAnswer, { kind: 'failed' }>, path: string): HostError {
  return new HostError(answer.code, answer.message, { path: answer.path ?? path, certain: answer.code !== 'BUG' })
}

// ---- threads -------------------------------------------------------------------------------------------------------

function startThread(pool: Pool): void {
  const cancelled = new Int32Array(new SharedArrayBuffer(4))
  const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
  const worker = new Worker(new URL(file, import.meta.url), { workerData: cancelled, execArgv: [], stdout: false })
  const thread: Thread = { worker, cancelled, job: undefined, since: 0, ready: false }
  // While calls wait for it, a thread that loads keeps the process alive.
  if (pool.queue.length === 0) worker.unref()
  worker.on('message', (answer: WorkerAnswer) => receive(pool, thread, answer))
  worker.on('error', (error: Error) => removeThread(pool, thread, error.message))
  worker.on('exit', () => removeThread(pool, thread, 'a host worker thread ended'))
  pool.threads.add(thread)
}

function dispatch(pool: Pool): void {
  while (pool.queue[0] !== undefined) {
    const free = [...pool.threads].find(({ ready, job }) => ready && job === undefined)
    if (free === undefined) return replaceSlow(pool)
    assign(pool, free, pool.queue.shift()!)
  }
}

function assign(pool: Pool, thread: Thread, job: Job): void {
  const { id, call, parameters, options } = job
  try {
    thread.worker.postMessage({ id, call, parameters })
  } catch (error) {
    // A parameter cannot be sent to another thread.
    return job.settle?.(new HostError('BUG', `${call}: ${String(error)}`, { path: options.path }))
  }
  thread.job = job
  thread.since = performance.now()
  // A thread that waits must not keep the process alive; one that works must.
  thread.worker.ref()
  pool.timer ??= setInterval(() => checkThreads(pool), checkEveryMs).unref()
}

function checkThreads(pool: Pool): void {
  if (pool.queue.length === 0 && [...pool.threads].every(({ job }) => job === undefined)) {
    clearInterval(pool.timer)
    pool.timer = undefined
  }
  replaceSlow(pool)
}

/**
 * Keeps as many threads that do not hang as usual. One more is started at a time and not lightly: a start costs as
 * much as hundreds of calls, and calls are slow above all when the machine is busy.
 */
function replaceSlow(pool: Pool): void {
  const all = [...pool.threads]
  const now = performance.now()
  const within = (limitMs: number) => all.filter(({ job, since }) => job === undefined || now - since < limitMs).length
  const few = all.length < enoughThreads
  const missing = within(few ? stuckMs : verySlowMs) < pool.options.threads
  const waited = few && pool.queue.length > 0 && within(slowMs) === 0
  const loading = all.some(({ ready }) => !ready)
  if (!pool.closed && !loading && (missing || waited) && all.length < pool.options.maximumThreads) startThread(pool)
}

function receive(pool: Pool, thread: Thread, answer: WorkerAnswer): void {
  if (answer.kind === 'ready') thread.ready = true
  else {
    const { job } = thread
    if (job === undefined || job.id !== answer.id) return
    if (answer.kind === 'progress') return job.options.onProgress?.(answer.done)
    thread.job = undefined
    pool.lost.delete(thread)
    if (answer.kind === 'done' && job.settle === undefined) releaseForgotten(pool, job, answer.value)
    job.settle?.(answer)
  }
  // The answer may have led to another call on this very thread.
  if (thread.job !== undefined) return
  thread.worker.unref()
  const spare = pool.threads.size - pool.lost.size > enoughThreads && pool.queue.length === 0
  if (spare || pool.closed) void thread.worker.terminate()
  else dispatch(pool)
}

/** A descriptor that nobody waits for any more is closed. */
function releaseForgotten(pool: Pool, { call }: Job, value: unknown): void {
  if (call !== 'openBeneath') return
  const { descriptor } = value as { descriptor: number } // what openBeneath answers
  enqueue(pool, 'closeDescriptor', [descriptor], { path: '' }, undefined)
}

function removeThread(pool: Pool, thread: Thread, reason: string): void {
  const { job } = thread
  pool.threads.delete(thread)
  pool.lost.delete(thread)
  thread.job = undefined
  if (job !== undefined)
    job.settle?.(new HostError('WORKER', `${job.call}: ${reason}`, { path: job.options.path, certain: false }))
  if (!pool.closed) dispatch(pool)
}

// ---- closing -------------------------------------------------------------------------------------------------------

async function closePool(pool: Pool): Promise<void> {
  pool.closed = true
  for (const job of pool.queue.splice(0))
    job.settle?.(new HostError('CLOSED', 'the host is closed', { path: job.options.path }))
  // A thread inside the kernel cannot be ended; waiting for it would hang us too, now or when the process ends.
  const stuck = [...pool.threads].filter(({ job }) => job !== undefined)
  for (const { worker } of stuck) worker.unref()
  if (stuck.length > 0) await leaveThreadsBehind(() => stuck.some((thread) => pool.threads.has(thread)))
  await Promise.all([...pool.threads].filter(({ job }) => job === undefined).map(endThread))
}

/** A thread that still loads its native library takes the whole process down when it is terminated: it may load first. */
function endThread(thread: Thread): Promise<unknown> {
  if (thread.ready) return thread.worker.terminate()
  thread.worker.ref()
  return new Promise((resolve) => thread.worker.once('exit', resolve))
}

/** Node waits for all its threads before the process ends; those in the kernel may never come. */
async function leaveThreadsBehind(stillThere: () => boolean): Promise<void> {
  const { exitNow } = await import('./libc.ts')
  process.once('exit', (code) => stillThere() && exitNow(code))
}
