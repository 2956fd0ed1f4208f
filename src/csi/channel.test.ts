// Is it noticed when a driver goes and comes back?
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openChannel } from './channel.ts'
import { serveOnSocket } from './serve.ts'
import { createWire, csiServices } from './service.ts'

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
