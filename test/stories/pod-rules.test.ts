// Does a pod fare as it would with a kubelet? Its gates, its user, its restarts and its deadline, in the kubelet's words.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import { createNodeWorld, memory, pod } from '../kit/node.ts'

const ref = { namespace: 'default', name: 'p' }

test('a pod with a readiness gate is ready when somebody opens the gate, and whose condition that is stays', async () => {
  const beforeWrite: (() => Promise<unknown>)[] = []
  const through = (client: Client): Client => ({
    ...client,
    async patch(kind, ...rest) {
      if (kind === 'Pod') await beforeWrite.shift()?.()
      return await client.patch(kind, ...rest)
    },
  })
  const world = await createNodeWorld({ through })
  const { agent } = await world.start()
  const open = (type: string, status: string) => {
    const body = { status: { conditions: [{ type, status }] } }
    return world.client.patch('Pod', ref, { type: 'strategic', body }, { subresource: 'status' })
  }
  const conditions = async () => {
    const { status } = await world.client.get('Pod', ref)
    const said = (status?.conditions ?? []).map(({ type, status: value, reason }) => [type, reason ?? value])
    const { Ready, ContainersReady, ...rest } = Object.fromEntries(said)
    return [Ready, ContainersReady, rest['foo/bar'], rest['foo/other']]
  }
  // While the node writes its first status, somebody else writes a condition that the node has not seen yet.
  beforeWrite.push(() => open('foo/other', 'False'))
  await world.create(pod('p', [memory('m')], { readinessGates: [{ conditionType: 'foo/bar' }] }))
  await world.clock.advance(2_000)
  assert.deepEqual(await conditions(), ['ReadinessGatesNotReady', 'True', undefined, 'False'])
  await open('foo/bar', 'True')
  await world.clock.advance(500)
  assert.deepEqual(await conditions(), ['True', 'True', 'True', 'False'])
  await open('foo/bar', 'False')
  await world.clock.advance(500)
  assert.deepEqual(await conditions(), ['ReadinessGatesNotReady', 'True', 'False', 'False'])
  await agent.stop()
})

test('a container that must not run as root and would is not started, and its pod says why', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const container = { name: 'c', image: 'i', command: ['run'] }
  const [withUser, without] = ['named', 'p'].map((name) => ({ namespace: 'default', name }))
  const root = { ...container, securityContext: { runAsUser: 0, runAsNonRoot: true } }
  const uids = {
    named: await world.create(pod('named', [], { containers: [root], securityContext: { runAsUser: 7 } })),
    p: await world.create(pod('p', [], { containers: [container], securityContext: { runAsNonRoot: true } })),
  }
  await world.clock.advance(2_000)
  const stateOf = async (at: typeof ref) =>
    (await world.client.get('Pod', at)).status?.containerStatuses?.[0]?.state?.waiting
  const reason = 'CreateContainerConfigError'
  const broken = `container's runAsUser breaks non-root policy (pod: "named_default(${uids.named})", container: c)`
  const image = `container has runAsNonRoot and image will run as root (pod: "p_default(${uids.p})", container: c)`
  assert.deepEqual(await stateOf(withUser!), { reason, message: broken })
  assert.deepEqual(await stateOf(without!), { reason, message: image })
  const events = await world.events()
  for (const message of [broken, image]) assert.ok(events.includes(`Warning Failed: Error: ${message}`), message)
  await agent.stop()
})

test('a restart that is held back is told once per pause, and only then', async () => {
  const world = await createNodeWorld({ script: () => ({ endsAfterMs: 1_000, exitCode: 1 }) })
  const { agent } = await world.start()
  const uid = await world.create(pod('p', [memory('m')], { restartPolicy: 'Always' }))
  const told = async () =>
    (await world.client.list('Event', {})).items
      .filter(({ reason }) => reason === 'BackOff')
      .map(({ type, message, count }) => [type, message, count])
  await world.clock.advance(1_800)
  assert.deepEqual(await told(), [], 'the first restart comes at once')
  const text = `Back-off restarting failed container c in pod p_default(${uid})`
  await world.clock.advance(5_000)
  assert.deepEqual(await told(), [['Warning', text, 1]])
  await world.clock.advance(12_000)
  assert.deepEqual(await told(), [['Warning', text, 2]], 'the next pause is the same news again')
  await agent.stop()
})

test('the last state of a container that runs again outlives the agent', async () => {
  const world = await createNodeWorld({
    script: ({ attempt }) => (attempt === 0 ? { endsAfterMs: 50, exitCode: 3 } : {}),
  })
  const first = await world.start()
  await world.create(pod('p', [memory('m')], { restartPolicy: 'Always' }))
  await world.clock.advance(2_000)
  const statusOf = async () => (await world.client.get('Pod', ref)).status?.containerStatuses?.[0]
  const before = await statusOf()
  assert.deepEqual([before?.restartCount, before?.lastState?.terminated?.exitCode], [1, 3])
  first.crash()
  const { agent } = await world.start()
  await world.clock.advance(2_000)
  assert.deepEqual(await statusOf(), before)
  await agent.stop()
})

test('the deadline of a pod that has ended concerns nobody', { timeout: 20_000 }, async () => {
  const world = await createNodeWorld({ script: () => ({ endsAfterMs: 1_000 }) })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')], { activeDeadlineSeconds: 10 }))
  // An agent that looked again and again would never let the time go by.
  await world.clock.advance(15_000)
  const { phase, reason } = (await world.client.get('Pod', ref)).status ?? {}
  assert.deepEqual([phase, reason], ['Succeeded', undefined])
  await agent.stop()
})

test('a pod that is over its time says so once, and fails', async () => {
  const world = await createNodeWorld({ script: () => ({ stopsAfterMs: 5_000 }) })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m')], { activeDeadlineSeconds: 10, terminationGracePeriodSeconds: 30 }))
  const told = async () => (await world.events()).filter((text) => text.includes('DeadlineExceeded'))
  await world.clock.advance(9_000)
  assert.deepEqual(await told(), [])
  await world.clock.advance(3_000)
  assert.equal(await world.phase('p'), 'Running', 'its container still uses its volumes')
  await world.clock.advance(17_000)
  const message = 'Pod was active on the node longer than the specified deadline'
  assert.deepEqual(await told(), [`Normal DeadlineExceeded: ${message}`])
  const { items } = await world.client.list('Event', {})
  assert.equal(items.find(({ reason }) => reason === 'DeadlineExceeded')?.count, 1)
  const { phase, reason } = (await world.client.get('Pod', ref)).status ?? {}
  assert.deepEqual([phase, reason], ['Failed', 'DeadlineExceeded'])
  await agent.stop()
})
