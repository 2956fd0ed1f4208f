// Does one request hold up the others when there is much to answer? Lists of many objects in every form, with long selectors,
// while others watch; the watchdog measures each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adminUser, createApiServer } from '../../src/apiserver/start.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { startLoopWatchdog } from '../kit/loop-watchdog.ts'

const pods = 4_000
const longestHoldMs = 50
const path = '/api/v1/namespaces/default/pods'
const json = 'application/json'
const long = `app in (${Array.from({ length: 3_000 }, (_, index) => `v${index}`).join(',')})`
const unequal = Array.from({ length: 1_500 }, (_, index) => `key-${index}!=v`).join(',')

const lists: readonly {
  readonly name: string
  readonly accept?: string
  readonly query?: string
  readonly agent?: string
}[] = [
  { name: 'JSON' },
  { name: 'JSON for curl', agent: 'curl/8' },
  { name: 'a table', accept: `${json};as=Table;v=v1;g=meta.k8s.io` },
  { name: 'a table of whole objects', accept: `${json};as=Table;v=v1;g=meta.k8s.io`, query: 'includeObject=Object' },
  { name: 'YAML', accept: 'application/yaml' },
  { name: 'protobuf', accept: 'application/vnd.kubernetes.protobuf' },
  { name: 'metadata', accept: `${json};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io` },
  { name: 'a long selector', query: `labelSelector=${encodeURIComponent(long)}` },
  { name: 'a selector with many terms', query: `labelSelector=${encodeURIComponent(unequal)}` },
  { name: 'a page with a selector', query: `limit=500&labelSelector=${encodeURIComponent('app!=v7')}` },
]

test(`lists of ${pods} objects hold the event loop for at most ${longestHoldMs} ms at a time`, async () => {
  await using store = createMemoryStore()
  const options = { store, clock: createSystemClock(), random: createRandom(1), log: silentLog, tokens: [] }
  const server = await createApiServer({ ...options, signingKey: new Uint8Array(32).fill(7) })
  const stop = new AbortController()
  const send = (method: string, query: string, headers: Record<string, string>, body = new Uint8Array()) => {
    const asked = { method, path, query: new URLSearchParams(query), headers, body, user: adminUser }
    return server.handle({ ...asked, signal: stop.signal })
  }
  try {
    for (let index = 0; index < pods; index++) {
      const metadata = { name: `p${index}`, labels: { app: `v${index % 100}`, tier: 'a' } }
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'c', image: 'x' }] } }
      await send('POST', '', { 'content-type': json }, Buffer.from(JSON.stringify(pod)))
    }
    using watchdog = startLoopWatchdog()
    for (const { name, accept = json, query = '', agent = 'test/1' } of lists) {
      const ask = () => send('GET', query, { accept, 'user-agent': agent })
      const times: number[] = []
      // Three times, and each counts: the first compiles, the later ones find garbage.
      for (let turn = 0; turn < 3; turn++) {
        const { value, longestMs } = await watchdog.measure(ask)
        assert.equal(value.status, 200, name)
        times.push(longestMs)
      }
      const shown = times.map((ms) => ms.toFixed(0)).join(', ')
      process.stdout.write(`# ${name}: ${shown} ms\n`)
      assert.ok(Math.max(...times) <= longestHoldMs, `${name}: ${shown} ms`)
    }
  } finally {
    stop.abort()
    await server.close()
  }
})
