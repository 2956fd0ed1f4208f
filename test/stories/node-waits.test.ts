// What do others hear from the node's volumes while they come and go? VM-7, VM-8, KA-8, and how failures of one volume or pod
// stay its own (DES-3, DES-13, INV-5, INV-10).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import type { Patch } from '../../src/api/verbs.ts'
import type { Answer, Call } from '../kit/device-plugin.ts'
import { createDiskWorld, disk } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod } from '../kit/node.ts'

const many = (answer: Answer, count = 12) => Array.from({ length: count }, () => answer)

test('a mount in doubt is no volume for containers, and holds the pod’s end up until it is undone (VM-7, VM-8, KA-8, TA-44)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  world.plugin.answers.set('mount', many('unknown'))
  const uid = await world.create(pod('p', world.volumes))
  await world.clock.advance(1_000)
  assert.deepEqual([[...agent.volumes.mountedVolumes(uid).keys()], agent.volumes.possiblyMounted(uid)], [[], [disk]])
  world.plugin.answers.clear()
  await world.clock.advance(5_000)
  const seen = agent.volumes.mountedVolumes(uid).get('v')
  assert.deepEqual([seen?.spec.name, seen?.mode, seen?.readOnly], ['pv', 'Filesystem', false])

  world.plugin.answers.set('unmount', many('none', 4))
  await world.client.remove('Pod', { namespace: 'default', name: 'p' })
  await world.clock.advance(4_000)
  assert.deepEqual([[...agent.volumes.mountedVolumes(uid).keys()], agent.volumes.possiblyMounted(uid)], [[], [disk]])
  assert.equal((await world.client.list('Pod', {})).items.length, 1, 'not gone before its volume')
  await world.clock.advance(30_000)
  assert.deepEqual([(await world.client.list('Pod', {})).items, agent.actual.size], [[], 0])
  await agent.stop()
})

test('read-only is the pod’s word for a claim; both names of one claim lead to the same place (VM-8)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  const source = { claimName: 'c', readOnly: true }
  const uid = await world.create(
    pod('p', [
      { name: 'a', persistentVolumeClaim: source },
      { name: 'b', persistentVolumeClaim: source },
    ]),
  )
  await world.clock.advance(1_000)
  const found = agent.volumes.mountedVolumes(uid)
  assert.deepEqual([found.get('a')?.readOnly, found.get('b')?.path], [true, found.get('a')?.path])
  await agent.stop()
})

test('in use is what is wanted or still there, sorted, and nothing that nobody attaches (VM-9, INV-8)', async () => {
  const world = await createDiskWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  await world.create(pod('p', [...world.volumes, { name: 'f', fc: { wwids: ['another'] } }, memory('m')]))
  await world.clock.advance(1_000)
  const other = 'example.com/device/another'
  assert.deepEqual(await world.inUse(), [other, disk].sort())
  const volumesAttached = [disk, other].map((name) => ({ name, devicePath: '/dev/disk' }))
  await world.nodeStatus({ volumesAttached })
  await world.clock.advance(1_000)
  assert.equal(await world.phase('p'), 'Running')
  // One of the two cannot be undone: it alone stays in use.
  world.plugin.answers.set('unmountDevice', many('none', 1))
  await world.remove('p')
  await world.clock.advance(200)
  assert.equal((await world.inUse()).length, 1)
  await world.clock.advance(5_000)
  assert.deepEqual(await world.inUse(), [])
  await agent.stop()
})

test('that a volume waits for an operation on it is told when that lasts, and no longer than it lasts (NPO-6a)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  world.plugin.meanwhile.set('mount', () => world.clock.sleep(1_000, world.signal))
  await world.create(pod('p', world.volumes))
  await world.create(pod('q', world.volumes))
  const reasons = () => (agent.waiting.get(disk) ?? []).map(({ reason }) => reason)
  await world.clock.advance(200)
  assert.deepEqual(reasons(), [])
  await world.clock.advance(100)
  assert.deepEqual(reasons(), ['busy', 'busy'])
  await world.clock.advance(800)
  assert.deepEqual(reasons(), [], 'its own turn has come')
  await world.clock.advance(1_000)
  assert.deepEqual(await Promise.all(['p', 'q'].map(world.phase)), ['Running', 'Running'])
  await agent.stop()
})

test('a slow report of the whole status does not take back what was said of volumes meanwhile (NSP-2, INV-8)', async () => {
  const slow = { ms: 0 }
  let sleep: (ms: number) => Promise<void> = () => Promise.resolve()
  const through = (client: Client): Client => ({
    ...client,
    patch: (async (kind: 'Node', ref: { name: string }, patch: Patch, ...rest: []) => {
      const whole = kind === 'Node' && 'conditions' in ((patch.body as { status?: object }).status ?? {})
      if (whole && slow.ms > 0) await sleep(slow.ms)
      return client.patch(kind, ref, patch, ...rest)
    }) as Client['patch'],
  })
  const world = await createDiskWorld({ through })
  sleep = (ms) => world.clock.sleep(ms, world.signal)
  const { agent } = await world.start()
  await world.clock.advance(299_500)
  slow.ms = 5_000
  await world.clock.advance(1_000) // the periodic report of everything is under way
  await world.create(pod('p', world.volumes))
  await world.clock.advance(60_000)
  assert.deepEqual(await world.inUse(), [disk])
  assert.deepEqual(
    agent.waiting.get(disk)?.map(({ reason }) => reason),
    ['notAttached'],
  )
  await agent.stop()
})

test('what one pod’s failures made us wait for is forgotten when its volume goes (DES-3, WA-5)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  world.plugin.answers.set('mount', many('none', 9))
  await world.create(pod('p', world.volumes))
  await world.clock.advance(100_000) // the next try would come in more than a minute
  await world.remove('p')
  await world.clock.advance(5_000)
  assert.equal(agent.actual.size, 0)
  world.plugin.answers.clear()
  await world.create(pod('q', world.volumes))
  await world.clock.advance(1_000)
  assert.equal(await world.phase('q'), 'Running')
  await agent.stop()
})

test('mounts of one volume share a back-off, and pods whose mounts fail do not take every turn (REC-4, NPO-13)', async () => {
  const world = await createDiskWorld({ attachable: false })
  const { agent } = await world.start()
  for (const name of ['a', 'b']) world.plugin.refused.add(name)
  for (const name of ['a', 'b', 'c']) await world.create(pod(name, world.volumes))
  await world.clock.advance(10_000)
  const phases = () => Promise.all(['a', 'b', 'c'].map(world.phase))
  assert.deepEqual(await phases(), ['Pending', 'Pending', 'Running'])
  world.plugin.refused.delete('b')
  await world.clock.advance(300_000)
  assert.deepEqual(await phases(), ['Pending', 'Running', 'Running'])
  await agent.stop()
})

test('contents that fail to come again for one pod keep no other pod from starting (REC-9, NPO-13)', async () => {
  const world = await createDiskWorld({ attachable: false, remount: true })
  const { agent } = await world.start()
  await world.create(pod('a', world.volumes))
  await world.clock.advance(1_000)
  world.plugin.refused.add('a')
  await world.clock.advance(700_000)
  await world.create(pod('b', world.volumes))
  await world.clock.advance(300_000)
  assert.deepEqual([await world.phase('a'), await world.phase('b')], ['Running', 'Running'])
  await agent.stop()
})

test('that contents are made again now and then does not make a failing set-up hurry (REC-9, INV-11, BO-2)', async () => {
  const tries: number[] = []
  const through = (client: Client): Client => ({
    ...client,
    get(kind, ...rest) {
      if (kind === 'Secret') tries.push(world.clock.now())
      return client.get(kind, ...rest)
    },
  })
  const world = await createNodeWorld({ through })
  const { agent } = await world.start()
  await world.clock.advance(1_000)
  const token = { serviceAccountToken: { path: 'token', expirationSeconds: 3_600 } }
  await world.create(
    pod('p', [
      { name: 's', secret: { secretName: 'missing' } },
      { name: 't', projected: { sources: [token] } },
    ]),
  )
  await world.clock.advance(1_200_000)
  const pauses = tries.slice(1).map((time, index) => time - tries[index]!)
  assert.deepEqual(
    pauses.map((ms) => Math.round(ms / 500) / 2).slice(0, 12),
    [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, 122, 122],
  )
  // When it is there at last, nobody waits for the clock.
  await world.client.create('Secret', { metadata: { name: 'missing', namespace: 'default' } })
  await world.clock.advance(1_000)
  assert.equal((await world.client.get('Pod', { namespace: 'default', name: 'p' })).status?.phase, 'Running')
  await agent.stop()
})

test('a volume whose mount hangs holds up its own pod and nobody else (DES-13, WA-26)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  await world.clock.advance(100)
  using _fault = world.host.faults.plant({ call: 'mounts.mount', kind: 'hangs', times: 1 })
  await world.create(pod('hangs', [memory('m')]))
  await world.clock.advance(100)
  for (const name of ['one', 'two']) await world.create(pod(name, [memory('m')]))
  await world.clock.advance(1_000)
  assert.deepEqual(
    [await world.phase('hangs'), await world.phase('one'), await world.phase('two')],
    ['Pending', 'Running', 'Running'],
  )
  await world.client.remove('Pod', { namespace: 'default', name: 'one' }, { gracePeriodSeconds: 0 })
  await world.clock.advance(2_000)
  assert.equal((await world.client.list('Pod', {})).items.length, 2)
  await agent.stop()
})

test('whatever fails on the way in, nothing overlaps, and all is undone behind the pod (INV-5, INV-10)', async () => {
  const calls: Call[] = ['waitForAttach', 'mountDevice', 'mount', 'unmount', 'unmountDevice']
  const told: Answer[] = ['unknown', 'none', 'untried']
  for (const first of calls) {
    for (const second of calls) {
      for (const [index, answer] of told.entries()) {
        const world = await createDiskWorld({ attachable: false })
        const { agent } = await world.start()
        world.plugin.answers.set(first, [answer])
        world.plugin.answers.set(second, [told[(index + 1) % 3]!, answer])
        await world.create(pod('p', world.volumes))
        await world.clock.advance(700 + 400 * index)
        await world.remove('p')
        await world.create(pod('q', world.volumes))
        await world.clock.advance(20_000)
        assert.equal(await world.phase('q'), 'Running', `${first} ${second} ${answer}`)
        await world.remove('q')
        await world.clock.advance(20_000)
        const left = [world.plugin.devices.size, world.plugin.mounts.size, agent.actual.size, world.plugin.overlaps]
        assert.deepEqual(left, [0, 0, 0, 0], `${first} ${second} ${answer}`)
        await agent.stop()
      }
    }
  }
})
