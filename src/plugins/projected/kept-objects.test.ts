// Does an immutable object stay what it was for the pods that have it, and only for them?

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, signal } from '../../../test/kit/plugin-fixture.ts'
import { podUid } from '../../api/names.ts'

const metadata = { name: 'o', namespace: 'default' }

test('an immutable object that is made again, or gone, changes nothing under its pod; the next pod sees what is there', async () => {
  const bench = await createModelPluginFixture()
  const make = (k: string, immutable: boolean) => bench.client.create('ConfigMap', { metadata, immutable, data: { k } })
  const { plugin, request } = mounting(bench, inline({ configMap: { name: 'o', defaultMode: 0o644 } }))
  const { plugin: volumes } = plugin
  const seen = async () => {
    await volumes.mount({ ...request, remount: true }, signal)
    return await bench.host.files.readText(`${request.target}/k`, signal)
  }
  await make('first', true)
  await volumes.mount(request, signal)
  await bench.client.remove('ConfigMap', metadata)
  assert.equal(await seen(), 'first')
  await make('second', false)
  assert.equal(await seen(), 'first')

  const uid = podUid(request.pod.metadata.uid ?? '')
  await volumes.unmount({ volumeName: request.spec.name, pod: uid, target: request.target }, signal)
  await volumes.mount(request, signal)
  assert.equal(await seen(), 'second')
  await bench.client.patch('ConfigMap', metadata, { type: 'merge', body: { data: { k: 'third' }, immutable: true } })
  assert.equal(await seen(), 'third')
  await bench.close()
})

test('a first set-up that fails holds nothing', async () => {
  const bench = await createModelPluginFixture()
  await bench.client.create('ConfigMap', { metadata, immutable: true, data: { k: 'first' } })
  const sources = [{ configMap: { name: 'o' } }, { secret: { name: 'late' } }]
  const { plugin, request } = mounting(bench, inline({ projected: { defaultMode: 0o644, sources } }))
  await assert.rejects(plugin.plugin.mount(request, signal), { code: 'ProjectedSources' })
  await bench.client.remove('ConfigMap', metadata)
  await bench.client.create('ConfigMap', { metadata, data: { k: 'second' } })
  await bench.client.create('Secret', { metadata: { name: 'late', namespace: 'default' } })
  await plugin.plugin.mount(request, signal)
  assert.equal(await bench.host.files.readText(`${request.target}/k`, signal), 'second')
  await bench.close()
})
