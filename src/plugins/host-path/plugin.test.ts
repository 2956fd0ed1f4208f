// Does a hostPath leave the node's own path as it is? HOST-1, HOST-2, HOST-4, HOST-5.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createModelPluginFixture,
  inline,
  mountPoints,
  mounting,
  picture,
  signal,
} from '../../../test/kit/plugin-fixture.ts'
import { persistent } from '../../../test/kit/volume-specs.ts'
import { podUid } from '../../api/names.ts'
import { createRandom } from '../../clock/random.ts'
import hostPath from './plugin.ts'

test('the path itself is handed on: nothing is made, owned, mounted or removed (HOST-1, HOST-2, HOST-4, FSG-5)', async () => {
  const bench = await createModelPluginFixture()
  await bench.host.files.mkdir('/tmp/data', 0o700, signal)
  const { plugin, request } = mounting(bench, inline({ hostPath: { path: '/tmp/data', type: 'Directory' } }), {
    ownership: { fsGroup: 2000 },
  })
  const before = await picture(bench.host, '/var')
  await plugin.plugin.mount(request, signal)
  assert.equal(plugin.plugin.path?.(request.spec, request.target), '/tmp/data')
  await plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target: request.target }, signal)
  assert.deepEqual(await picture(bench.host, '/var'), before)
  assert.deepEqual(await mountPoints(bench.host, '/var'), [])
  const { mode, gid } = await bench.host.files.stat('/tmp/data', signal)
  assert.deepEqual([mode, gid], [0o700, 0])
  await bench.close()
})

test('name, and read-only only by the claim (HOST-1)', () => {
  assert.equal(hostPath.volumeName(inline({ hostPath: { path: '/a/b' } }) as never), '/a/b')
  const node = hostPath.node({ host: undefined as never })
  const facts = [true, false].map((readOnly) => node.readOnly?.(persistent({ hostPath: { path: '/a' } }, { readOnly })))
  assert.deepEqual(facts, [true, false])
})

test('the provisioner is off unless switched on, makes directories under /tmp, and deletes nothing elsewhere (HOST-5)', async () => {
  assert.deepEqual(hostPath.cluster?.({}), {})
  const bench = await createModelPluginFixture()
  const cluster = hostPath.cluster?.({ hostPathProvisioning: { host: bench.host, random: createRandom(1) } })
  assert.ok(cluster?.provision && cluster.remove)
  const claim = (volumeMode: 'Filesystem' | 'Block') => ({
    metadata: { name: 'c' },
    spec: { volumeMode, resources: { requests: { storage: '1Gi' } } },
  })
  const request = { storageClass: { metadata: { name: 'k' }, provisioner: 'p' }, volumeName: 'pv' }
  await assert.rejects(cluster.provision({ ...request, claim: claim('Block') }, signal), /block volume provisioning/)
  const made = await cluster.provision({ ...request, claim: claim('Filesystem') }, signal)
  const path = made.spec?.hostPath?.path ?? ''
  assert.match(path, /^\/tmp\/hostpath_pv\/[0-9a-f-]{36}$/)
  assert.equal((await bench.host.files.stat(path, signal)).mode, 0o750)
  assert.equal(made.metadata.annotations?.['kubernetes.io/createdby'], 'hostpath-dynamic-provisioner')
  await cluster.remove(persistent({ hostPath: { path } }), signal)
  assert.equal(await bench.host.files.exists(path, signal), false)
  for (const elsewhere of ['/var', '/tmp/', '/tmp/../var'])
    await assert.rejects(cluster.remove(persistent({ hostPath: { path: elsewhere } }), signal), { code: 'RefusedPath' })
  await bench.close()
})
