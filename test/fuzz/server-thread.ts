// The server under test, in a thread of its own: what its event loop does and which garbage it collects is the server's alone, not
// that of the test that makes up requests.
import { parentPort, workerData } from 'node:worker_threads'
import { adminUser, createApiServer } from '../../src/apiserver/start.ts'
import type { ApiHandler } from '../../src/apiserver/request/handle.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { startLoopWatchdog } from '../kit/loop-watchdog.ts'
import type { Answer, Asked, Told } from './fuzz-server.ts'
import type { FuzzRequest } from './requests.ts'

const { path, seed } = workerData as { path: string | undefined; seed: number }
const port = parentPort!
/** Errors that the server itself did not expect: each would be an internal error. */
const surprises: string[] = []
const log = createLog((level, message, fields) => {
  if (level === 'error') surprises.push(JSON.stringify({ message, ...fields }, errorText))
})
const startOn = (store: Store) =>
  createApiServer({
    store,
    clock: createSystemClock(),
    random: createRandom(seed),
    log,
    tokens: [],
    signingKey: new Uint8Array(32).fill(7),
  })

const store = path === undefined ? createMemoryStore() : openSqliteStore({ path })
const server = await startOn(store)
const watchdog = startLoopWatchdog()
port.on('message', (asked: Asked) => {
  void follow(asked)
    .catch((error: unknown): Told => ({ kind: 'error', error: String(errorText('', error)) }))
    .then((told) => port.postMessage(told))
})
port.postMessage({ kind: 'done' } satisfies Told)

async function follow(asked: Asked): Promise<Told> {
  switch (asked.kind) {
    case 'warmUp':
      await warmUp(asked.requests)
      return { kind: 'done' }
    case 'send': {
      const { value, longestMs } = await watchdog.measure(() => send(server.handle, asked.request))
      return { kind: 'answer', answer: { ...value, longestMs }, surprises }
    }
    case 'close': {
      await server.close()
      const { entries } = await store.list('', {})
      await store[Symbol.asyncDispose]()
      return {
        kind: 'contents',
        contents: new Map(entries.map(({ key, value }) => [key, Buffer.from(value).toString()])),
      }
    }
  }
}

async function warmUp(requests: readonly FuzzRequest[]): Promise<void> {
  await using other = createMemoryStore()
  const { handle, close } = await startOn(other)
  for (const request of requests) await send(handle, request)
  await close()
}

async function send(handle: ApiHandler, request: FuzzRequest): Promise<Answer> {
  const stop = new AbortController()
  const { method, path: asked, headers, body } = request
  const query = new URLSearchParams(request.query)
  const response = await handle({ method, path: asked, query, headers, body, user: adminUser, signal: stop.signal })
  const { status } = response
  if (Buffer.isBuffer(response.body)) return { status, headers: response.headers, text: response.body.toString() }
  // A watch: read what comes at once, then hang up.
  const chunks: Buffer[] = []
  const hangUp = setTimeout(() => stop.abort(), 1)
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk)
      if (chunks.length > 5) break
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    clearTimeout(hangUp)
    stop.abort()
  }
  return { status, headers: response.headers, text: Buffer.concat(chunks).toString() }
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value
}
