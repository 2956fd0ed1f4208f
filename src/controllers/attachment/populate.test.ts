import assert from 'node:assert/strict'
import test from 'node:test'
import { pluginName, uniqueVolumeName } from '../../api/names.ts'
import type { ContainerStatus, PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts'
import { volumeLabel } from '../../volume/identity.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import { createRegistry } from '../../volume/registry.ts'
import type { Registered } from '../../volume/registry.ts'
import { claimKeysOf, isTerminated } from '../../api/pod-claims.ts'
import { resolvePodVolumes } from './populate.ts'

const attacher = { attach: async () => '', detach: async () => {}, verify: async () => [] }
const csi: Registered<ClusterPlugin> = {
  name: pluginName('kubernetes.io/csi'),
  traits: { takesMountOptions: true, remountOnPodUpdate: false },
  supports: ({ source }) => source.kind === 'csi',
  volumeName: ({ source }) => `d^${(source.value as { volumeHandle: string }).volumeHandle}`,
  plugin: {
    attacher: ({ source }) => ((source.value as { driver: string }).driver === 'no-attach' ? undefined : attacher),
  },
}
const nfs: Registered<ClusterPlugin> = {
  ...csi,
  name: pluginName('kubernetes.io/nfs'),
  supports: ({ source }) => source.kind === 'nfs',
  plugin: {},
}
const registry = createRegistry([csi, nfs])

function claim(name: string, changes: Partial<PersistentVolumeClaim> = {}): PersistentVolumeClaim {
  return {
    metadata: { name, namespace: 'ns', uid: `uid-${name}` },
    spec: { volumeName: `pv-${name}` },
    status: { phase: 'Bound' },
    ...changes,
  }
}
function persistentVolume(name: string, source: object, uid = `uid-${name}`): PersistentVolume {
  return {
    metadata: { name: `pv-${name}` },
    spec: { claimRef: { uid }, volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'], ...source },
  }
}
const csiSource = (name: string, driver = 'd') => ({ csi: { driver, volumeHandle: `h-${name}` } })
function pod(...claims: string[]): Pod {
  const volumes = claims.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } }))
  return { metadata: { name: 'p', namespace: 'ns', uid: 'pod-uid' }, spec: { containers: [], nodeName: 'n', volumes } }
}
function lookups(claims: PersistentVolumeClaim[], volumes: PersistentVolume[]) {
  return {
    claim: (key: string) => claims.find(({ metadata }) => `ns/${metadata.name}` === key),
    volume: (name: string) => volumes.find(({ metadata }) => metadata.name === name),
  }
}

test('a bound claim leads to its volume; one bad volume does not affect the others (AD-6, ID-1)', () => {
  const given = lookups(
    [claim('good'), claim('loose', { status: { phase: 'Pending' } })],
    [persistentVolume('good', csiSource('good'))],
  )
  const { wanted, problems } = resolvePodVolumes(pod('missing', 'good', 'loose'), given, registry)
  assert.deepEqual(
    wanted.map(({ volume }) => volume),
    ['kubernetes.io/csi/d^h-good'],
  )
  assert.deepEqual(
    [...problems],
    [
      ['v0', 'failed to find PVC ns/missing in the cache'],
      ['v2', 'PVC ns/loose is not bound'],
    ],
  )
})

test('the volume must exist and point back at the claim (AD-6)', () => {
  const claims = [claim('gone'), claim('stolen')]
  const { wanted, problems } = resolvePodVolumes(
    pod('gone', 'stolen'),
    lookups(claims, [persistentVolume('stolen', csiSource('x'), 'other')]),
    registry,
  )
  assert.deepEqual(wanted, [])
  assert.deepEqual(
    [...problems.values()],
    ['failed to find PV pv-gone in the cache', 'PV pv-stolen is bound to another claim than ns/stolen'],
  )
})

test('types without attaching and drivers that decline it are skipped without a problem (ID-5)', () => {
  const claims = [claim('nfs'), claim('plain')]
  const volumes = [
    persistentVolume('nfs', { nfs: { server: 's', path: '/' } }),
    persistentVolume('plain', csiSource('plain', 'no-attach')),
  ]
  assert.deepEqual(resolvePodVolumes(pod('nfs', 'plain'), lookups(claims, volumes), registry), {
    wanted: [],
    problems: new Map(),
  })
})

test('a claim listed twice is one volume (ID-4)', () => {
  const { wanted } = resolvePodVolumes(
    pod('c', 'c'),
    lookups([claim('c')], [persistentVolume('c', csiSource('c'))]),
    registry,
  )
  assert.equal(wanted.length, 1)
})

test('a generic ephemeral volume needs a claim that the pod controls (AD-6)', () => {
  const ephemeral: Pod = {
    ...pod(),
    spec: { containers: [], nodeName: 'n', volumes: [{ name: 'scratch', ephemeral: {} }] },
  }
  const owned = claim('p-scratch', {
    metadata: {
      name: 'p-scratch',
      namespace: 'ns',
      uid: 'uid-p-scratch',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'pod-uid', controller: true }],
    },
  })
  const volumes = [persistentVolume('p-scratch', csiSource('e'))]
  assert.equal(resolvePodVolumes(ephemeral, lookups([owned], volumes), registry).wanted.length, 1)
  const foreign = resolvePodVolumes(ephemeral, lookups([claim('p-scratch')], volumes), registry)
  assert.deepEqual([...foreign.problems.values()], ['PVC ns/p-scratch was not created for pod ns/p (pod is not owner)'])
  assert.deepEqual(claimKeysOf(ephemeral), ['ns/p-scratch'])
})

test('a migrated volume is attached under its CSI name, an inline one carries its spec (MGR-12)', () => {
  const inline: Pod = {
    ...pod(),
    spec: {
      containers: [],
      nodeName: 'n',
      volumes: [{ name: 'd', gcePersistentDisk: { pdName: 'disk', fsType: 'ext4' } }],
    },
  }
  const [wanted] = resolvePodVolumes(inline, lookups([], []), registry).wanted
  assert.equal(wanted?.volume, 'kubernetes.io/csi/d^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk')
  assert.equal(wanted?.spec.name, 'pd.csi.storage.gke.io-disk')
  assert.deepEqual(wanted?.spec.persistentVolume?.spec, {
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Filesystem',
    csi: {
      driver: 'pd.csi.storage.gke.io',
      volumeHandle: 'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk',
      fsType: 'ext4',
      volumeAttributes: { partition: '' },
    },
  })
})

test('a pod is over when its phase says so, or when it is deleted and nothing of it runs (ID-7)', () => {
  const state = (kind: 'running' | 'waiting' | 'terminated') => [
    { state: { [kind]: {} } } as unknown as ContainerStatus,
  ]
  const of = (deleted: boolean, status: object): Pod => ({
    metadata: { name: 'p', ...(deleted ? { deletionTimestamp: 'now' } : {}) },
    spec: { containers: [] },
    status,
  })
  const table: readonly [Pod, boolean][] = [
    [of(false, { phase: 'Running', containerStatuses: state('running') }), false],
    [of(false, { phase: 'Succeeded' }), true],
    [of(false, { phase: 'Failed' }), true],
    [of(true, { phase: 'Running', containerStatuses: state('running') }), false],
    [of(true, { phase: 'Running', containerStatuses: state('terminated') }), true],
    [of(true, { phase: 'Pending' }), true],
    [of(true, { containerStatuses: state('waiting'), initContainerStatuses: state('running') }), false],
    [of(true, { containerStatuses: state('waiting'), ephemeralContainerStatuses: state('running') }), false],
    [of(false, { phase: 'Pending', containerStatuses: state('waiting') }), false],
  ]
  for (const [given, over] of table) assert.equal(isTerminated(given), over, JSON.stringify(given))
})

test('CSI volumes are labelled with their driver (MEA-14)', () => {
  const given = lookups([claim('c')], [persistentVolume('c', csiSource('c'))])
  const [wanted] = resolvePodVolumes(pod('c'), given, registry).wanted
  assert.equal(volumeLabel(wanted!.volume, wanted?.spec), 'kubernetes.io/csi:d')
  assert.equal(volumeLabel(uniqueVolumeName('kubernetes.io/iscsi/x'), undefined), 'kubernetes.io/iscsi')
})
