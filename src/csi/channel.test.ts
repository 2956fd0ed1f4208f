// Is it noticed when a driver goes and comes back?
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openChannel } from './channel.ts'
import { CsiError } from './codes.ts'
import { serveOnSocket } from './serve.ts'
import { createWire, csiServices } from './service.ts'

const never = new AbortController().signal

async function answerAt(socket: string): Promise<CsiError> {
  using channel = openChannel(socket)
  const wire = createWire(channel.transport)
  const [answer] = await Promise.allSettled([wire.identity.probe({}, { signal: never })])
  assert.ok(answer.status === 'rejected' && answer.reason instanceof CsiError, 'the call fails')
  return answer.reason
}

test('a call that does not get through says why; what the driver says itself is told apart', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-channel-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const [absent, stale, busy] = ['absent', 'stale', 'busy'].map((name) => join(directory, `${name}.sock`))
  const away = await answerAt(absent!)
  assert.deepEqual([away.status, away.code], ['UNAVAILABLE', 'DriverUnreachable'])
  assert.match(away.details, /there is no socket/)
  // A process that is killed leaves the file of its socket.
  const listenAndDie = `require('net').createServer().listen(${JSON.stringify(stale)}, () => process.kill(process.pid, 9))`
  assert.equal(spawnSync(process.execPath, ['-e', listenAndDie]).signal, 'SIGKILL')
  const left = await answerAt(stale!)
  assert.equal(left.code, 'DriverUnreachable')
  assert.match(left.details, /a socket file is left, but no process listens on it/)
  await using _server = await serveOnSocket(busy!, csiServices, async () => {
    throw new CsiError('UNAVAILABLE', 'the storage is away')
  })
  const own = await answerAt(busy!)
  assert.deepEqual([own.status, own.code, own.details], ['UNAVAILABLE', 'UNAVAILABLE', 'the storage is away'])
})

test('a driver that listens again is noticed within a second, without a call', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-channel-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const socket = join(directory, 'csi.sock')
  const serve = () => serveOnSocket(socket, csiServices, async () => new Uint8Array())
  const first = await serve()
  using channel = openChannel(socket)
  const next = (listen: (listener: () => void) => Disposable) => new Promise<void>((resolve) => void listen(resolve))
  const wire = createWire(channel.transport)
  const { signal } = new AbortController()
  await wire.identity.probe({}, { signal })
  const lost = next(channel.onLost)
  first.kill()
  await lost
  // Away for so long that gRPC's own back-off has grown to its limit.
  await new Promise((resolve) => void setTimeout(resolve, 2_000))
  rmSync(socket, { force: true })
  const ready = next(channel.onReady)
  await using _second = await serve()
  const started = performance.now()
  await ready
  assert.ok(performance.now() - started < 1_000, `noticed after ${performance.now() - started} ms`)
})
