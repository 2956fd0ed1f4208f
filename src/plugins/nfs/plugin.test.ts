// Is a directory of a file server mounted once, with its options, and left behind clean? NFS-1 … NFS-4.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createModelPluginFixture, inline, mounting, signal } from '../../../test/kit/plugin-fixture.ts'
import { persistent } from '../../../test/kit/volume-specs.ts'
import { podUid } from '../../api/names.ts'
import { createFilesystem } from '../../host/model/tree.ts'
import nfs from './plugin.ts'

test('name; an IPv6 server stands in brackets (NFS-1)', async () => {
  const bench = await createModelPluginFixture()
  const spec = inline({ nfs: { server: 'fd00::1', path: '/x' } })
  assert.equal(nfs.volumeName(spec as never), 'fd00::1//x')
  const { plugin, request } = mounting(bench, spec)
  await assert.rejects(plugin.plugin.mount(request, signal), /Mounting arguments: -t nfs \[fd00::1\]:\/x /)
  await bench.close()
})

test('sorted options, each once, and ro; a failed mount leaves no directory (NFS-2, PLUG-12)', async () => {
  const bench = await createModelPluginFixture()
  const spec = persistent(
    { nfs: { server: 's', path: '/x' } },
    { mountOptions: ['vers=4.1', 'hard', '', 'hard'], readOnly: true },
  )
  const { plugin, request } = mounting(bench, spec)
  await assert.rejects(plugin.plugin.mount(request, signal), {
    message: new RegExp(
      `^mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o hard,ro,vers=4.1 s:/x ${request.target}\n`,
    ),
  })
  assert.equal(await bench.host.files.exists(request.target, signal), false)
  await bench.close()
})

test('mounted once, no group is set, and a name is enough to unmount, by force if the server is gone (NFS-2, NFS-3, NFS-4)', async () => {
  const bench = await createModelPluginFixture()
  bench.host.exports.set(
    's:/x',
    createFilesystem({ type: 'nfs', source: 's:/x', device: '0:99', capacityBytes: 1n << 20n }),
  )
  const { plugin, request } = mounting(bench, inline({ nfs: { server: 's', path: '/x' } }), {
    ownership: { fsGroup: 2000 },
  })
  await plugin.plugin.mount(request, signal)
  await plugin.plugin.mount(request, signal)
  const { target } = request
  const here = (await bench.host.mounts.list(signal)).filter(({ mountPoint }) => mountPoint === target)
  assert.deepEqual([here.length, (await bench.host.files.stat(target, signal)).gid], [1, 0])
  const restored = await plugin.plugin.restore?.(
    { volumeName: 'v', pod: podUid('uid-1'), path: target, mode: 'Filesystem' },
    signal,
  )
  assert.deepEqual(restored?.source, { kind: 'nfs', value: { server: '', path: 'v' } })
  bench.host.faults.plant({ call: 'mounts.unmount', kind: 'fails', code: 'TIMEOUT', times: 1 })
  await plugin.plugin.unmount({ volumeName: 'v', pod: podUid('uid-1'), target }, signal)
  assert.equal(await bench.host.files.exists(target, signal), false)
  await bench.close()
})
