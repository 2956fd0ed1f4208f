// Do the commands that look into pods end when they cannot go on? A server that answers and then vanishes, a port that is taken,
// an input that stays open: one sentence, and the program is gone.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { after, test } from 'node:test'
import { acceptKey } from '../../src/streams/websocket-frames.ts'
import { launcher } from '../kit/server-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'hawser-troubles-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** Agrees to every stream, and then does with it what the test says. */
async function fakeServer(use: (socket: Duplex) => void) {
  const server = createHttpServer()
  server.on('upgrade', (request, socket) => {
    const key = acceptKey(request.headers['sec-websocket-key'] ?? '')
    socket.on('error', () => {})
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ${key}\r\n\r\n`,
    )
    use(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const kubeconfig = join(directory, 'kubeconfig')
  const named = (name: string, rest: object) => [{ name: 'x', [name]: rest }]
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: named('cluster', { server: url }),
    users: named('user', { token: 'x' }),
    contexts: named('context', { cluster: 'x', user: 'x' }),
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  return {
    /** Its input stays open. */
    async run(...words: string[]) {
      const child = spawn(launcher, words, { env: { ...process.env, KUBECONFIG: kubeconfig }, stdio: 'pipe' })
      const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
      let said = ''
      child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
      child.stdin.on('error', () => {})
      child.stdin.write('typed')
      const [code] = (await once(child, 'close')) as [number | null]
      clearTimeout(timer)
      child.stdin.destroy()
      return { code, said }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const vanish = (socket: Duplex) => void socket.once('data', () => socket.destroy())

test('exec ends when the connection does, though its input is open', { timeout: 60_000 }, async () => {
  await using server = await fakeServer(vanish)
  const { code, said } = await server.run('exec', 'p', '-i', '--', 'cat')
  assert.equal(code, 1)
  assert.match(said, /^hawser: the connection to pod p was lost before the command had ended[^\n]*\n$/)
})

test('attach ends when the connection does, though its input is open', { timeout: 60_000 }, async () => {
  await using server = await fakeServer(vanish)
  const { code, said } = await server.run('attach', 'p', '-i')
  assert.equal(code, 1)
  assert.match(said, /^hawser: the connection to pod p was lost while we listened[^\n]*\n$/)
})

test('port-forward ends when a port is taken, also the ports it had', { timeout: 60_000 }, async () => {
  const sockets: Duplex[] = []
  await using server = await fakeServer((socket) => sockets.push(socket))
  const taken = createServer()
  taken.listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const { code, said } = await server.run('port-forward', 'p', ':80', `${port}:81`)
  taken.close()
  for (const socket of sockets) socket.destroy()
  assert.equal(code, 1)
  assert.equal(said, `hawser: port ${port} on this machine cannot be used (EADDRINUSE); use :81 for any free port\n`)
})

test('port-forward says so when the connection is lost', { timeout: 60_000 }, async () => {
  await using server = await fakeServer((socket) => setTimeout(() => socket.destroy(), 300))
  const { code, said } = await server.run('port-forward', 'p', ':80')
  assert.equal(code, 1)
  assert.equal(said, 'hawser: the connection to pod p was lost: its ports are no longer forwarded\n')
})
