// How full is a volume, by each of the ways of counting? METRIC-1 … METRIC-6.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, signal } from '../../../test/kit/plugin-fixture.ts'
import { persistent } from '../../../test/kit/volume-specs.ts'
import { createFilesystem } from '../../host/model/tree.ts'
import { filesystemUsage } from './usage.ts'

test('a filesystem of its own tells capacity, used, available and inodes (METRIC-1, METRIC-3)', async () => {
  const bench = await createModelPluginFixture()
  const share = createFilesystem({ type: 'nfs', source: 's:/x', device: '0:99', capacityBytes: 1n << 20n })
  bench.host.exports.set('s:/x', share)
  const { plugin, request } = mounting(bench, inline({ nfs: { server: 's', path: '/x' } }))
  await plugin.plugin.mount(request, signal)
  const usage = await plugin.plugin.usage?.({ spec: request.spec, path: request.target }, signal)
  const whole = await bench.host.filesystems.usage(request.target, signal)
  assert.deepEqual(usage, {
    time: bench.clock.now(),
    capacityBytes: 1n << 20n,
    availableBytes: whole.availableBytes,
    usedBytes: whole.usedBytes,
    inodes: whole.inodes,
    inodesFree: whole.inodesFree,
    inodesUsed: whole.inodesUsed,
  })
  await bench.close()
})

test('a block device has a size and nothing else (METRIC-4)', async () => {
  const bench = await createModelPluginFixture()
  bench.host.addDisk('/dev/sdx')
  const spec = persistent({ local: { path: '/dev/sdx' } }, { mode: 'Block' })
  const usage = await bench.registry().find(spec).plugin.usage?.({ spec, path: '/dev/sdx' }, signal)
  assert.deepEqual(usage, { time: bench.clock.now(), capacityBytes: 1n << 30n })
  await bench.close()
})

test('host paths and images have no figures; no path is an error; only successes are kept (METRIC-5, METRIC-6)', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  for (const spec of [inline({ hostPath: { path: '/tmp' } }), inline({ image: { reference: 'r' } })])
    assert.equal(registry.find(spec).plugin.usage, undefined)
  await assert.rejects(filesystemUsage(bench.deps, '', signal), { code: 'NoPathDefined' })

  const { plugin, request } = mounting(bench, inline({ downwardAPI: { items: [], defaultMode: 0o644 } }))
  await plugin.plugin.mount(request, signal)
  const ask = async () => plugin.plugin.usage?.({ spec: request.spec, path: request.target }, signal)
  bench.host.faults.plant({ call: 'filesystems.treeUsage', kind: 'fails', times: 1 })
  await assert.rejects(ask(), { code: 'EIO' })
  const first = await ask()
  await bench.host.files.writeFile(`${request.target}/more`, 'x'.repeat(10_000), { mode: 0o644 }, signal)
  assert.deepEqual(await ask(), first)
  await bench.close()
})
