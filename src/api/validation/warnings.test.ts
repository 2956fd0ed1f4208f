import assert from 'node:assert/strict'
import test from 'node:test'
import { kinds } from '../kinds.ts'
import type { KindMap, KindName } from '../kinds.ts'

const warnings = <K extends KindName>(kind: K, object: object) => kinds[kind].warnings?.(object as KindMap[K]) ?? []
const metadata = { name: 'x' }
const beta = { annotations: { 'volume.beta.kubernetes.io/storage-class': 'c' } }

test('what is allowed and unwise is said in Kubernetes’ words', () => {
  const oldClass =
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead'
  assert.deepEqual(
    warnings('PersistentVolumeClaim', { metadata: beta, spec: { resources: { requests: { storage: '100m' } } } }),
    [oldClass, 'spec.resources.requests[storage]: fractional byte value "100m" is invalid, must be an integer'],
  )
  assert.deepEqual(
    warnings('PersistentVolume', {
      metadata: beta,
      spec: { persistentVolumeReclaimPolicy: 'Recycle', storageos: {}, flocker: {} },
    }),
    [
      oldClass,
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
      'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
    ],
  )
  assert.deepEqual(
    warnings('StorageClass', {
      metadata,
      allowedTopologies: [
        { matchLabelExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', values: ['a'] }] },
      ],
    }),
    [
      'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    ],
  )
  assert.equal(warnings('CSIDriver', { metadata, spec: { tokenRequests: [{ audience: 'a' }] } }).length, 1)
})

test('a pod hears which of its fields have no effect on processes (A8)', () => {
  const none = 'has no effect, because pods run as processes of the node'
  const profile = { type: 'RuntimeDefault' }
  const containers = [
    { name: 'a', image: 'i', resources: { limits: { memory: '1Gi', cpu: '1' }, requests: { memory: '1Gi' } } },
    { name: 'b', image: 'i', securityContext: { seccompProfile: profile, capabilities: { drop: ['ALL'] } } },
    { name: 'c', image: 'i', securityContext: { privileged: true, seccompProfile: { type: 'Unconfined' } } },
  ]
  const spec = { containers, shareProcessNamespace: true, securityContext: { sysctls: [{ name: 'a', value: 'b' }] } }
  assert.deepEqual(warnings('Pod', { metadata, spec }), [
    `spec.securityContext.sysctls: ${none}`,
    `spec.shareProcessNamespace: ${none}`,
    `spec.containers[0].resources.limits[cpu]: ${none}`,
    `spec.containers[0].resources.limits[memory]: ${none}`,
    `spec.containers[1].securityContext.seccompProfile: ${none}`,
  ])
})

test('a pod hears of sources that are gone and of files that take each other’s place', () => {
  const items = [
    { key: 'a', path: 'd' },
    { key: 'b', path: 'd/e' },
  ]
  const volumes = [
    { name: 'g', gitRepo: { repository: 'r' } },
    { name: 's', secret: { secretName: 'n', items } },
    { name: 'p', projected: { sources: [{}] } },
  ]
  assert.deepEqual(warnings('Pod', { metadata, spec: { containers: [], volumes } }), [
    'spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
    'volume "s" (Secret "n"): overlapping paths: "d/e" with "d"',
    'volume "p" (Projected) has no sources provided',
  ])
  assert.deepEqual(warnings('Pod', { metadata, spec: { containers: [], volumes: [{ name: 'e', emptyDir: {} }] } }), [])
})
