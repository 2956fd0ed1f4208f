// A FlexVolume driver's program is removed while pods use its volumes: who else feels it? Nobody, and its pods are told (FLEX-2).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../src/api/names.ts'
import { flexPlugin } from '../../src/plugins/flex-volume/plugin.ts'
import { onNode } from '../../src/volume/registry.ts'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import { memory, pod, root } from '../kit/node.ts'

const flex = { name: 'f', flexVolume: { driver: 'acme/disk' } }
const labels = { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }
const downward = { name: 'd', downwardAPI: { items: [labels] } }
const success = { status: 'Success', message: '', device: '', volumeName: '', attached: false } as const
const capabilities = {
  attach: false,
  selinuxRelabel: false,
  supportsMetrics: false,
  fsGroup: false,
  requiresFSResize: true,
}

async function worldWithDriver() {
  const world = await createDiskWorld({ attachable: false, script: () => ({ endsAfterMs: 30_000 }) })
  const { host, client, clock } = world
  const { agent, registry } = await world.start()
  const driver = { name: 'acme/disk', capabilities, call: async () => ({ ...success, volumeNewSize: undefined }) }
  const status = async (name: string) => (await client.get('Pod', { namespace: 'default', name })).status
  const addDriver = () => registry.add(onNode(flexPlugin(driver), { host: host.quiet, root, client, clock }))
  addDriver()
  return { ...world, agent, status, addDriver, dropDriver: () => registry.drop(pluginName('acme/disk')) }
}

test('the other volumes of its pods go on: contents, health, figures, and containers that begin again', async () => {
  const world = await worldWithDriver()
  const { client, clock, host, signal } = world
  const uid = await world.create(pod('p', [flex, downward, memory('m'), ...world.volumes], { restartPolicy: 'Always' }))
  await clock.advance(10_000)
  assert.equal(await world.phase('p'), 'Running')
  world.dropDriver()
  world.plugin.health = [{ status: 'Degraded', reason: 'Slow', message: '' }]
  const ref = { namespace: 'default', name: 'p' }
  await client.patch('Pod', ref, { type: 'merge', body: { metadata: { labels: { a: 'new' } } } })
  await clock.advance(300_000)
  const path = `${root}/pods/${uid}/volumes/kubernetes.io~downward-api/d/labels`
  assert.equal(Buffer.from(await host.quiet.files.readFile(path, signal)).toString(), 'a="new"')
  const { containerStatuses, volumeHealth } = (await world.status('p')) ?? {}
  assert.ok((containerStatuses?.[0]?.restartCount ?? 0) >= 2, JSON.stringify(containerStatuses))
  assert.equal(volumeHealth?.[0]?.name, 'v')
  const usages = await world.agent.stats.ofPod(uid, signal)
  assert.equal(typeof usages.get('m'), 'object')
  await world.agent.stop()
})

test('a pod that needs it is told so in the promised words, and runs once it is back (MGR-5)', async () => {
  const world = await worldWithDriver()
  world.dropDriver()
  await world.create(pod('p', [flex, memory('m')]))
  await world.create(pod('q', [memory('m')]))
  await world.clock.advance(10_000)
  assert.deepEqual([await world.phase('p'), await world.phase('q')], ['Pending', 'Running'])
  assert.deepEqual(
    (await world.events()).filter((text) => text.startsWith('Warning')),
    [
      'Warning FailedMount: Unable to attach or mount volumes: unmounted volumes=[f], unattached volumes=[], failed to process volumes=[f]: ' +
        'failed to get Plugin from volumeSpec for volume "f" err=no volume plugin matched',
    ],
  )
  world.addDriver()
  await world.clock.advance(5_000)
  assert.equal(await world.phase('p'), 'Running')
  await world.agent.stop()
})
