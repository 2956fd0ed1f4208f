// Does the proxy pass calls on, tell them without secrets, and fail them as asked, over real sockets?
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { openChannel } from '../../src/csi/channel.ts'
import type { Fault } from '../../src/csi/faults.ts'
import type { SeenCall } from '../../src/csi/observed.ts'
import { startProxy } from '../../src/csi/proxy.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import { createWire, csiServices, handleUnary } from '../../src/csi/service.ts'

async function start(t: TestContext, faults: readonly (Fault | undefined)[] = []) {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-proxy-'))
  const stack = new AsyncDisposableStack()
  t.after(() => stack.disposeAsync())
  stack.defer(() => rmSync(directory, { recursive: true, force: true }))
  const path = (name: string) => join(directory, name)
  let created = 0
  const createVolume = async () => ({ volume: { volumeId: `v${++created}`, capacityBytes: 1n } })
  const handlers = { identity: {}, controller: { createVolume } }
  stack.use(
    await serveOnSocket(path('driver.sock'), csiServices, (method, bytes, signal) =>
      handleUnary(handlers, method, bytes, signal),
    ),
  )
  const calls: SeenCall[] = []
  const driver = stack.use(openChannel(path('driver.sock'))).transport
  const listen = async (answer: Parameters<typeof serveOnSocket>[2]) => {
    rmSync(path('proxy.sock'), { force: true })
    return serveOnSocket(path('proxy.sock'), csiServices, answer)
  }
  const clock = createSystemClock()
  const choose = (_rpc: string, earlier: number) => faults[earlier]
  stack.use(await startProxy({ clock, driver, listen, choose, seen: (call) => void calls.push(call) }))
  const { controller } = createWire(stack.use(openChannel(path('proxy.sock'))).transport)
  const create = (timeoutMs = 5_000) =>
    controller.createVolume({ name: 'x', secrets: { password: 'hunter2' } }, { signal: AbortSignal.timeout(timeoutMs) })
  return { calls, create, createdCount: () => created }
}

test('a call goes through and is told without its secrets', async (t) => {
  const { calls, create } = await start(t)
  assert.equal((await create()).volume?.volumeId, 'v1')
  const [call] = calls
  assert.deepEqual(call?.request, { name: 'x', secrets: { password: '[secret]' } })
  assert.deepEqual(call?.answer, { volume: { volumeId: 'v1', capacityBytes: '1' } })
  assert.ok(!JSON.stringify(calls).includes('hunter2'))
})

test('an error of the driver arrives as it is', async (t) => {
  const { calls } = await start(t, [{ kind: 'refused', status: 'RESOURCE_EXHAUSTED' }]).then(async (world) => {
    await assert.rejects(world.create(), { status: 'RESOURCE_EXHAUSTED' })
    return world
  })
  assert.equal(calls[0]?.error?.status, 'RESOURCE_EXHAUSTED')
  assert.equal(calls[0]?.fault?.kind, 'refused')
})

for (const [fault, worked] of [
  [{ kind: 'cut', when: 'before' }, 0],
  [{ kind: 'cut', when: 'after' }, 1],
  [{ kind: 'answerLost', status: 'UNAVAILABLE' }, 1],
] as const) {
  test(`${fault.kind} ${'when' in fault ? fault.when : ''}: the caller cannot know, and the next call works`, async (t) => {
    const { create, createdCount } = await start(t, [fault])
    await assert.rejects(create(), { status: 'UNAVAILABLE' })
    assert.equal(createdCount(), worked)
    // Until the caller has connected again it may be told once more that nobody is there.
    for (let tries = 0; ; tries++) {
      const answer = await create().catch((error: unknown) => (tries < 20 ? undefined : Promise.reject(error as Error)))
      if (answer !== undefined) break
      await new Promise((resolve) => void setTimeout(resolve, 50))
    }
    assert.equal(createdCount(), worked + 1)
  })
}

test('a late answer comes after the deadline, and the driver worked all the same', async (t) => {
  const { create, createdCount } = await start(t, [{ kind: 'late', ms: 400 }])
  const begun = performance.now()
  await assert.rejects(create(150))
  assert.ok(performance.now() - begun < 390)
  assert.equal(createdCount(), 1)
})

test('a call that is sent twice reaches the driver twice', async (t) => {
  const { create, createdCount } = await start(t, [{ kind: 'twice' }])
  assert.equal((await create()).volume?.volumeId, 'v2')
  assert.equal(createdCount(), 2)
})
