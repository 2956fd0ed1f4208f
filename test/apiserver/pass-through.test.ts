// Does the server pass through what only a node can answer? To those who may, in Kubernetes' words when it cannot, and with the
// streams of a pod on a connection that was upgraded.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Pod } from '../../src/api/generated/types.ts'
import type { NodeClient } from '../../src/apiserver/request/pass-through.ts'
import { createStreamPair } from '../../src/streams/byte-stream.ts'
import { exitFromStatus } from '../../src/streams/remote-command.ts'
import { openWebSocket } from '../../src/streams/websocket.ts'
import { admin, makeServer, paths, pod } from '../kit/api-server.ts'
import type { TestServer } from '../kit/api-server.ts'
import { modelNode } from '../kit/node-server.ts'

const reader = { name: 'rita', groups: ['hawser:read-only'] }
const controller = { name: 'conrad', groups: ['hawser:controllers'] }
const node = { name: 'system:node:n1', groups: ['system:nodes'] }
const webSocket = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'v5.channel.k8s.io',
}
const exec = `${paths.pods}/p/exec?command=cat&command=4&stdin=true&stdout=true`

async function open(): Promise<TestServer & { asked: string[]; breakDown(): void; breakOff(): void }> {
  let nodeServer: NodeClient | undefined
  const asked: string[] = []
  const server = await makeServer({ nodeClient: (name, request) => nodeServer!(name, request) })
  const model = await modelNode(server.clock)
  nodeServer = async (name, request) => {
    asked.push(`${name} ${request.method} ${request.path}`)
    return await model.nodeServer(request)
  }
  await server.post('/api/v1/nodes', { metadata: { name: 'n1' } })
  const containers = ['c', 'over', 'quiet'].map((name) => ({ name, image: 'x' }))
  const made = await server.post(paths.pods, pod('p', { nodeName: 'n1', containers }))
  await server.post(paths.pods, pod('nowhere'))
  await model.put(made.body as Pod)
  const breakDown = () => {
    nodeServer = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.1:10250'))
  }
  const breakOff = () => {
    async function* body(): AsyncGenerator<Uint8Array, void, undefined> {
      yield Buffer.from('one\n')
      throw new Error('aborted')
    }
    nodeServer = async () => ({ status: 200, headers: {}, body: body() })
  }
  return { ...server, asked, breakDown, breakOff, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test("a container's log is its node's word", async () => {
  await using server = await open()
  const read = async (query: string) => {
    const answer = await server.open('GET', `${paths.pods}/p/log?${query}`)
    let text = ''
    if (answer.body instanceof Uint8Array) text = answer.body.toString()
    else for await (const piece of answer.body) text += piece.toString()
    return `${answer.status} ${text}`
  }
  assert.equal(await read('container=c'), '200 one\ntwo\n')
  assert.equal(await read('container=c&tailLines=1'), '200 two\n')
  assert.equal(await read('container=c&tailLines=0'), '200 ')
  assert.equal(await read('container=quiet'), '200 ')
  assert.match(
    await read('container=c&previous=true'),
    /^400 .*previous terminated container ..c.. in pod ..p.. not found/,
  )
  const { headers } = await server.open('GET', `${paths.pods}/p/log?container=c&sinceSeconds=2&timestamps=true`)
  assert.equal(
    headers['warning'],
    ['sinceSeconds', 'timestamps']
      .map((name) => `299 - "logs are kept without times: ${name} has no effect"`)
      .join(', '),
  )
  assert.equal((await server.get(`${paths.pods}/nowhere/log`)).code, 204)
  assert.equal((await server.get(`${paths.pods}/p/log`, { user: reader })).code, 400)
  server.breakDown()
  const broken = await server.get(`${paths.pods}/p/log?container=c`)
  assert.equal(broken.code, 500)
  assert.equal(broken.body.message, 'error dialing backend: connect ECONNREFUSED 10.0.0.1:10250')
})

test('a log that breaks off is named, for whoever reads the log of the server', async () => {
  await using server = await open()
  server.breakOff()
  const { body } = await server.open('GET', `${paths.pods}/p/log?container=c&follow=true`)
  assert.ok(!(body instanceof Uint8Array))
  const read = async () => {
    for await (const piece of body) void piece
  }
  await assert.rejects(read(), /^Error: the log of pod default\/p from node n1 broke off$/)
})

test('a stream is refused in the words of Kubernetes', async () => {
  await using server = await open()
  const cases: readonly (readonly [string, string, number, RegExp])[] = [
    ['GET', `${paths.pods}/none/exec?command=x&stdout=1`, 404, /pods "none" not found/],
    ['GET', `${paths.pods}/p/exec?command=x&stdout=1`, 400, /a container name must be specified for pod p/],
    ['GET', `${paths.pods}/p/exec?container=z&command=x&stdout=1`, 400, /container z is not valid for pod p/],
    ['GET', `${paths.pods}/p/exec?container=c&stdout=1`, 400, /at least one command/],
    ['GET', `${paths.pods}/p/exec?container=c&command=x`, 400, /at least one of stdin, stdout, stderr/],
    ['GET', `${paths.pods}/nowhere/exec?command=x&stdout=1`, 400, /pod nowhere does not have a host assigned/],
    ['GET', `${paths.pods}/p/exec?container=over&command=x&stdout=1`, 500, /container not running \(over\)/],
    ['GET', `${paths.pods}/p/exec?container=quiet&command=x&stdout=1`, 404, /container not found \("quiet"\)/],
    ['PUT', `${paths.pods}/p/exec?container=c&command=x&stdout=1`, 405, /does not allow/],
    ['GET', `${paths.pods}/p/attach?container=c`, 400, /at least one of/],
  ]
  for (const [method, path, code, words] of cases) {
    const answer = await server.send(method, path, { headers: webSocket })
    assert.equal(answer.code, code, path)
    assert.match(answer.body.message, words)
  }
  const plain = await server.get(`${exec}&container=c`)
  assert.deepEqual([plain.code, plain.body.message], [400, 'Upgrade request required'])
  const old = { ...webSocket, 'sec-websocket-protocol': 'channel.k8s.io' }
  const foreign = await server.get(`${exec}&container=c`, { headers: old })
  assert.match(foreign.body.message, /unable to negotiate protocol/)
})

test('a command through the server: what is said, and how it ended', async () => {
  await using server = await open()
  const answer = await server.open('GET', `${exec}&container=c`, { headers: webSocket })
  assert.equal(answer.status, 101)
  assert.equal(answer.headers['sec-websocket-protocol'], 'v5.channel.k8s.io')
  const [ours, theirs] = createStreamPair()
  const served = answer.upgrade!(theirs)
  const client = openWebSocket(ours, { clock: server.clock, mask: () => Uint8Array.of(1, 2, 3, 4) })
  await client.send(Uint8Array.of(0), Buffer.from('hello'))
  await client.send(Uint8Array.of(255, 0))
  const said: Record<number, string> = {}
  for await (const { bytes } of client.parts) {
    said[bytes[0]!] = (said[bytes[0]!] ?? '') + Buffer.from(bytes.subarray(1)).toString()
  }
  await served
  assert.equal(said[1], 'hello')
  assert.deepEqual(exitFromStatus(said[3]!), { code: 4 })
  assert.match(server.asked[0]!, /^n1 GET \/exec\/default\/p\/[-0-9a-f]+\/c\?input=1&output=1&command=cat&command=4$/)
})

test('a node has room for so many streams, and again when one has ended', async () => {
  await using server = await open()
  const path = `${paths.pods}/p/attach?container=c&stdout=true`
  const ask = () => server.open('GET', path, { headers: webSocket })
  const sessions = []
  for (let count = 0; count < 256; count++) {
    const [ours, theirs] = createStreamPair()
    // Nobody reads: the session stays.
    sessions.push({ ours, served: (await ask()).upgrade!(theirs) })
  }
  const refused = await ask()
  assert.equal(refused.status, 429)
  assert.match(refused.body.toString(), /this node has 256 streams open/)
  for (const { ours } of sessions) ours.destroy()
  await Promise.all(sessions.map(({ served }) => served))
  assert.equal((await ask()).status, 101)
})

test('only administrators look into pods, by whatever method', async () => {
  await using server = await open()
  for (const user of [reader, controller, node, { name: 'nobody', groups: ['system:authenticated'] }]) {
    for (const method of ['GET', 'POST']) {
      for (const what of ['exec?command=x&stdout=1&', 'attach?stdout=1&', 'portforward?']) {
        const answer = await server.send(method, `${paths.pods}/p/${what}container=c`, { user, headers: webSocket })
        assert.equal(answer.code, 403, `${user.name} ${method} ${what}`)
        assert.match(answer.body.message, /cannot create resource "pods\/(exec|attach|portforward)"/)
      }
    }
  }
  assert.deepEqual(server.asked, [])
  assert.equal((await server.get(`${exec}&container=c`, { user: undefined, headers: webSocket })).code, 401)
})

test('who looked into which pod is recorded, even when it began with GET', async () => {
  await using server = await open()
  await server.open('GET', `${exec}&container=c`, { headers: webSocket })
  const audits = server.lines.flatMap(({ fields }) => fields['audit'] ?? []) as Record<string, unknown>[]
  const { user, subresource, name, code } = audits.at(-1)!
  assert.deepEqual({ user, subresource, name, code }, { user: admin.name, subresource: 'exec', name: 'p', code: 101 })
})

test("a node's own documents are for administrators, and each read leaves a line (E7)", async () => {
  await using server = await open()
  for (const name of ['n1', 'n1:10250', 'https:n1:10250'])
    for (const path of ['healthz', 'metrics', 'pods', 'stats/summary'])
      for (const [user, code] of [
        [admin, 200],
        [reader, 403],
      ] as const) {
        const before = server.asked.length
        assert.equal((await server.get(`/api/v1/nodes/${name}/proxy/${path}`, { user })).code, code, `${name} ${path}`)
        const audits = server.lines.flatMap(({ fields }) => fields['audit'] ?? []) as Record<string, unknown>[]
        const { user: who, resource, subresource, code: told } = audits.at(-1) ?? {}
        const wanted = { who: user.name, resource: 'nodes', subresource: 'proxy', told: code }
        assert.deepEqual({ who, resource, subresource, told }, wanted, `${name} ${path}`)
        if (code === 403) assert.equal(server.asked.length, before, 'the node hears nothing of it')
      }
})

test("a node's own documents, and nothing else of it", async () => {
  await using server = await open()
  const read = (path: string, user = admin) => server.get(`/api/v1/nodes/n1/proxy/${path}`, { user })
  assert.deepEqual([(await read('healthz')).body, (await read('metrics')).code], ['ok', 200])
  assert.deepEqual(
    (await read('pods')).body.items.map((each: Pod) => each.metadata.name),
    ['p'],
  )
  const { body } = await read('stats/summary')
  assert.equal(body.node.nodeName, 'n1')
  const [{ volume, podRef }] = body.pods
  assert.equal(podRef.name, 'p')
  assert.partialDeepStrictEqual(volume[0], {
    name: 'data',
    usedBytes: 5,
    capacityBytes: 10,
    availableBytes: 4,
    inodes: 3,
  })
  for (const path of [
    'exec/default/p/c?command=x&output=1',
    'run/default/p/c',
    'logs/',
    '',
    'pods/../exec',
    'metrics/x',
  ]) {
    assert.equal((await read(path)).code, 404, path)
  }
  // With a port, and with a scheme, as programs write it; only the node's own server is asked.
  for (const name of ['n1:10250', 'https:n1:10250', 'https:n1:']) {
    assert.equal((await server.get(`/api/v1/nodes/${name}/proxy/healthz`)).body, 'ok', name)
  }
  assert.equal((await server.get('/api/v1/nodes/n1:22/proxy/healthz')).code, 503)
  assert.equal((await server.get('/api/v1/nodes/ftp:n1:10250/proxy/healthz')).code, 400)
  assert.equal((await server.get('/api/v1/nodes/n9/proxy/healthz')).code, 404)
  assert.equal((await server.post('/api/v1/nodes/n1/proxy/healthz', {})).code, 405)
  assert.equal((await server.get('/api/v1/nodes/n1/proxy/healthz', { user: { name: 'x', groups: [] } })).code, 403)
  assert.ok(server.asked.every((line) => !line.includes('exec')))
})
