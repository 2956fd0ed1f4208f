// Do probes and hooks work on a real machine? Commands in the container's own view, HTTP, TCP and gRPC against real servers.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { ServerHttp2Stream } from 'node:http2'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Container, Pod } from '../../src/api/generated/types.ts'
import { createLinuxNetwork } from '../../src/host/linux/network.ts'
import { untilWhy } from '../kit/assert-why.ts'
import { podOn, sharedAgentFixture, until } from '../kit/agent-fixture.ts'
import { needsRoot as skip } from '../kit/machine.ts'

const { signal } = new AbortController()
const network = createLinuxNetwork()
const bench = sharedAgentFixture()

async function listen<T extends { listen(port: number, host: string): unknown; close(): unknown; address(): unknown }>(
  server: T & NodeJS.EventEmitter,
) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, [Symbol.dispose]: () => void server.close() }
}

test('HTTP: status codes are answers, redirects on the same host are followed, silence ends in time', async () => {
  const asked: (string | undefined)[] = []
  using server = await listen(
    createServer((request, response) => {
      asked.push(request.headers['x-probe'] as string | undefined)
      if (request.url === '/silent') return
      if (request.url === '/away') response.writeHead(302, { location: 'http://elsewhere.invalid/' })
      else if (request.url === '/moved') response.writeHead(302, { location: '/ok?x=1' })
      else response.writeHead(request.url === '/ok?x=1' ? 204 : 500)
      response.end()
    }),
  )
  const get = (path: string, timeoutMs = 1_000) =>
    network.httpGet(
      { scheme: 'HTTP', host: '127.0.0.1', port: server.port, path, headers: { 'x-probe': 'yes' }, timeoutMs },
      signal,
    )
  assert.equal((await get('/moved')).status, 204)
  assert.equal((await get('/away')).status, 302)
  assert.equal((await get('/broken')).status, 500)
  assert.ok(asked.every((value) => value === 'yes'))
  await assert.rejects(get('/silent', 200), { code: 'TIMEOUT' })
})

test('TCP: a listening port answers, a closed one does not', async () => {
  const server = await listen(createTcpServer((socket) => socket.end()))
  await network.connect({ host: '127.0.0.1', port: server.port, timeoutMs: 1_000 }, signal)
  server[Symbol.dispose]()
  await assert.rejects(network.connect({ host: '127.0.0.1', port: server.port, timeoutMs: 1_000 }, signal))
})

test('gRPC: the health service of the name asked for', async () => {
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const parts: Buffer[] = []
    stream.on('data', (chunk: Buffer) => void parts.push(chunk))
    stream.on('end', () => {
      const service = Buffer.concat(parts).subarray(7).toString()
      const known = headers[':path'] === '/grpc.health.v1.Health/Check' && service === 'db'
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () =>
        stream.sendTrailers(known ? { 'grpc-status': '0' } : { 'grpc-status': '5', 'grpc-message': 'unknown' }),
      )
      stream.end(known ? Buffer.from([0, 0, 0, 0, 2, 8, 1]) : undefined)
    })
  })
  using place = await listen(server)
  const check = (service: string) =>
    network.grpcHealth({ host: '127.0.0.1', port: place.port, service, timeoutMs: 1_000 }, signal)
  assert.equal(await check('db'), 'SERVING')
  await assert.rejects(check('other'), /code 5 unknown/)
})

const always = (name: string, container: Partial<Container>, more: Partial<NonNullable<Pod['spec']>> = {}) =>
  podOn(name, {
    restartPolicy: 'Always',
    containers: [{ name: 'c', image: 'i', command: ['sleep', '3600'], ...container }],
    ...more,
  })
const statusOf = async (name: string) =>
  (await bench().client.get('Pod', { namespace: 'default', name })).status?.containerStatuses?.[0]
const eventsOf = async (name: string) =>
  (await bench().client.list('Event', { namespace: 'default' })).items
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)

test('exec probes see the container: its volumes, user, variables and working directory', { skip }, async () => {
  const check =
    'test "$(id -u)" = 65534 && test "$WORD" = "hello world" && test "$PWD" = /tmp && test -e /volumes/m/ready'
  await bench().client.create(
    'Pod',
    always(
      'ready',
      {
        env: [{ name: 'WORD', value: 'hello world' }],
        workingDir: '/tmp',
        securityContext: { runAsUser: 65534 },
        volumeMounts: [{ name: 'm', mountPath: '/volumes/m' }],
        readinessProbe: { exec: { command: ['sh', '-c', check] }, periodSeconds: 1 },
      },
      { volumes: [{ name: 'm', emptyDir: { medium: 'Memory' } }] },
    ),
  )
  await until('it runs', async () => (await bench().phaseOf('ready')) === 'Running')
  await until('it is told unready', async () =>
    (await eventsOf('ready')).some((text) => text.startsWith('Warning Unhealthy: Readiness probe failed')),
  )
  assert.equal((await statusOf('ready'))?.ready, false)
  await untilWhy(bench().client, 'pod/ready', 'notReady')
  const { uid } = (await bench().client.get('Pod', { namespace: 'default', name: 'ready' })).metadata
  writeFileSync(join(bench().root, `pods/${uid}/volumes/kubernetes.io~empty-dir/m/ready`), '')
  await until('it is ready', async () => (await statusOf('ready'))?.ready === true, 10_000)
  // It survives a restart of the agent as ready, and goes on being asked.
  await bench().endAgent('SIGKILL')
  await bench().startAgent()
  assert.equal((await statusOf('ready'))?.ready, true)
  await bench().remove('ready')
  await bench().allGone()
})

test(
  'a container that fails its liveness probe is restarted; a probe that hangs is killed with its children',
  { skip },
  async () => {
    const hang = { exec: { command: ['sh', '-c', 'sleep 987 & sleep 987'] }, periodSeconds: 1, failureThreshold: 2 }
    await bench().client.create('Pod', always('ill', { livenessProbe: hang }))
    await until('it was restarted', async () => ((await statusOf('ill'))?.restartCount ?? 0) >= 1, 30_000)
    const events = await eventsOf('ill')
    assert.ok(
      events.includes('Warning Unhealthy: Liveness probe failed: command timed out after 1s'),
      events.join('\n'),
    )
    await until('the kill was told', async () =>
      (await eventsOf('ill')).includes('Normal Killing: Container c failed liveness probe, will be restarted'),
    )
    // Ended by its probe again and again, it is started with growing pauses.
    await untilWhy(bench().client, 'pod/ill', 'crashLoop', 60)
    await bench().remove('ill')
    await bench().allGone()
    assert.deepEqual(processesNamed('sleep\u0000987'), [])
  },
)

test('hooks: postStart and preStop run in the container, preStop before SIGTERM', { skip }, async () => {
  const shared = join(bench().base, 'shared')
  mkdirSync(shared, { recursive: true })
  const say = (word: string) => ({ exec: { command: ['sh', '-c', `echo ${word} >> /volumes/h/log`] } })
  const main = 'trap "echo term >> /volumes/h/log; exit 0" TERM; while :; do sleep 0.1; done'
  await bench().client.create(
    'Pod',
    always(
      'hooked',
      {
        command: ['sh', '-c', main],
        volumeMounts: [{ name: 'h', mountPath: '/volumes/h' }],
        lifecycle: { postStart: say('begin'), preStop: say('end') },
      },
      { volumes: [{ name: 'h', hostPath: { path: shared } }], terminationGracePeriodSeconds: 10 },
    ),
  )
  await until('it runs', async () => (await bench().phaseOf('hooked')) === 'Running')
  await until('the hook ran', () => existsSync(join(shared, 'log')))
  await new Promise((resolve) => setTimeout(resolve, 300))
  await bench().remove('hooked')
  await bench().allGone()
  assert.equal(readFileSync(join(shared, 'log'), 'utf8'), 'begin\nend\nterm\n')
})

function processesNamed(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false // gone
      }
    })
}
