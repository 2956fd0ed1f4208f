// Does the server fill in what Kubernetes fills in? One table per kind, and: twice is the same as once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KindMap, KindName } from '../kinds.ts'
import { applyDefaults } from './defaults.ts'
import { pullPolicyOf } from './volume-sources.ts'

function defaulted<K extends KindName>(kind: K, object: KindMap[K]): KindMap[K] {
  const once = applyDefaults(kind, object)
  assert.deepEqual(applyDefaults(kind, once), once, 'defaults applied twice')
  return once
}

test('a volume is retained and holds a filesystem (API-4)', () => {
  const { spec } = defaulted('PersistentVolume', { metadata: { name: 'v' }, spec: { hostPath: { path: '/x' } } })
  assert.deepEqual(spec, {
    persistentVolumeReclaimPolicy: 'Retain',
    volumeMode: 'Filesystem',
    hostPath: { path: '/x', type: '' },
  })
})

test('a claim asks for a filesystem; given values stay (API-4)', () => {
  const metadata = { name: 'c' }
  assert.deepEqual(defaulted('PersistentVolumeClaim', { metadata, spec: {} }).spec, {
    volumeMode: 'Filesystem',
    resources: {},
  })
  assert.equal(defaulted('PersistentVolumeClaim', { metadata, spec: { volumeMode: 'Block' } }).spec.volumeMode, 'Block')
})

test('the two data sources of a claim are kept equal', () => {
  const spec = (given: KindMap['PersistentVolumeClaim']['spec']) =>
    defaulted('PersistentVolumeClaim', { metadata: { name: 'c' }, spec: given }).spec
  const source = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' }
  assert.deepEqual(spec({ dataSource: source }).dataSourceRef, source)
  assert.deepEqual(spec({ dataSourceRef: source }).dataSource, source)
  assert.equal(spec({ dataSourceRef: { ...source, namespace: 'other' } }).dataSource, undefined)
})

test('a class deletes and binds at once (API-4)', () => {
  const given = { metadata: { name: 's' }, provisioner: 'p' }
  assert.deepEqual(defaulted('StorageClass', given), {
    ...given,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
  })
})

test('a driver gets every setting', () => {
  assert.deepEqual(defaulted('CSIDriver', { metadata: { name: 'd' }, spec: {} }).spec, {
    attachRequired: true,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    podInfoOnMount: false,
    requiresRepublish: false,
    seLinuxMount: false,
    storageCapacity: false,
    volumeLifecycleModes: ['Persistent'],
  })
  assert.equal(
    defaulted('CSIDriver', { metadata: { name: 'd' }, spec: { attachRequired: false } }).spec.attachRequired,
    false,
  )
})

test('a namespace carries its name as a label and is held by a finalizer', () => {
  assert.deepEqual(defaulted('Namespace', { metadata: { name: 'n' } }), {
    metadata: { name: 'n', labels: { 'kubernetes.io/metadata.name': 'n' } },
    spec: { finalizers: ['kubernetes'] },
  })
})

test('texts of a secret become data and win over it', () => {
  const secret = defaulted('Secret', {
    metadata: { name: 's' },
    data: { a: 'QQ==', b: 'Qg==' },
    stringData: { a: 'x' },
  })
  assert.deepEqual(secret, { metadata: { name: 's' }, type: 'Opaque', data: { a: 'eA==', b: 'Qg==' } })
})

test('a node may use what it has', () => {
  const node = defaulted('Node', { metadata: { name: 'n' }, status: { capacity: { cpu: '1' } } })
  assert.deepEqual(node.status?.allocatable, { cpu: '1' })
})

test('a pod of one container gets all policies', () => {
  const pod = defaulted('Pod', { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } })
  assert.deepEqual(pod.spec, {
    containers: [
      {
        name: 'c',
        image: 'x',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'Always',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
  })
})

test('volume sources of a pod get their modes and an absent source is an emptyDir', () => {
  const pod = defaulted('Pod', {
    metadata: { name: 'p' },
    spec: {
      containers: [],
      volumes: [
        { name: 'none' },
        { name: 'secret', secret: { secretName: 's' } },
        { name: 'config', configMap: { name: 'c', defaultMode: 0 } },
        { name: 'down', downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'metadata.name' } }] } },
        { name: 'all', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
        { name: 'host', hostPath: { path: '/x' } },
        { name: 'iscsi', iscsi: { targetPortal: 'p', iqn: 'iqn.x', lun: 0 } },
        { name: 'own', ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'] } } } },
      ],
    },
  })
  assert.deepEqual(pod.spec.volumes, [
    { name: 'none', emptyDir: {} },
    { name: 'secret', secret: { secretName: 's', defaultMode: 420 } },
    { name: 'config', configMap: { name: 'c', defaultMode: 0 } },
    {
      name: 'down',
      downwardAPI: {
        defaultMode: 420,
        items: [{ path: 'a', fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v1' } }],
      },
    },
    {
      name: 'all',
      projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3600 } }] },
    },
    { name: 'host', hostPath: { path: '/x', type: '' } },
    { name: 'iscsi', iscsi: { targetPortal: 'p', iqn: 'iqn.x', lun: 0, iscsiInterface: 'default' } },
    {
      name: 'own',
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', resources: {} } },
      },
    },
  ])
})

test('limits are requests, probes and ports get numbers', () => {
  const pod = defaulted('Pod', {
    metadata: { name: 'p' },
    spec: {
      hostNetwork: true,
      containers: [
        {
          name: 'c',
          image: 'x:1',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '1' } },
          livenessProbe: { httpGet: { port: 80 } },
        },
      ],
    },
  })
  const [container] = pod.spec.containers
  assert.deepEqual(container?.resources?.requests, { cpu: '1', memory: '1Gi' })
  assert.deepEqual(container?.ports, [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }])
  assert.deepEqual(container?.livenessProbe, {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  assert.equal(container?.imagePullPolicy, 'IfNotPresent')
})

test('the pull policy follows the tag', () => {
  const table = [
    ['x', 'Always'],
    ['x:latest', 'Always'],
    ['registry:5000/x', 'Always'],
    ['registry:5000/x:1', 'IfNotPresent'],
    ['x@sha256:abc', 'IfNotPresent'],
  ] as const
  for (const [image, policy] of table) assert.equal(pullPolicyOf(image), policy, image)
})
