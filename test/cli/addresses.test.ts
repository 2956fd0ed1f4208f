// Can a server be reached by the addresses it listens on, with certificates that fit? Needs no root: servers without nodes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { hostname, networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { checkServerIdentity as check, connect } from 'node:tls'
import { parse } from 'yaml'
import { launcher } from '../kit/server-process.ts'
import { hawser } from '../kit/command-line.ts'

let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-addresses-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const own = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address
const needsAddress = { skip: own === undefined && 'this machine has no address but loopback' }

test('a server on all addresses is reached by each of them, and its kubeconfig works', needsAddress, async () => {
  const data = mkdtempSync(join(place, 'all-'))
  await using server = await up(data, '--listen', '0.0.0.0:0')
  const { url, authority } = cluster(data)
  assert.equal(url, `https://127.0.0.1:${server.port}`)
  const nodes = await hawser(['get', 'nodes'], { KUBECONFIG: join(data, 'kubeconfig') })
  assert.equal(nodes.code, 0, nodes.err)
  for (const host of ['127.0.0.1', own ?? '']) await trusted(host, host, server.port, authority)
  await trusted('127.0.0.1', hostname(), server.port, authority)
  const given = await hawser(['token', 'bob', '--as-kubeconfig'], { KUBECONFIG: join(data, 'kubeconfig') })
  assert.match(given.out, new RegExp(`server: https://${own}:${server.port}\n`), 'works on another machine too')
})

test('several addresses, and names that only others know', needsAddress, async () => {
  const data = mkdtempSync(join(place, 'several-'))
  const listen = ['--listen', `${own}:0`, '--listen', '127.0.0.1:0']
  await using server = await up(data, ...listen, '--advertise', 'storage.example:443', '--advertise', '198.51.100.7')
  const { url, authority } = cluster(data)
  assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/)
  await trusted(own ?? '', own ?? '', server.port, authority)
  const local = Number(new URL(url).port)
  for (const name of ['127.0.0.1', '198.51.100.7', 'storage.example'])
    await trusted('127.0.0.1', name, local, authority)
  const given = await hawser(['token', 'bob', '--as-kubeconfig'], { KUBECONFIG: join(data, 'kubeconfig') })
  assert.match(given.out, /server: https:\/\/storage\.example:443\n/)
})

test('new names give a new certificate of the same authority', async () => {
  const data = mkdtempSync(join(place, 'again-'))
  const read = (name: string) => readFileSync(join(data, name), 'utf8')
  {
    await using server = await up(data, '--listen', '127.0.0.1:0')
    await assert.rejects(trusted('127.0.0.1', 'storage.example', server.port, cluster(data).authority), /altnames/)
  }
  const [authority, certificate] = [read('ca.crt'), read('server.crt')]
  {
    await using server = await up(data, '--listen', '127.0.0.1:0', '--advertise', 'storage.example')
    // An agent that runs since before knows the authority only.
    await trusted('127.0.0.1', 'storage.example', server.port, authority)
  }
  assert.equal(read('ca.crt'), authority)
  assert.notEqual(read('server.crt'), certificate)
  const renewed = read('server.crt')
  await using _server = await up(data, '--listen', '127.0.0.1:0', '--advertise', 'storage.example')
  assert.equal(read('server.crt'), renewed)
})

test('an address that cannot be advertised is refused', async () => {
  const wrong = await hawser(['up', '--bare', '--advertise', '0.0.0.0'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.err, /--advertise takes an address that others reach, not "0\.0\.0\.0"/)
  const url = await hawser(['up', '--bare', '--advertise', 'https://storage.example'])
  assert.match(url.err, /--advertise takes HOST or HOST:PORT, not "https:\/\/storage\.example"/)
})

interface Running extends AsyncDisposable {
  /** Of the first address. */
  readonly port: number
}

async function up(data: string, ...args: string[]): Promise<Running> {
  const child: ChildProcess = spawn(launcher, ['up', '--bare', '--data-dir', data, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  const ready = Promise.withResolvers<number>()
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (piece: Buffer) => {
      text += piece.toString()
      const [, port] = /API server listens on https:\/\/\S+:(\d+)[^]*KUBECONFIG=/.exec(text) ?? []
      if (port !== undefined) ready.resolve(Number(port))
    })
  }
  child.once('exit', () => ready.reject(new Error(text)))
  return {
    port: await ready.promise,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function cluster(data: string): { readonly url: string; readonly authority: string } {
  const config = parse(readFileSync(join(data, 'kubeconfig'), 'utf8')) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  }
  const [first] = config.clusters
  const authority = Buffer.from(first?.cluster['certificate-authority-data'] ?? '', 'base64').toString()
  return { url: first?.cluster.server ?? '', authority }
}

/** Rejects unless the certificate shown there is good for this name. */
async function trusted(host: string, name: string, port: number, authority: string): Promise<void> {
  const socket = connect({ host, port, ca: authority, checkServerIdentity: (_host, shown) => check(name, shown) })
  try {
    await once(socket, 'secureConnect')
  } finally {
    socket.destroy()
  }
}
