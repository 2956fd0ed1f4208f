// Does the API server survive strangers? Thousands of malformed requests: never a crash, never a 5xx, every error a
// Status, and no acknowledged write is lost, not even over a restart of the durable store.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse as parseYaml } from 'yaml'
import type { KubeObject } from '../../src/api/meta.ts'
import { protobufContentType } from '../../src/apiserver/protobuf/decode.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import { adminUser } from '../../src/apiserver/start.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { type Answer, type FuzzServer, startFuzzServer } from './fuzz-server.ts'
import { type FuzzRequest, fuzzRequest, namespaces } from './requests.ts'

const count = Number(process.env['HAWSER_FUZZ'] ?? (process.env['HAWSER_HEAVY'] === '1' ? 50_000 : 2_000))
/** No single request may hold the event loop longer. */
const longestHoldMs = 50
const warmUpCount = 3_000
const seed = Number(process.env['HAWSER_SEED'] ?? Math.floor(Math.random() * 1e9))

/** Errors that the server itself did not expect: each would be an internal error. */
const surprises: unknown[] = []
const log = createLog((level, message, fields) => {
  if (level === 'error') surprises.push({ message, ...fields })
})
const serverOptions = (store: Store) => ({
  store,
  clock: createSystemClock(),
  random: createRandom(seed),
  log,
  tokens: [{ token: 'fuzz-token', user: adminUser }],
  signingKey: new Uint8Array(32).fill(7),
})

function describe(request: FuzzRequest, answer?: Answer): string {
  const body = Buffer.from(request.body.subarray(0, 600)).toString()
  const { method, path, query, headers } = request
  const shown = answer === undefined ? '' : `\n→ ${answer.status} ${answer.text.slice(0, 600)}`
  return `seed ${seed}: ${method} ${path}?${query} ${JSON.stringify(headers)}\n${body}${shown}\n${JSON.stringify(surprises.at(-1) ?? null, errorText)}`
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? value.stack : value
}

/** A version from the future is the one thing Kubernetes itself answers with 504: come back when it exists. */
function isFutureVersion(request: FuzzRequest, status: number, text: string): boolean {
  return status === 504 && request.query.includes('resourceVersion=') && text.includes('ResourceVersionTooLarge')
}

function checkAnswer(request: FuzzRequest, answer: Answer): void {
  const { status: code, text } = answer
  assert.ok((code >= 200 && code < 500) || isFutureVersion(request, code, text), describe(request, answer))
  if (answer.status < 400 || request.method === 'HEAD') return
  if (answer.headers['content-type']?.startsWith('text/plain') === true) return
  if (answer.headers['content-type'] === protobufContentType) {
    assert.ok(answer.text.startsWith('k8s\0'), describe(request, answer))
    return
  }
  // JSON is YAML, too.
  const status = parseYaml(answer.text) as { kind?: string; code?: number; status?: string }
  assert.deepEqual(
    { kind: status.kind, code: status.code, status: status.status },
    { kind: 'Status', code: answer.status, status: 'Failure' },
    describe(request, answer),
  )
}

const plain = (method: string, path: string, body?: object): FuzzRequest => ({
  method,
  path,
  query: '',
  headers: { accept: 'application/json', 'content-type': 'application/json' },
  body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
})

const makeNamespaces: readonly FuzzRequest[] = ['ledger', ...namespaces].map((name) =>
  plain('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
)

/** The object a request claims to have written, when it was a real write of one whole object. */
function writtenObject(request: FuzzRequest, answer: Answer): KubeObject | undefined {
  const isWrite = ['POST', 'PUT', 'PATCH'].includes(request.method) && (answer.status === 200 || answer.status === 201)
  if (!isWrite || request.query.includes('dryRun') || request.headers['accept'] !== 'application/json') return undefined
  if (/\/(binding|eviction|token|finalize)$/.test(request.path)) return undefined
  const object = JSON.parse(answer.text) as KubeObject
  return object.metadata?.resourceVersion === undefined ? undefined : object
}

/** What was acknowledged is there, exactly. Caretakers may remove objects whose owners or namespace are gone. */
async function checkStored(server: FuzzServer, request: FuzzRequest, object: KubeObject): Promise<void> {
  const { name, ownerReferences, deletionTimestamp } = object.metadata
  const base = request.path.replace(/\/status$/, '').replace(/\/$/, '')
  const read = plain('GET', request.method === 'POST' ? `${base}/${encodeURIComponent(name)}` : base)
  const answer = await server.send(read)
  const mayBeGone = ownerReferences !== undefined || deletionTimestamp !== undefined || object.kind === 'Namespace'
  if (answer.status === 404 && mayBeGone) return
  assert.equal(answer.status, 200, describe(read, answer))
  if (!mayBeGone) assert.deepEqual(JSON.parse(answer.text), object, describe(request, answer))
}

/** Entries that no random request touches; each must hold the last number that was acknowledged. */
function createLedger(server: FuzzServer) {
  const acknowledged = new Map<string, number>()
  return {
    async write(number: number): Promise<void> {
      const name = `entry-${number % 20}`
      const path = '/api/v1/namespaces/ledger/configmaps'
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { number: String(number) } }
      const known = acknowledged.has(name)
      const request = known ? plain('PUT', `${path}/${name}`, object) : plain('POST', path, object)
      const answer = await server.send(request)
      assert.equal(answer.status, known ? 200 : 201, describe(request, answer))
      acknowledged.set(name, number)
    },
    async check(reader: FuzzServer): Promise<void> {
      for (const [name, number] of acknowledged) {
        const answer = await reader.send(plain('GET', `/api/v1/namespaces/ledger/configmaps/${name}`))
        const { data } = JSON.parse(answer.text) as { data?: { number?: string } }
        assert.equal(data?.number, String(number), `seed ${seed}: ${name}`)
      }
    },
  }
}

test(`${count} strange requests: no crash, no 5xx, nothing acknowledged is lost`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hawser-fuzz-'))
  const path = join(folder, 'state.db')
  try {
    const before = await fuzzDurableServer(path)
    await using reopened = openSqliteStore({ path })
    const { entries } = await reopened.list('', {})
    const after = new Map(entries.map((entry) => [entry.key, Buffer.from(entry.value).toString()]))
    const lost = [...before].filter(([key, value]) => after.get(key) !== value).map(([key]) => key)
    assert.deepEqual({ lost, size: after.size }, { lost: [], size: before.size }, `seed ${seed}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Answers with everything that was stored when the caretakers had stopped. */
async function fuzzDurableServer(path: string): Promise<ReadonlyMap<string, string>> {
  await using server = await startFuzzServer({ path, seed })
  for (const request of makeNamespaces) await server.send(request)
  const ledger = createLedger(server)
  await fuzz(server, ledger)
  await ledger.check(server)
  return await server.close()
}

const wantedKinds = [
  'yaml',
  'protobuf',
  'patch json-patch',
  'patch merge-patch',
  'patch strategic-merge-patch',
  'patch apply-patch',
  'selector',
  'stream',
] as const

async function fuzz(server: FuzzServer, ledger: ReturnType<typeof createLedger>): Promise<void> {
  const codes = new Map<number, number>()
  const seen = new Map<string, number>()
  const others = fc.sample(fuzzRequest, { numRuns: warmUpCount, seed: seed - 1 })
  await server.warmUp([...makeNamespaces, ...others])
  let checked = 0
  let longest = 0
  for (let sent = 0; sent < count; sent += 500) {
    const requests = fc.sample(fuzzRequest, { numRuns: Math.min(500, count - sent), seed: seed + sent })
    for (const [index, request] of requests.entries()) {
      const answer = await server.send(request).catch((error: unknown) => {
        throw new Error(describe(request), { cause: error })
      })
      checkAnswer(request, answer)
      longest = Math.max(longest, answer.longestMs)
      assert.ok(
        answer.longestMs <= longestHoldMs,
        `held the event loop for ${answer.longestMs} ms: ${describe(request)}`,
      )
      for (const kind of kindsOf(request)) seen.set(kind, (seen.get(kind) ?? 0) + 1)
      codes.set(answer.status, (codes.get(answer.status) ?? 0) + 1)
      const object = writtenObject(request, answer)
      if (object !== undefined) {
        await checkStored(server, request, object)
        checked += 1
      }
      if (index % 10 === 0) await ledger.write(sent + index)
    }
  }
  assert.deepEqual(server.surprises(), [], `seed ${seed}`)
  // A fuzzer whose every request is refused at the door tests the door only.
  assert.ok(checked > count / 50, `only ${checked} writes were accepted: ${JSON.stringify([...codes])}`)
  const shown = JSON.stringify([...codes].toSorted())
  for (const kind of wantedKinds) assert.ok((seen.get(kind) ?? 0) >= count / 500, `${kind}: ${seen.get(kind) ?? 0}`)
  process.stdout.write(`# of these: ${JSON.stringify([...seen].toSorted())}\n`)
  process.stdout.write(`# the longest stretch of the event loop: ${longest.toFixed(1)} ms of processor time\n`)
  process.stdout.write(`# seed ${seed}: ${count} requests, ${checked} accepted writes checked, codes ${shown}\n`)
}

/** What kind of request this is, by what reads it. */
function kindsOf({ method, headers, query }: FuzzRequest): readonly string[] {
  const type = headers['content-type'] ?? ''
  const written = method !== 'GET' && method !== 'HEAD'
  return [
    ...(written && type.includes('yaml') ? ['yaml'] : []),
    ...(written && type === protobufContentType ? ['protobuf'] : []),
    ...(method === 'PATCH' && type.includes('patch') ? [`patch ${type.split(/[/;+]/)[1]}`] : []),
    ...(/(label|field)Selector=/.test(query) ? ['selector'] : []),
    ...(method === 'GET' && /watch=(true|1)\b/.test(query) ? ['stream'] : []),
  ]
}

test('found by seed 13: an applied configuration of the wrong shape is a 400', async () => {
  await using server = await startFuzzServer({ seed })
  const config = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { volumes: 'text' } }
  const request = plain('PATCH', '/api/v1/namespaces/default/pods/p', config)
  const headers = { ...request.headers, 'content-type': 'application/apply-patch+yaml' }
  const answer = await server.send({ ...request, headers, query: 'fieldManager=fuzz' })
  assert.equal(answer.status, 400, answer.text)
})

test('the same over a socket, many at a time', async () => {
  await using store = createMemoryStore()
  const server = await startApiServer({ ...serverOptions(store), listen: { host: '127.0.0.1', port: 0 } })
  try {
    for (const request of makeNamespaces) await sendOverSocket(server.url, request)
    const requests = fc.sample(fuzzRequest, { numRuns: Math.ceil(count / 10), seed: seed + 1 })
    const queue = requests.values()
    const worker = async () => {
      for (const request of queue) await sendOverSocket(server.url, request)
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    const health = await fetch(`${server.url}/healthz`)
    assert.equal(health.status, 200)
    await health.body?.cancel()
    assert.deepEqual(surprises, [], `seed ${seed}`)
  } finally {
    await server.close()
  }
})

async function sendOverSocket(url: string, request: FuzzRequest): Promise<void> {
  const { method, path, query, headers, body } = request
  // fetch itself refuses these.
  if (!/^[A-Z]+$/.test(method) || method === 'TRACE') return
  const target = URL.parse(`${url}${path.startsWith('//') ? '/' : path}?${query}`)
  if (target === null) return
  const bare = method === 'GET' || method === 'HEAD'
  const stop = AbortSignal.timeout(2_000)
  try {
    const response = await fetch(target, {
      method,
      headers: { ...headers, authorization: 'Bearer fuzz-token' },
      signal: stop,
      ...(bare ? {} : { body: Buffer.from(body) }),
    })
    const { status } = response
    const text = status < 400 && query.includes('watch=') ? '' : await response.text()
    await response.body?.cancel().catch(() => {})
    assert.ok(status < 500 || isFutureVersion(request, status, text), `${describe(request)} → ${status} ${text}`)
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    // A body beyond the limit may be cut off while it is being sent; anything else is a lost answer.
    const tooLarge = body.length > 3 * 1024 * 1024
    assert.ok(tooLarge || stop.aborted === false || query.includes('watch='), describe(request))
    assert.ok(
      tooLarge || query.includes('watch='),
      `${describe(request)}: ${String(error)} ${String((error as Error).cause)}`,
    )
  }
}
