import assert from 'node:assert/strict'
import test from 'node:test'
import type { PersistentVolume } from '../api/generated/types.ts'
import { allowsMultiAttach } from './access.ts'
import { VolumeError } from './effect.ts'
import { isMigratedInline, migrated } from './migration.ts'
import { specOfPersistentVolume, specOfPodVolume } from './spec.ts'

function volume(source: object, labels: Record<string, string> = {}): PersistentVolume {
  return {
    metadata: { name: 'pv', labels },
    spec: { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'], ...source },
  }
}
const csiOf = (source: object, labels?: Record<string, string>) => {
  const spec = migrated(specOfPersistentVolume(volume(source, labels), false))
  assert.equal(spec.source.kind, 'csi')
  return spec.persistentVolume?.spec?.csi
}

test('each in-tree disk becomes a volume of its CSI driver (MGR-12)', () => {
  const gce = { gcePersistentDisk: { pdName: 'd', fsType: 'xfs', partition: 2 } }
  const unspecified = { driver: 'pd.csi.storage.gke.io', fsType: 'xfs', volumeAttributes: { partition: '2' } }
  assert.deepEqual(csiOf(gce), { ...unspecified, volumeHandle: 'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d' })
  const zone = { 'topology.kubernetes.io/zone': 'us-east1-b' }
  assert.equal(csiOf(gce, zone)?.volumeHandle, 'projects/UNSPECIFIED/zones/us-east1-b/disks/d')
  const zones = { 'topology.kubernetes.io/zone': 'us-east1-b__us-east1-c' }
  assert.equal(csiOf(gce, zones)?.volumeHandle, 'projects/UNSPECIFIED/regions/us-east1/disks/d')
  assert.equal(csiOf({ awsElasticBlockStore: { volumeID: 'aws://eu-1a/vol-1' } })?.volumeHandle, 'vol-1')
  assert.deepEqual(csiOf({ awsElasticBlockStore: { volumeID: 'vol-2' } })?.volumeAttributes, { partition: '0' })
  const azure = { diskName: 'd', diskURI: '/subscriptions/x/d', kind: 'Managed', cachingMode: 'None', fsType: 'xfs' }
  assert.deepEqual(csiOf({ azureDisk: azure }), {
    driver: 'disk.csi.azure.com',
    volumeHandle: '/subscriptions/x/d',
    fsType: 'xfs',
    volumeAttributes: { kind: 'Managed', cachingmode: 'None', fstype: 'xfs' },
  })
  assert.equal(csiOf({ cinder: { volumeID: 'c' } })?.driver, 'cinder.csi.openstack.org')
  assert.equal(csiOf({ portworxVolume: { volumeID: 'p' } })?.driver, 'pxd.portworx.com')
  const vsphere = { driver: 'csi.vsphere.vmware.com', volumeHandle: '[ds] v.vmdk' }
  assert.deepEqual(csiOf({ vsphereVolume: { volumePath: '[ds] v.vmdk' } }), vsphere)
})

test('a file share is named by everything its driver needs, the namespace of the secret included (MGR-12)', () => {
  const share = { secretName: 'azure-storage-account-acc-secret', shareName: 's' }
  const source = (namespace: string) => ({
    driver: 'file.csi.azure.com',
    volumeHandle: `#acc#s#pv#${namespace}`,
    volumeAttributes: { sharename: 's' },
    nodeStageSecretRef: { name: share.secretName, namespace },
  })
  assert.deepEqual(csiOf({ azureFile: { ...share, secretNamespace: 'own' } }), source('own'))
  assert.deepEqual(csiOf({ azureFile: share, claimRef: { namespace: 'claims', name: 'c' } }), source('claims'))
  const inline = migrated(specOfPodVolume({ name: 'v', azureFile: { secretName: 'plain', shareName: 's' } }), 'pods')
  assert.equal(inline.name, '#plain#s#v#pods')
  assert.deepEqual(inline.persistentVolume?.spec.accessModes, ['ReadWriteMany'])
})

test('what no driver can serve is an error of that volume (MGR-12)', () => {
  for (const source of [
    { azureFile: { secretName: 'x', shareName: 's' } },
    { azureDisk: { diskName: 'd', diskURI: '/d', kind: 'Dedicated' } },
    { awsElasticBlockStore: { volumeID: 'aws://eu-1a/disk-1' } },
  ])
    assert.throws(() => csiOf(source), VolumeError)
})

test('the old source is gone from a translated volume, and everything else is as it was', () => {
  const spec = migrated(specOfPersistentVolume(volume({ cinder: { volumeID: 'c' } }), true))
  assert.equal(spec.persistentVolume?.spec?.cinder, undefined)
  assert.deepEqual(
    [spec.name, spec.from, spec.readOnly, isMigratedInline(spec)],
    ['pv', 'persistentVolume', true, false],
  )
})

test('an inline disk gets a made-up volume for one node; other volumes are left alone (MGR-12, ID-6)', () => {
  const inline = migrated(specOfPodVolume({ name: 'd', awsElasticBlockStore: { volumeID: 'vol-1', fsType: 'ext4' } }))
  assert.equal(inline.name, 'ebs.csi.aws.com-vol-1')
  assert.ok(isMigratedInline(inline))
  assert.equal(allowsMultiAttach(inline), false)
  const readOnly = migrated(specOfPodVolume({ name: 'd', gcePersistentDisk: { pdName: 'd', readOnly: true } }))
  assert.deepEqual(readOnly.persistentVolume?.spec.accessModes, ['ReadOnlyMany'])
  const plain = specOfPodVolume({ name: 'e', emptyDir: {} })
  assert.equal(migrated(plain), plain)
})
