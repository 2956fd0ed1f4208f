// A pod fills its emptyDir above the size it said: who ends, who stays, and what is left (EMPTY-10)?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodUid } from '../../src/api/names.ts'
import { createNodeWorld, memory, pod, root } from '../kit/node.ts'

const limited = { name: 'v', emptyDir: { sizeLimit: '1Mi' } }

async function createWorld() {
  const world = await createNodeWorld({ manifestDirectory: '/manifests' })
  const { files } = world.host.quiet
  const fill = (uid: PodUid, kilobytes: number) =>
    files.writeFile(
      `${root}/pods/${uid}/volumes/kubernetes.io~empty-dir/v/data`,
      new Uint8Array(kilobytes * 1024),
      { mode: 0o644 },
      world.signal,
    )
  const status = async (name: string) => (await world.client.get('Pod', { namespace: 'default', name })).status
  return { ...world, files, fill, status }
}

test('it is evicted with its reason, its directory goes, and its neighbours stay', async () => {
  const world = await createWorld()
  const { agent } = await world.start()
  const full = await world.create(pod('full', [limited, memory('m')], { terminationGracePeriodSeconds: 600 }))
  const almost = await world.create(pod('almost', [limited]))
  const unlimited = await world.create(pod('unlimited', [{ name: 'v', emptyDir: {} }]))
  await world.clock.advance(2_000)
  for (const [uid, kilobytes] of [
    [full, 1025],
    [almost, 900],
    [unlimited, 9000],
  ] as const)
    await world.fill(uid, kilobytes)
  await world.clock.advance(20_000)
  const { phase, reason, message, containerStatuses } = (await world.status('full')) ?? {}
  const said = 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
  assert.deepEqual([phase, reason, message], ['Failed', 'Evicted', said])
  assert.ok(containerStatuses?.[0]?.state?.terminated)
  assert.deepEqual(
    (await world.events()).filter((text) => text.includes('Evicted')),
    [`Warning Evicted: ${said}`],
  )
  assert.deepEqual([await world.phase('almost'), await world.phase('unlimited')], ['Running', 'Running'])
  assert.equal(await world.files.exists(`${root}/pods/${full}/volumes/kubernetes.io~empty-dir/v`, world.signal), false)
  await agent.stop()
})

test('what the node itself needs stays: pods of manifests, and those of the highest priority', async () => {
  const world = await createWorld()
  await world.files.mkdirAll('/manifests', 0o755, world.signal)
  const manifest = JSON.stringify({
    kind: 'Pod',
    ...pod('static', [limited]),
    metadata: { name: 'static', uid: 'given' },
  })
  await world.files.writeFile('/manifests/static.yaml', manifest, { mode: 0o644 }, world.signal)
  const { agent } = await world.start()
  const critical = { priorityClassName: 'system-node-critical' }
  const uids = [await world.create(pod('critical', [limited], critical)), 'given' as PodUid]
  await world.clock.advance(2_000)
  for (const uid of uids) await world.fill(uid, 2048)
  await world.clock.advance(60_000)
  assert.equal(await world.phase('critical'), 'Running')
  assert.deepEqual(
    (await world.events()).filter((text) => text.includes('Evicted')),
    [],
  )
  assert.equal([...world.machine.containers.values()].filter(({ exit }) => exit === undefined).length, 2)
  await agent.stop()
})

test('a tree that cannot be counted keeps nobody else from being counted', async () => {
  const world = await createWorld()
  const { agent } = await world.start()
  const stuck = await world.create(pod('stuck', [limited]))
  const full = await world.create(pod('full', [limited]))
  await world.clock.advance(2_000)
  await world.fill(full, 2048)
  const below = `${root}/pods/${stuck}`
  world.host.faults.plant({ call: 'filesystems.treeUsage', below, kind: 'hangs' })
  await world.clock.advance(80_000)
  assert.deepEqual([await world.phase('stuck'), await world.phase('full')], ['Running', 'Failed'])
  await agent.stop()
})
