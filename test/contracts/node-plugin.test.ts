// Every built-in plugin takes the node plugin contract, on the in-memory host.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../src/api/names.ts'
import { createDisk } from '../../src/host/model/disks.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createFilesystem } from '../../src/host/model/tree.ts'
import type { PluginFixture } from '../kit/plugin-fixture.ts'
import { createModelPluginFixture, inline, signal } from '../kit/plugin-fixture.ts'
import { FakeIscsi, showFcDisk } from '../kit/fake-iscsi.ts'
import { persistent } from '../kit/volume-specs.ts'
import type { PluginCase } from './node-plugin.ts'
import { nodePluginContract } from './node-plugin.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const iqn = 'iqn.2026-01.dev.hawser:disk'

async function objects(_host: ModelHost, { client }: PluginFixture): Promise<void> {
  const metadata = { name: 'o', namespace: 'default' }
  await client.create('ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1', b: '2' } })
  await client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { a: base64('1'), b: base64('2') },
  })
}

const cases: readonly PluginCase[] = [
  { name: 'emptyDir on disk', spec: inline({ emptyDir: {} }), fsGroup: 2000 },
  { name: 'emptyDir in memory', spec: inline({ emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }) },
  {
    name: 'hostPath',
    spec: inline({ hostPath: { path: '/tmp/data', type: 'DirectoryOrCreate' } }),
    prepare: (host) => host.files.mkdirAll('/tmp/data', 0o755, signal),
  },
  {
    name: 'configMap',
    spec: inline({ configMap: { name: 'o', defaultMode: 0o644 } }),
    prepare: objects,
    fsGroup: 2000,
  },
  {
    name: 'secret',
    spec: inline({ secret: { secretName: 'o', defaultMode: 0o400 } }),
    prepare: objects,
  },
  {
    name: 'downwardAPI',
    spec: inline({
      downwardAPI: { defaultMode: 0o644, items: [{ path: 'd/name', fieldRef: { fieldPath: 'metadata.name' } }] },
    }),
  },
  {
    name: 'projected',
    spec: inline({
      projected: {
        defaultMode: 0o644,
        sources: [{ configMap: { name: 'o' } }, { secret: { name: 'o', items: [{ key: 'a', path: 's/a' }] } }],
      },
    }),
    prepare: objects,
  },
  {
    name: 'local directory',
    spec: persistent({ local: { path: '/tmp/data' } }),
    prepare: (host) => host.files.mkdirAll('/tmp/data', 0o755, signal),
    fsGroup: 1000,
  },
  {
    name: 'local disk',
    spec: persistent({ local: { path: '/dev/sdz', fsType: 'ext4' } }),
    async prepare(host) {
      host.addDisk('/dev/sdz')
    },
    fsGroup: 1000,
  },
  {
    name: 'nfs',
    spec: inline({ nfs: { server: 'files', path: '/export' } }),
    async prepare(host) {
      host.exports.set(
        'files:/export',
        createFilesystem({ type: 'nfs', source: 'files:/export', device: '0:99', capacityBytes: 1n << 40n }),
      )
    },
  },
  {
    name: 'iscsi (a stand-in for iscsiadm, sysfs and udev)',
    spec: persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0 } }),
    async prepare(host) {
      new FakeIscsi(host, createDisk(1n << 30n), iqn)
    },
  },
  {
    name: 'fc (a stand-in for sysfs and udev)',
    spec: persistent({ fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 } }),
    prepare: (host) => showFcDisk(host, createDisk(1n << 30n), '50060e801049cfd1', 0),
  },
  {
    name: 'image (an unpacked root)',
    spec: inline({ image: { reference: 'registry/app:1' } }),
    deps: () => ({ imageRoots: () => '/tmp/image' }),
    prepare: (host) => host.files.mkdirAll('/tmp/image', 0o755, signal),
  },
]

for (const each of cases) nodePluginContract(each)

test('every built-in plugin has a case here', async () => {
  const bench = await createModelPluginFixture()
  const registry = bench.registry()
  const covered = new Set(cases.map(({ spec }) => registry.find(spec).name))
  // Always refuses to mount (GIT-1).
  covered.add(pluginName('kubernetes.io/git-repo'))
  assert.deepEqual(
    registry.all().filter(({ name }) => !covered.has(name)),
    [],
  )
  await bench.close()
})
