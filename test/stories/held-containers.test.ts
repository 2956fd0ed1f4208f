// A container that cannot start, or ends again and again: does `hawser why` say why, and when it is tried next?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../src/why/explain.ts'
import { gatherFacts } from '../../src/why/gather.ts'
import type { ContainerScript } from '../../src/node/runtime/model.ts'
import { createNodeWorld, memory, pod } from '../kit/node.ts'

async function worldWith(script: ContainerScript) {
  const world = await createNodeWorld({ script: () => script })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')], { restartPolicy: 'Always' }))
  const why = async () => {
    const subject = { kind: 'Pod', namespace: 'default', name: 'p' } as const
    const { blocked, verdict } = explain(await gatherFacts(world.client, subject, world.clock.now()))
    const { cause, sentence, attempts, nextTry = '' } = blocked ?? {}
    return { cause, sentence, attempts, verdict, nextMs: Date.parse(nextTry) - world.clock.now() }
  }
  return { ...world, agent, why }
}

test('a container whose start fails: the cause, and when the next try comes', async () => {
  const script: { startError?: string } = { startError: 'no such program' }
  const { clock, agent, why } = await worldWith(script)
  await clock.advance(20_000)
  const { nextMs, ...told } = await why()
  const sentence = 'the volumes of pod p are mounted, but its container is not started: c: no such program'
  assert.deepEqual(told, { cause: 'containerNotStarted', sentence, attempts: undefined, verdict: 'waiting' })
  assert.ok(nextMs > 0 && nextMs <= 30_000, String(nextMs))
  delete script.startError
  await clock.advance(nextMs - 100)
  assert.equal((await why()).verdict, 'waiting')
  await clock.advance(1_000)
  assert.equal((await why()).verdict, 'healthy')
  await agent.stop()
})

test('a container that ends again and again: its code and the next try', async () => {
  const { clock, agent, why } = await worldWith({ endsAfterMs: 1_000, exitCode: 3 })
  await clock.advance(6_000)
  const { nextMs, ...told } = await why()
  const sentence = 'the volumes of pod p are mounted, but container c exited with code 3; it is restarted with back-off'
  assert.deepEqual(told, { cause: 'crashLoop', sentence, attempts: 2, verdict: 'waiting' })
  assert.ok(nextMs > 0 && nextMs <= 10_000, String(nextMs))
  await clock.advance(nextMs + 500)
  assert.equal((await why()).verdict, 'healthy', 'that was the time')
  await agent.stop()
})
