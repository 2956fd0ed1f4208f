// Does a volume that only an ephemeral container uses live like any other? It comes when the pod runs already; from then on
// what it shows and what it is bound to is watched (KP-4, KP-8, EXN-3, REC-9).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import { createNodeWorld, memory, pod, root } from '../kit/node.ts'

const ref = { namespace: 'default', name: 'p' }
const containers = [{ name: 'c', image: 'i', command: ['run'], volumeMounts: [{ name: 'm', mountPath: '/m' }] }]

/** A debug container that mounts the volume `v`, which nobody used before. */
async function debug(client: Client): Promise<void> {
  const container = { name: 'debug', image: 'i', command: ['look'], volumeMounts: [{ name: 'v', mountPath: '/v' }] }
  const body = { spec: { ephemeralContainers: [container] } }
  await client.patch('Pod', ref, { type: 'strategic', body }, { subresource: 'ephemeralcontainers' })
}

test('a claim that only an ephemeral container uses is heard, and its volume grows in use (KP-8, EXN-3, REC-7)', async () => {
  const world = await createDiskWorld({ attachable: false, request: '15Gi' })
  const { agent } = await world.start()
  await world.create(pod('p', [memory('m'), ...world.volumes], { containers }))
  await world.clock.advance(1_000)
  await debug(world.client)
  await world.clock.advance(5_000)
  await world.grow()
  await world.setClaim({
    phase: 'Bound',
    capacity: { storage: '10Gi' },
    allocatedResources: { storage: '15Gi' },
    allocatedResourceStatuses: { storage: 'NodeResizePending' },
  })
  await world.clock.advance(5_000)
  assert.deepEqual([world.plugin.count('expand'), (await world.claimNow()).status?.capacity], [1, { storage: '15Gi' }])
  await agent.stop()
})

test('contents that only an ephemeral container sees follow their object (REC-9)', async () => {
  const world = await createNodeWorld()
  const { agent } = await world.start()
  const object = { metadata: { name: 'o', namespace: 'default' }, data: { key: 'old' } }
  await world.client.create('ConfigMap', object)
  const uid = await world.create(pod('p', [memory('m'), { name: 'v', configMap: { name: 'o' } }], { containers }))
  await world.clock.advance(1_000)
  await debug(world.client)
  await world.clock.advance(5_000)
  const read = () =>
    world.host.quiet.files.readText(`${root}/pods/${uid}/volumes/kubernetes.io~configmap/v/key`, world.signal)
  assert.equal(await read(), 'old')
  const change = { type: 'merge', body: { data: { key: 'new' } } } as const
  await world.client.patch('ConfigMap', { namespace: 'default', name: 'o' }, change)
  await world.clock.advance(5_000)
  assert.equal(await read(), 'new')
  await agent.stop()
})
