// Does one dead volume hide how full the others are? Asked as /stats/summary asks, and as the metrics are gathered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFilesystem } from '../../src/host/model/tree.ts'
import type { Agent } from '../../src/node/agent.ts'
import { summaryOf } from '../../src/node/server/summary.ts'
import { createNodeWorld, nodeName, pod, root } from '../kit/node.ts'

type World = Awaited<ReturnType<typeof createNodeWorld>>

const names = ['a', 'b', 'c']

for (const kind of ['hangs', 'fails'] as const) {
  test(`a volume whose storage ${kind} is named as unknown, and the others of its pod are told`, async () => {
    const world = await createNodeWorld()
    for (const name of names) await addClaim(world, name)
    const { agent, metrics } = await world.start()
    const uid = await world.create(
      pod(
        'p',
        names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ),
    )
    await world.clock.advance(5_000)
    const below = `${root}/pods/${uid}/volumes/kubernetes.io~nfs/pv-a`
    world.host.faults.plant({ call: 'filesystems.usage', below, kind })
    const asked = summary(world, agent)
    await world.clock.advance(6_000)
    assert.deepEqual(await asked, [
      { name: 'a', pvcRef: { name: 'a', namespace: 'default' }, known: false },
      { name: 'b', pvcRef: { name: 'b', namespace: 'default' }, known: true },
      { name: 'c', pvcRef: { name: 'c', namespace: 'default' }, known: true },
    ])
    const claims = async () =>
      Array.from(
        (await metrics.text()).matchAll(/^kubelet_volume_stats_capacity_bytes\{.*claim="(\w+)"/gm),
        (found) => found[1],
      )
    await world.clock.advance(120_000)
    assert.deepEqual(await claims(), ['b', 'c'])
    world.host.faults.clear()
    await world.clock.advance(120_000)
    assert.deepEqual((await claims()).toSorted(), names, 'well again')
    await agent.stop()
  })
}

/** The volumes of the only pod, and whether anything is known of each. */
async function summary({ clock, signal }: World, { stats, pods }: Agent) {
  const machine = async () => ({})
  const all = await summaryOf({ clock, node: nodeName, startedAt: 0, stats, pods, machine }, signal)
  const [found] = (all as { pods: { volume: { name: string; pvcRef: object; capacityBytes?: number }[] }[] }).pods
  return found?.volume.map(({ name, pvcRef, capacityBytes }) => ({ name, pvcRef, known: capacityBytes !== undefined }))
}

async function addClaim({ client, host }: World, name: string): Promise<void> {
  const source = `server:/${name}`
  host.exports.set(source, createFilesystem({ type: 'nfs', source, device: `0:9${name}`, capacityBytes: 1n << 30n }))
  const accessModes = ['ReadWriteMany' as const]
  const capacity = { storage: '1Gi' }
  const { metadata } = await client.create('PersistentVolumeClaim', {
    metadata: { name, namespace: 'default' },
    spec: { accessModes, volumeName: `pv-${name}`, storageClassName: '', resources: { requests: capacity } },
  })
  await client.create('PersistentVolume', {
    metadata: { name: `pv-${name}` },
    spec: {
      ...{ capacity, accessModes, nfs: { server: 'server', path: `/${name}` } },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name, uid: metadata.uid! },
    },
  })
  const bound = { type: 'merge', body: { status: { phase: 'Bound', capacity } } } as const
  await client.patch('PersistentVolumeClaim', { namespace: 'default', name }, bound, { subresource: 'status' })
}
