// What do probes and hooks do to a pod's life? The real agent on virtual time: startup, readiness, liveness, postStart, preStop,
// and sidecars around them, as kubectl users know them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Pod } from '../../src/api/generated/types.ts'
import type { ContainerScript } from '../../src/node/runtime/model.ts'
import { createNodeWorld, pod } from '../kit/node.ts'
import type { NodeWorldOptions } from '../kit/node.ts'

const container = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'i',
  command: ['run'],
  ...more,
})

async function life(options: NodeWorldOptions, spec: Partial<NonNullable<Pod['spec']>>) {
  const world = await createNodeWorld(options)
  const { agent } = await world.start()
  await world.create(pod('p', [], { restartPolicy: 'Always', terminationGracePeriodSeconds: 10, ...spec }))
  const get = () => world.client.get('Pod', { namespace: 'default', name: 'p' })
  const condition = async (type: string) => (await get()).status?.conditions?.find((each) => each.type === type)?.status
  const first = async () => (await get()).status?.containerStatuses?.[0]
  return { ...world, agent, get, condition, first, pass: (seconds: number) => world.clock.advance(seconds * 1000) }
}

test('a pod is ready only while its readiness probe says so', async () => {
  let healthy = false
  const one = await life(
    { answer: () => (healthy ? 200 : 503) },
    {
      containers: [
        container('c', {
          ports: [{ name: 'web', containerPort: 8080 }],
          readinessProbe: { httpGet: { path: '/ready', port: 'web' }, periodSeconds: 5, failureThreshold: 2 },
        }),
      ],
    },
  )
  await one.pass(7)
  assert.deepEqual(
    [await one.phase('p'), await one.condition('Ready'), await one.condition('ContainersReady')],
    ['Running', 'False', 'False'],
  )
  assert.deepEqual([(await one.first())?.ready, (await one.first())?.started], [false, true])
  assert.ok(
    (await one.events()).includes('Warning Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503'),
  )
  healthy = true
  await one.pass(6)
  assert.deepEqual([await one.condition('Ready'), await one.condition('ContainersReady')], ['True', 'True'])
  healthy = false
  await one.pass(6)
  assert.equal(await one.condition('Ready'), 'True', 'one failure of two')
  await one.pass(6)
  assert.equal(await one.condition('Ready'), 'False')
  assert.equal((await one.first())?.restartCount, 0, 'unready is not dead')
  await one.agent.stop()
})

test('a container that fails its liveness probe is killed and restarted, with back-off from the second time on', async () => {
  const one = await life(
    { answer: () => false },
    {
      containers: [
        container('c', { livenessProbe: { tcpSocket: { port: 1 }, periodSeconds: 1, failureThreshold: 3 } }),
      ],
    },
  )
  await one.pass(1.9)
  assert.equal((await one.first())?.restartCount, 0)
  await one.pass(1)
  assert.equal((await one.first())?.restartCount, 1)
  await one.pass(4)
  const waiting = (await one.first())?.state?.waiting
  assert.deepEqual(
    [waiting?.reason, waiting?.message?.startsWith('back-off 10s restarting failed container=c')],
    ['CrashLoopBackOff', true],
  )
  const events = await one.events()
  assert.ok(events.includes('Normal Killing: Container c failed liveness probe, will be restarted'), events.join('\n'))
  assert.ok(events.some((text) => text.startsWith('Warning Unhealthy: Liveness probe failed: connect ECONNREFUSED')))
  await one.agent.stop()
})

test('with restart policy Never a failed liveness probe ends the pod', async () => {
  const script = (): ContainerScript => ({ exec: () => 1 })
  const one = await life(
    { script },
    {
      restartPolicy: 'Never',
      containers: [container('c', { livenessProbe: { exec: { command: ['check'] }, failureThreshold: 1 } })],
    },
  )
  await one.pass(2)
  assert.equal((await one.first())?.restartCount, 0)
  assert.ok((await one.events()).includes('Normal Killing: Container c failed liveness probe'))
  assert.ok(['Succeeded', 'Failed'].includes((await one.phase('p')) ?? ''))
  await one.agent.stop()
})

test('liveness and readiness wait for the startup probe', async () => {
  let [up, asked] = [false, 0]
  const script = (): ContainerScript => ({
    exec(argv) {
      if (argv[0] === 'live') asked++
      return argv[0] === 'up' && !up ? 1 : 0
    },
  })
  const one = await life(
    { script },
    {
      containers: [
        container('c', {
          startupProbe: { exec: { command: ['up'] }, periodSeconds: 2, failureThreshold: 10 },
          livenessProbe: { exec: { command: ['live'] }, periodSeconds: 1 },
        }),
      ],
    },
  )
  await one.pass(9)
  assert.deepEqual([asked, (await one.first())?.started, await one.condition('Ready')], [0, false, 'False'])
  up = true
  await one.pass(4)
  assert.deepEqual([asked > 0, (await one.first())?.started, await one.condition('Ready')], [true, true, 'True'])
  await one.agent.stop()
})

test('a container that never passes its startup probe is restarted', async () => {
  const one = await life(
    { script: () => ({ exec: () => 1 }) },
    {
      containers: [
        container('c', { startupProbe: { exec: { command: ['up'] }, periodSeconds: 1, failureThreshold: 2 } }),
      ],
    },
  )
  await one.pass(3)
  assert.equal((await one.first())?.restartCount, 1)
  assert.ok((await one.events()).includes('Normal Killing: Container c failed startup probe, will be restarted'))
  await one.agent.stop()
})

test('an agent that comes back keeps what probes had found, and goes on asking', async () => {
  let healthy = true
  const world = await createNodeWorld({ script: () => ({ exec: () => (healthy ? 0 : 1) }) })
  const probe = { exec: { command: ['check'] }, periodSeconds: 5, failureThreshold: 1 }
  const { crash } = await world.start()
  await world.create(pod('p', [], { restartPolicy: 'Always', containers: [container('c', { readinessProbe: probe })] }))
  await world.clock.advance(6_000)
  const ready = async () =>
    (await world.client.get('Pod', { namespace: 'default', name: 'p' })).status?.containerStatuses?.[0]?.ready
  assert.equal(await ready(), true)
  crash()
  const { agent } = await world.start()
  await world.clock.advance(500)
  assert.equal(await ready(), true)
  healthy = false
  await world.clock.advance(6_000)
  assert.equal(await ready(), false)
  await agent.stop()
})

test('a failing postStart hook kills the container, which is tried again', async () => {
  let good = false
  const script = (): ContainerScript => ({
    exec: ([word]) => (word === 'hook' && !good ? 3 : 0),
  })
  const hook = { postStart: { exec: { command: ['hook'] } } }
  const one = await life({ script }, { containers: [container('a', { lifecycle: hook })] })
  await one.pass(1)
  const events = await one.events()
  assert.ok(events.includes('Warning FailedPostStartHook: PostStartHook failed: ended with 3'), events.join('\n'))
  good = true
  await one.pass(30)
  assert.equal(await one.condition('Ready'), 'True')
  await one.agent.stop()
})

test('preStop comes before the end, within the grace; a failing one is told and does not hold the pod', async () => {
  const one = await life(
    { script: () => ({ stopsAfterMs: 100_000, exec: () => 1 }) },
    {
      terminationGracePeriodSeconds: 10,
      containers: [
        container('c', { lifecycle: { preStop: { sleep: { seconds: 4 } } } }),
        container('d', { lifecycle: { preStop: { exec: { command: ['bye'] } } } }),
      ],
    },
  )
  await one.pass(1)
  await one.client.remove('Pod', { namespace: 'default', name: 'p' })
  const told = one.clock.now()
  for (let seconds = 0; seconds < 30; seconds++) {
    const ended = [...one.machine.containers.values()].filter(({ exit }) => exit !== undefined)
    if (ended.length === 2 || one.machine.containers.size === 0) break
    await one.pass(1)
  }
  const took = (one.clock.now() - told) / 1000
  assert.ok(took >= 9 && took <= 12, `hook and signals share one grace of 10 s, but it took ${took} s`)
  await one.pass(5)
  await assert.rejects(one.get())
  assert.ok((await one.events()).includes('Warning FailedPreStopHook: PreStopHook failed: ended with 1'))
  await one.agent.stop()
})

test('sidecars begin first (after their startup probe) and end last, in reverse order', async () => {
  let up = false
  const one = await life(
    { script: () => ({ stopsAfterMs: 1_000, exec: () => (up ? 0 : 1) }) },
    {
      terminationGracePeriodSeconds: 30,
      initContainers: [
        container('first', {
          restartPolicy: 'Always',
          startupProbe: { exec: { command: ['up'] }, periodSeconds: 1, failureThreshold: 99 },
        }),
        container('second', { restartPolicy: 'Always' }),
      ],
      containers: [container('main')],
    },
  )
  await one.pass(3)
  const names = () => [...one.machine.containers.values()].map(({ name }) => name)
  assert.deepEqual([names(), await one.condition('Initialized')], [['first'], 'False'])
  up = true
  await one.pass(3)
  assert.deepEqual(
    [names(), await one.condition('Initialized'), await one.condition('Ready')],
    [['first', 'second', 'main'], 'True', 'True'],
  )
  await one.client.remove('Pod', { namespace: 'default', name: 'p' })
  const seen: string[] = []
  for (let step = 0; step < 40; step++) {
    const running = [...one.machine.containers.values()].filter(({ exit }) => !exit).map(({ name }) => name)
    if (seen.at(-1) !== running.join(' ')) seen.push(running.join(' '))
    await one.pass(0.25)
  }
  assert.deepEqual(seen, ['first second main', 'first second', 'first', ''])
  await one.agent.stop()
})
