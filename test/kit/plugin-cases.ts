// One volume of every type: what the node plugin contract and the fault matrix put on a model host.
import { createDisk } from '../../src/host/model/disks.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createFilesystem } from '../../src/host/model/tree.ts'
import type { Client } from '../../src/client/client.ts'
import type { NodePluginDeps } from '../../src/plugins/shared/deps.ts'
import type { VolumeSpec } from '../../src/volume/spec.ts'
import { FakeIscsi, showFcDisk } from './fake-iscsi.ts'
import { inline, signal } from './plugin-fixture.ts'
import { persistent } from './volume-specs.ts'

export interface PluginCase {
  readonly name: string
  readonly spec: VolumeSpec
  readonly fsGroup?: number
  readonly deps?: Partial<NodePluginDeps>
  /** Puts the world in order: disks, servers, API objects. */
  prepare?(host: ModelHost, client: Client): Promise<unknown>
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const iqn = 'iqn.2026-01.dev.hawser:disk'

async function objects(_host: ModelHost, client: Client): Promise<void> {
  const metadata = { name: 'o', namespace: 'default' }
  await client.create('ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1', b: '2' } })
  await client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    data: { a: base64('1'), b: base64('2') },
  })
}

/** Every built-in plugin but git-repo, which always refuses (GIT-1); those with disks also as raw block devices. */
export const pluginCases: readonly PluginCase[] = [
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
    name: 'local disk, raw',
    spec: persistent({ local: { path: '/dev/sdz' } }, { mode: 'Block' }),
    async prepare(host) {
      host.addDisk('/dev/sdz')
    },
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
    name: 'iscsi, raw',
    spec: persistent({ iscsi: { targetPortal: '10.0.0.1', iqn, lun: 0 } }, { mode: 'Block' }),
    async prepare(host) {
      new FakeIscsi(host, createDisk(1n << 30n), iqn)
    },
  },
  {
    name: 'fc, raw',
    spec: persistent({ fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 } }, { mode: 'Block' }),
    prepare: (host) => showFcDisk(host, createDisk(1n << 30n), '50060e801049cfd1', 0),
  },
  {
    name: 'fc (a stand-in for sysfs and udev)',
    spec: persistent({ fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 } }),
    prepare: (host) => showFcDisk(host, createDisk(1n << 30n), '50060e801049cfd1', 0),
  },
  {
    name: 'image (an unpacked root)',
    spec: inline({ image: { reference: 'registry/app:1' } }),
    deps: { imageRoots: () => '/tmp/image' },
    prepare: (host) => host.files.mkdirAll('/tmp/image', 0o755, signal),
  },
]
