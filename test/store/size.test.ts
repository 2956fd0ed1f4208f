// What does a server with many objects cost? Memory with 10,000 objects, time to start with 100,000.
// An empty server has about 140 MB resident, 60 of them pages of the Node executable. Issue 3 asked for 120 MB in all; only flags and
// calls that gave memory back to the system at rest held that, and they are withdrawn (decision 21).
// Times are those of the server: what it waited for a processor, because others were busy, is taken off.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { openSqliteStore } from '../../src/store/sqlite-store.ts'
import { createTestApi } from '../kit/api.ts'
import { startServer } from '../kit/server-process.ts'
import type { ServerProcess } from '../kit/server-process.ts'

const mostMegabytes = 320
/** What 10,000 volumes with their records cost once the burst that made them is over: measured 99 to 100. */
const mostAddedMegabytes = 110
const longestStartMs = 3_000

test('10,000 volumes add less than 110 MB to a restarted server, and less than 320 MB are resident at any time', async (t) => {
  await using server = await startServer()
  await sleep(10_000) // as long as it rests after the restart below
  const empty = residentMegabytes(server)
  await createVolumes(server, 10_000)
  await sleep(10_000)
  const made = residentMegabytes(server)
  // Then the stories of so many volumes are written behind the work (client/history.ts); rest comes after them.
  await sleep(30_000)
  const rested = residentMegabytes(server)
  await server.restart()
  await sleep(10_000)
  const restarted = residentMegabytes(server)
  const all = [made, rested, restarted]
  t.diagnostic(`resident: empty ${empty} MB; 10,000 made, at rest, after a restart: ${all.join(', ')} MB`)
  assert.ok(Math.max(...all) < mostMegabytes, `${all.join(', ')} MB`)
  assert.ok(restarted - empty < mostAddedMegabytes, `${empty} MB empty, ${restarted} MB with 10,000 volumes`)
})

test('a server with 100,000 objects starts in under 3 s, controllers included', async (t) => {
  await using server = await startServer()
  await server.stop()
  await fill(join(server.dataDirectory, 'store.db'), 100_000)
  // The controllers have work with so many new objects; afterwards a start finds a settled cluster.
  await server.restart()
  const work = performance.now()
  await settled(server)
  t.diagnostic(`settled after ${Math.round(performance.now() - work)} ms`)
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    await server.stop()
    const began = performance.now()
    await server.restart()
    times.push(Math.round(performance.now() - began - waitedMs(server)))
  }
  t.diagnostic(`start with 100,000 objects: ${times.join(', ')} ms`)
  assert.ok(Math.min(...times) < longestStartMs, `${times.join(', ')} ms`)
})

function residentMegabytes({ pid }: ServerProcess): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kilobytes) / 1024)
}

/** How long the main thread was ready to run and did not, since it began (proc(5): schedstat). */
function waitedMs({ pid }: ServerProcess): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
}

async function createVolumes(server: ServerProcess, count: number): Promise<void> {
  using agent = closing(new Agent({ keepAlive: true, maxSockets: 16, rejectUnauthorized: false }))
  let next = 0
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const body = JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolume', ...volume(index) })
      const { status } = await call(server, agent, 'POST', '/api/v1/persistentvolumes', body)
      assert.equal(status, 201)
    }
  }
  await Promise.all(Array.from({ length: 16 }, work))
}

/** Waits until little changes: the history is written behind the work, slowly and for long. */
async function settled(server: ServerProcess): Promise<void> {
  using agent = closing(new Agent({ keepAlive: true, rejectUnauthorized: false }))
  let before = Number.NEGATIVE_INFINITY
  for (let tries = 0; tries < 60; tries++) {
    const { text } = await call(server, agent, 'GET', '/api/v1/namespaces?limit=1')
    const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata
    if (Number(resourceVersion) - before < 300) return
    before = Number(resourceVersion)
    await sleep(3_000)
  }
  assert.fail('the cluster does not settle')
}

async function call({ url, token }: ServerProcess, agent: Agent, method: string, path: string, body?: string) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const asked = request(`${url}${path}`, { method, agent, headers })
  asked.end(body)
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of answer) text += String(piece)
  return { status: answer.statusCode, text }
}

function closing(agent: Agent): Agent & Disposable {
  return Object.assign(agent, { [Symbol.dispose]: () => agent.destroy() })
}

/** Volumes, their claims and other objects, written as the server writes them. */
async function fill(path: string, count: number): Promise<void> {
  await using store = openSqliteStore({ path })
  const { server, client: api } = await createTestApi({ store, clock: createSystemClock(), random: createRandom(1) })
  const make = (index: number): Promise<unknown> => {
    if (index % 5 < 2) return api.create('PersistentVolume', reserved(index))
    if (index % 5 < 4) return api.create('PersistentVolumeClaim', claim(index - 2))
    const data = { first: 'x'.repeat(300), second: 'y'.repeat(300) }
    return api.create('ConfigMap', { metadata: { name: `map-${index}`, namespace: 'default' }, data })
  }
  for (let start = 0; start < count; start += 100)
    await Promise.all(Array.from({ length: 100 }, (_, index) => make(start + index)))
  await server.close()
}

function volume(index: number) {
  return {
    metadata: { name: `volume-${index}` },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'many',
      csi: { driver: 'many.example.com', volumeHandle: `handle-${index}` },
    },
  } as const
}

/** Each volume for its claim, so that binding them all takes seconds. */
function reserved(index: number) {
  const { metadata, spec } = volume(index)
  return { metadata, spec: { ...spec, claimRef: { namespace: 'default', name: `claim-${index}` } } }
}

function claim(index: number) {
  return {
    metadata: { name: `claim-${index}`, namespace: 'default' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'many',
      volumeName: `volume-${index}`,
      resources: { requests: { storage: '1Gi' } },
    },
  } as const
}
