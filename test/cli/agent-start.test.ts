// Does the start of an agent survive a server that goes away in the middle of it? Each request of the start is cut off once, whichever
// it is, and the agent must come up all the same. Real mounts: needs root.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { request as forward } from 'node:https'
import { connect, createServer as createRelay } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { authorityHash } from '../../src/apiserver/access/certificates.ts'
import { fileIn, isRoot, startServer as startCommandServer } from '../kit/command-line.ts'
import { speaking } from '../kit/speaking.ts'
import { startServer } from '../kit/server-process.ts'

const needs = { skip: !isRoot && 'needs root' }
let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-start-'))))
after(() => rmSync(place, { recursive: true, force: true }))

test('an agent starts though each of its first requests is cut off once, and says so', needs, async () => {
  await using server = await startServer(['--bare'])
  await using stack = new AsyncDisposableStack()
  const data = mkdtempSync(join(place, 'data-'))
  stack.defer(async () => void (await removeEverything(data)))
  const proxy = stack.use(await openCuttingProxy(server))
  const config = fileIn(place, 'proxy.kubeconfig', kubeconfig(proxy.url, server.token))
  for (const start of ['first', 'second']) {
    proxy.forget()
    await using agent = speaking(['agent', '--kubeconfig', config, '--data-dir', data, '--node-name', 'worker'])
    await agent.says(/^node worker is up$/m)
    for (const [name, wanted] of Object.entries(mustBeCut))
      assert.ok(
        [...proxy.cut].some((each) => wanted.test(each)),
        `${start} start: ${name} is asked: ${[...proxy.cut].join(', ')}`,
      )
    assert.match(agent.text(), /the server does not answer; trying again/)
  }
})

test(
  'a machine joins though the server goes away while it asks, and follows it to another address',
  needs,
  async () => {
    await using server = await startCommandServer('--bare')
    await using stack = new AsyncDisposableStack()
    const data = mkdtempSync(join(place, 'data-'))
    stack.defer(async () => void (await removeEverything(data)))
    const { port } = new URL(/server: (\S+)/.exec(readFileSync(server.kubeconfig, 'utf8'))?.[1] ?? '')
    // The first connection shows the authority, the second one asks for the certificate.
    const relay = stack.use(await openRelay(Number(port), [2]))
    const token = (await server.hawser('token', 'create', '--role', 'node-bootstrap')).out.trim()
    const hash = authorityHash(readFileSync(join(server.directory, 'ca.crt'), 'utf8'))
    const joining = ['--join', relay.url, '--ca-hash', hash, '--node-name', 'worker']
    {
      await using agent = speaking(['agent', '--data-dir', data, ...joining], { HAWSER_JOIN_TOKEN: token })
      await agent.says(/^node worker has joined https:.*$/m)
      await agent.says(/^node worker is up$/m)
      assert.match(agent.text(), /the server does not answer; trying again/)
    }
    const moved = `https://127.0.0.1:${port}`
    {
      await using agent = speaking(['agent', '--data-dir', data, '--join', moved])
      await agent.says(/^node worker is up$/m)
      assert.match(agent.text(), new RegExp(`node worker uses the address ${moved} of its server from now on`))
    }
    await relay[Symbol.asyncDispose]()
    await using agent = speaking(['agent', '--data-dir', data])
    await agent.says(/^node worker is up$/m)
  },
)

const mustBeCut = {
  'the cluster': /^GET \/api\/v1\/namespaces$/,
  'the lease': /^GET .*\/leases\/worker$/,
  'taking the lease': /^(POST|PATCH) .*\/leases/,
  'the node': /^GET \/api\/v1\/nodes\/worker$/,
  'the list of drivers of the node': /\/csinodes/,
}

/** Passes everything on to the server, but the connection of each request of a new kind is cut off first. */
async function openCuttingProxy(server: { readonly url: string }) {
  const cut = new Set<string>()
  const proxy = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    const name = `${method} ${url.replace(/\?.*/, '')}`
    if (!cut.has(name)) {
      cut.add(name)
      return void incoming.socket.destroy()
    }
    const onward = forward(server.url + url, { method, headers, rejectUnauthorized: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
      outgoing.on('close', () => answer.destroy())
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    cut,
    forget: () => cut.clear(),
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}

/** Another address of the server; these connections, counted from 1, are cut off. */
async function openRelay(port: number, cut: readonly number[]) {
  let count = 0
  const sockets = new Set<Socket>()
  const relay = createRelay((incoming) => {
    sockets.add(incoming)
    incoming.on('error', () => {})
    if (cut.includes(++count)) return void incoming.destroy()
    const onward = connect(port, '127.0.0.1')
    onward.on('error', () => incoming.destroy()).on('close', () => incoming.destroy())
    incoming.on('close', () => onward.destroy())
    incoming.pipe(onward).pipe(incoming)
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  relay.on('close', close)
  return {
    url: `https://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      relay.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

const kubeconfig = (server: string, token: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster: { server } }],
    users: [{ name: 'a', user: { token } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  })
