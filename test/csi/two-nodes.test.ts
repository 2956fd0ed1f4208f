// Two nodes, and a driver whose volumes lie on one of them: does every pod get to its volumes?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCsiWorld, eventually, furnish, modelClaim } from '../kit/csi-cluster.ts'
import { podRequest } from '../kit/objects.ts'

const volumeOf = (claimName: string) => ({ name: claimName, persistentVolumeClaim: { claimName } })

test('pods with two claims each get the only node that has the driver, however full it is', async () => {
  const world = await createCsiWorld({ topologyKey: 'zone', placement: true })
  const { client } = world
  await furnish(world, { waits: true })
  const zone = { type: 'merge' as const, body: { metadata: { labels: { zone: 'node-id' } } } }
  await client.patch('Node', { name: 'n1' }, zone)
  await client.create('Node', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n0', labels: { zone: 'b' } } })
  const life = world.start()
  const names = Array.from({ length: 15 }, (_, at) => `p${at}`)
  for (const name of names) {
    const claims = [`${name}-a`, `${name}-b`]
    for (const claim of claims) await client.create('PersistentVolumeClaim', modelClaim(claim))
    await client.create('Pod', podRequest(name, { volumes: claims.map(volumeOf) }))
  }
  const nodes = async () => (await client.list('Pod')).items.map(({ spec }) => spec?.nodeName)
  await eventually(world, 'every pod is placed', async () => (await nodes()).every((name) => name !== undefined))
  assert.deepEqual([...new Set(await nodes())], ['n1'])
  assert.equal(world.storage.allocated.size, 30)
  await life.stop()
})
