// Is a client known before anything that it sends is read? Every kind of path of the API server and of a node's own server, with
// a body that is announced and never comes, one that comes in small pieces, and a wish to upgrade.
import assert from 'node:assert/strict'
import test from 'node:test'
import { connect as connectTls } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import { createAuthority, createServerCertificate } from '../../src/apiserver/access/certificates.ts'
import { startApiServer } from '../../src/apiserver/http/listen.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createAccess } from '../../src/node/server/access.ts'
import { listenForNode } from '../../src/node/server/listener.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import { silentLog } from '../../src/telemetry/log.ts'

const clock = createSystemClock()
const authority = await createAuthority()
const pair = await createServerCertificate(authority, { names: ['127.0.0.1'] }, clock.now())
const limitMs = 5_000

async function startServer() {
  const store = createMemoryStore()
  const tls = { certificate: pair.certificate, key: pair.key, authority: authority.certificate }
  const server = await startApiServer({
    store,
    clock,
    random: createRandom(Buffer.alloc(16)),
    log: silentLog,
    tokens: [],
    signingKey: Buffer.alloc(32),
    listen: { host: '127.0.0.1', port: 0 },
    tls,
  })
  return {
    port: server.port,
    async [Symbol.asyncDispose]() {
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}

const startNode = () =>
  listenForNode(
    {
      nodeServer: () => Promise.reject(new Error('a stranger has reached the node')),
      access: createAccess({ clock, node: 'n1', review: () => Promise.resolve({ status: { authenticated: false } }) }),
      log: silentLog,
      clock,
      audit: { refusal: () => undefined, write: async () => {} },
      node: 'n1',
    },
    {
      host: '127.0.0.1',
      port: 0,
      certificate: pair.certificate,
      key: pair.key,
      authority: authority.certificate,
    },
  )

/** Each kind of path, and how it may be asked. */
const serverPaths = [
  ['POST', '/api/v1/namespaces/default/pods'],
  ['PUT', '/api/v1/namespaces/default/configmaps/x'],
  ['PATCH', '/apis/storage.k8s.io/v1/storageclasses/x'],
  ['DELETE', '/api/v1/namespaces/default/pods/x'],
  ['DELETE', '/api/v1/persistentvolumes'],
  ['GET', '/api/v1/namespaces/default/pods?watch=true'],
  ['GET', '/api/v1/namespaces/default/secrets'],
  ['POST', '/api/v1/namespaces/default/pods/x/binding'],
  ['POST', '/api/v1/namespaces/default/pods/x/eviction'],
  ['POST', '/api/v1/namespaces/default/serviceaccounts/x/token'],
  ['GET', '/api/v1/namespaces/default/pods/x/log?follow=true'],
  ['POST', '/api/v1/namespaces/default/pods/x/exec?command=sh'],
  ['POST', '/api/v1/namespaces/default/pods/x/attach'],
  ['POST', '/api/v1/namespaces/default/pods/x/portforward'],
  ['GET', '/api/v1/nodes/n1/proxy/metrics'],
  ['POST', '/apis/authentication.k8s.io/v1/tokenreviews'],
  ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews'],
  ['POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews'],
  ['POST', '/apis/hawser.dev/v1/nodecertificates'],
  ['GET', '/metrics'],
  ['GET', '/openapi/v2'],
  ['GET', '/openapi/v3'],
  ['GET', '/apis'],
  ['POST', '/nothing/of/the/kind'],
  ['POST', '/'],
] as const

const nodePaths = [
  ['GET', '/healthz'],
  ['GET', '/metrics'],
  ['GET', '/pods'],
  ['GET', '/stats/summary'],
  ['GET', '/containerLogs/default/p/c?follow=true'],
  ['POST', '/exec/default/p/c?command=sh&output=1'],
  ['POST', '/attach/default/p/c?output=1'],
  ['POST', '/portForward/default/p'],
  ['POST', '/run/default/p/c?cmd=sh'],
  ['POST', '/hawser.dev/driver/x'],
  ['POST', '/'],
] as const

const bodies = {
  'a body that is announced and does not come': { headers: 'content-length: 3000000\r\n', sent: '' },
  'a body in pieces without an end': { headers: 'transfer-encoding: chunked\r\n', sent: '1\r\n{\r\n' },
  'a wish to upgrade': { headers: 'connection: Upgrade\r\nupgrade: SPDY/3.1\r\n', sent: 'what comes after' },
  'a wish to upgrade, with a body': {
    headers: 'connection: Upgrade\r\nupgrade: websocket\r\ncontent-length: 3000000\r\n',
    sent: '{',
  },
} as const

/** The status that comes though the request has not ended. */
async function answerTo(port: number, head: string, sent: string): Promise<number> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  socket.on('error', () => {})
  try {
    socket.write(`${head}\r\n${sent}`)
    return await firstStatus(socket)
  } finally {
    socket.destroy()
  }
}

function firstStatus(socket: TLSSocket): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms: ${text}`)), limitMs)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const [, code] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? []
      if (code === undefined || code === '100') return
      clearTimeout(timer)
      resolve(Number(code))
    })
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`closed without an answer: ${text}`))
    })
  })
}

const listeners = [
  { name: 'the API server', start: startServer, paths: serverPaths },
  { name: "a node's own server", start: startNode, paths: nodePaths },
]
for (const { name, start, paths } of listeners)
  for (const [what, { headers, sent }] of Object.entries(bodies))
    for (const [who, authorization] of [
      ['a stranger', ''],
      ['a wrong token', 'authorization: Bearer nobody\r\n'],
    ] as const)
      test(`${name} refuses ${who} on every path at once: ${what}`, { timeout: 60_000 }, async () => {
        await using server = await start()
        const answers = await Promise.all(
          paths.map(async ([method, path]) => {
            const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\n${authorization}content-type: application/json\r\n${headers}`
            return [`${method} ${path}`, await answerTo(server.port, head, sent)] as const
          }),
        )
        const others = answers.filter(([, code]) => code !== 401 && code !== 403)
        assert.deepEqual(others, [])
      })

test('what is open to everybody is answered without waiting for a body', { timeout: 60_000 }, async () => {
  await using server = await startServer()
  for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
    const head = `GET ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n`
    assert.equal(await answerTo(server.port, head, '{'), 200, path)
  }
})
