// What is refused at creation, beyond the recorded cases? Volume sources, mounts, containers and the smaller kinds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyDefaults } from '../defaults/defaults.ts'
import { sentence } from '../field-errors.ts'
import type { KindMap, KindName } from '../kinds.ts'
import { readObject } from '../schema/check.ts'
import { isConfigKey, isQualifiedName, isSubdomain } from './formats.ts'
import { validateCreate } from './validate.ts'

/** The sentences for an object as a client would send it. */
function create(kind: KindName, body: object): readonly string[] {
  const read = readObject(kind, body).value as unknown as KindMap[typeof kind] // just read as that kind
  return validateCreate(kind, applyDefaults(kind, read)).map(sentence)
}

const pod = (spec: object) => ({
  metadata: { name: 'p', namespace: 'n' },
  spec: { containers: [{ name: 'c', image: 'x' }], ...spec },
})
const withVolume = (source: object) => pod({ volumes: [{ name: 'v', ...source }] })
const at = 'spec.volumes[0]'

const podVolumes: readonly (readonly [object, readonly string[]])[] = [
  [{ emptyDir: { sizeLimit: '1Gi' } }, []],
  [
    { emptyDir: { sizeLimit: '-1' } },
    [`${at}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity`],
  ],
  [{ hostPath: { path: '' } }, [`${at}.hostPath.path: Required value`]],
  [{ hostPath: { path: '/a/../b' } }, [`${at}.hostPath.path: Invalid value: "/a/../b": must not contain '..'`]],
  [
    { hostPath: { path: '/a', type: 'Tape' } },
    [
      `${at}.hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`,
    ],
  ],
  [
    { nfs: { server: '', path: 'rel' } },
    [`${at}.nfs.server: Required value`, `${at}.nfs.path: Invalid value: "rel": must be an absolute path`],
  ],
  [
    { iscsi: { targetPortal: 'p', iqn: 'nope', lun: 256, chapAuthSession: true } },
    [
      `${at}.iscsi.iqn: Invalid value: "nope": must be valid format starting with iqn, eui, or naa`,
      `${at}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`,
      `${at}.iscsi.secretRef: Required value`,
    ],
  ],
  [{ fc: {} }, [`${at}.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both`]],
  [
    { secret: { secretName: '', defaultMode: 512 } },
    [
      `${at}.secret.secretName: Required value`,
      `${at}.secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive`,
    ],
  ],
  [
    {
      configMap: {
        name: 'c',
        items: [
          { key: '', path: '../x' },
          { key: 'k', path: '/abs' },
          { key: 'k', path: '..data' },
        ],
      },
    },
    [
      `${at}.configMap.items[0].key: Required value`,
      `${at}.configMap.items[0].path: Invalid value: "../x": must not contain '..'`,
      `${at}.configMap.items[1].path: Invalid value: "/abs": must be a relative path`,
      `${at}.configMap.items[2].path: Invalid value: "..data": must not start with '..'`,
    ],
  ],
  [
    { downwardAPI: { items: [{ path: 'a' }, { path: 'b', fieldRef: { fieldPath: 'spec.nodeName' } }] } },
    [
      `${at}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required`,
      `${at}.downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`,
    ],
  ],
  [{ downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: "metadata.labels['x']" } }] } }, []],
  [
    {
      projected: {
        sources: [
          { serviceAccountToken: { path: 't', expirationSeconds: 5 } },
          { secret: { name: '' }, configMap: { name: 'c' } },
        ],
      },
    },
    [
      `${at}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes`,
      `${at}.projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set`,
      `${at}.projected.sources[1].secret.name: Required value`,
      `${at}.projected.sources[1]: Forbidden: may not specify more than 1 volume type per source`,
    ],
  ],
  [
    {
      projected: {
        sources: [
          { configMap: { name: 'c', items: [{ key: 'k', path: 't' }] } },
          { secret: { name: 's', items: [{ key: 'k', path: 't' }] } },
        ],
      },
    },
    [`${at}.projected: Invalid value: "s": conflicting duplicate paths`],
  ],
  [
    { csi: { driver: 'Not_A_Driver' } },
    [`${at}.csi.driver: Invalid value: "Not_A_Driver": ${isSubdomain('not_a_driver')[0]}`],
  ],
  [
    { flexVolume: { driver: 'x/y', options: { 'kubernetes.io/a': 'b' } } },
    [
      `${at}.flexVolume.options[kubernetes.io/a]: Invalid value: "kubernetes.io/a": kubernetes.io and k8s.io namespaces are reserved`,
    ],
  ],
  [{ rbd: { monitors: [], image: '' } }, [`${at}.rbd.monitors: Required value`, `${at}.rbd.image: Required value`]],
]
for (const [source, expected] of podVolumes) {
  test(`pod volume ${JSON.stringify(source)}`, () => assert.deepEqual(create('Pod', withVolume(source)), expected))
}

const container = (rest: object) => ({ name: 'c', image: 'x', ...rest })
const mounts = 'spec.containers[0].volumeMounts'
const claimVolume = {
  volumes: [
    { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'e', emptyDir: {} },
  ],
}
const containers: readonly (readonly [string, object, readonly string[]])[] = [
  ['none', pod({ containers: [] }), ['spec.containers: Required value']],
  ['no image', pod({ containers: [{ name: 'c' }] }), ['spec.containers[0].image: Required value']],
  ['same name', pod({ initContainers: [container({})] }), ['spec.initContainers[0].name: Duplicate value: "c"']],
  [
    'two mounts in one place',
    pod({
      ...claimVolume,
      containers: [
        container({
          volumeMounts: [
            { name: 'v', mountPath: '/a' },
            { name: 'e', mountPath: '/a' },
          ],
        }),
      ],
    }),
    [`${mounts}[1].mountPath: Invalid value: "/a": must be unique`],
  ],
  [
    'mounts at the name that Hawser uses itself',
    pod({
      ...claimVolume,
      containers: [
        container({
          volumeMounts: ['/.hawser', '.hawser/x', '/a/../.hawser/etc', '/.hawserx', '/a/.hawser'].map((mountPath) => ({
            name: 'v',
            mountPath,
          })),
        }),
      ],
    }),
    ['/.hawser', '.hawser/x', '/a/../.hawser/etc'].map(
      (path, index) => `${mounts}[${index}].mountPath: Invalid value: "${path}": must not be /.hawser or below it`,
    ),
  ],
  [
    'climbing subPath',
    pod({
      ...claimVolume,
      containers: [container({ volumeMounts: [{ name: 'v', mountPath: '/a', subPath: '../b' }] })],
    }),
    [`${mounts}.subPath: Invalid value: "../b": must not contain '..'`],
  ],
  [
    'bidirectional without privilege',
    pod({
      ...claimVolume,
      containers: [container({ volumeMounts: [{ name: 'v', mountPath: '/a', mountPropagation: 'Bidirectional' }] })],
    }),
    [
      `${mounts}.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
    ],
  ],
  [
    'block device of an emptyDir',
    pod({ ...claimVolume, containers: [container({ volumeDevices: [{ name: 'e', devicePath: '/dev/x' }] })] }),
    [
      'spec.containers[0].volumeDevices[0].name: Invalid value: "e": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
    ],
  ],
  [
    'device at a mount',
    pod({
      ...claimVolume,
      containers: [
        container({ volumeMounts: [{ name: 'e', mountPath: '/x' }], volumeDevices: [{ name: 'v', devicePath: '/x' }] }),
      ],
    }),
    [
      `${mounts}[0].mountPath: Invalid value: "/x": must not already exist as a path in volumeDevices`,
      'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/x": must not already exist as a path in volumeMounts',
    ],
  ],
  [
    'requests above limits',
    pod({ containers: [container({ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } })] }),
    ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
  ],
  [
    'restart policy',
    pod({ restartPolicy: 'Maybe' }),
    ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
  ],
  [
    'group',
    pod({ securityContext: { fsGroup: -1 } }),
    ['spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive'],
  ],
]
for (const [name, body, expected] of containers) {
  test(`pod: ${name}`, () => assert.deepEqual(create('Pod', body), expected))
}

const volume = (spec: object) => ({
  metadata: { name: 'v' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
})
const volumes: readonly (readonly [string, object, readonly string[]])[] = [
  ['no source', volume({}), ['spec: Required value: must specify a volume type']],
  [
    'two sources',
    volume({ nfs: { server: 's', path: '/p' }, csi: { driver: 'd', volumeHandle: 'h' } }),
    ['spec.csi: Forbidden: may not specify more than 1 volume type'],
  ],
  [
    'local without affinity',
    volume({ local: { path: '/x' } }),
    ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
  ],
  [
    'exclusive mode with another (API-7)',
    volume({ nfs: { server: 's', path: '/p' }, accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] }),
    ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
  ],
  [
    'half a secret reference',
    volume({ csi: { driver: 'd', volumeHandle: '', nodePublishSecretRef: { name: 's' }, nodeStageSecretRef: {} } }),
    ['spec.csi.volumeHandle: Required value', 'spec.csi.nodePublishSecretRef.namespace: Required value'],
  ],
  [
    'empty affinity',
    volume({ nfs: { server: 's', path: '/p' }, nodeAffinity: { required: {} } }),
    ['spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term'],
  ],
  [
    'recycled root',
    volume({ hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' }),
    ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
  ],
]
for (const [name, body, expected] of volumes) {
  test(`volume: ${name}`, () => assert.deepEqual(create('PersistentVolume', body), expected))
}

const others: readonly (readonly [KindName, object, readonly string[]])[] = [
  [
    'ConfigMap',
    { metadata: { name: 'c', namespace: 'n' }, data: { '..': 'x' } },
    ['data[..]: Invalid value: "..": must not be \'..\''],
  ],
  ['ConfigMap', { metadata: { name: 'c' } }, ['metadata.namespace: Required value']],
  [
    'Secret',
    { metadata: { name: 's', namespace: 'n' }, type: 'kubernetes.io/tls', data: { 'tls.crt': 'QQ==' } },
    ['data[tls.key]: Required value'],
  ],
  ['Namespace', { metadata: { name: 'a.b' } }, ['metadata.name: Invalid value: "a.b": must not contain dots']],
  ['Node', { metadata: { name: 'n', namespace: 'x' } }, ['metadata.namespace: Forbidden: not allowed on this type']],
  [
    'Lease',
    { metadata: { name: 'l', namespace: 'n' }, spec: { leaseDurationSeconds: 0 } },
    ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
  ],
  [
    'VolumeAttachment',
    { metadata: { name: 'a' }, spec: { attacher: 'd', nodeName: 'n', source: {} } },
    ['spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName'],
  ],
  [
    'VolumeAttachment',
    {
      metadata: { name: 'a' },
      spec: {
        attacher: 'd',
        nodeName: 'n',
        source: { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], csi: { driver: 'd', volumeHandle: 'h' } } },
      },
    },
    [],
  ],
  [
    'VolumeAttachment',
    {
      metadata: { name: 'a' },
      spec: {
        attacher: 'd',
        nodeName: 'n',
        source: { inlineVolumeSpec: { storageClassName: 'x', nfs: { server: 's', path: '/p' } } },
      },
    },
    [
      'spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes',
      'spec.source.inlineVolumeSpec.accessModes: Required value',
      'spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes',
    ],
  ],
  [
    'VolumeAttributesClass',
    { metadata: { name: 'a' }, driverName: 'd' },
    ['parameters: Required value: must contain at least one key/value pair'],
  ],
  [
    'CSIStorageCapacity',
    { metadata: { name: 'a', namespace: 'n' }, storageClassName: 's', capacity: '-1' },
    ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
  ],
  [
    'VolumeSnapshot',
    { metadata: { name: 's', namespace: 'n' }, spec: { source: {} } },
    [
      'spec.source: Invalid value: {}: exactly one of persistentVolumeClaimName and volumeSnapshotContentName must be set',
    ],
  ],
  ['VolumeSnapshot', { metadata: { name: 's', namespace: 'n' } }, ['spec: Required value']],
  ['VolumeSnapshotClass', { metadata: { name: 's' }, driver: 'd' }, ['deletionPolicy: Required value']],
  [
    'StorageClass',
    { metadata: { generateName: 'Bad-' }, provisioner: 'p' },
    [
      `metadata.generateName: Invalid value: "Bad-": ${isSubdomain('Baa')[0]}`,
      'metadata.name: Required value: name or generateName is required',
    ],
  ],
]
for (const [kind, body, expected] of others) {
  test(`${kind} ${JSON.stringify(body)}`, () => assert.deepEqual(create(kind, body), expected))
}

test('annotations are limited in all', () => {
  const body = { metadata: { name: 's', annotations: { a: 'x'.repeat(262_144) } }, provisioner: 'p' }
  assert.deepEqual(create('StorageClass', body), ['metadata.annotations: Too long: may not be more than 262144 bytes'])
})

test('the formats accept what Kubernetes accepts', () => {
  for (const name of ['a', 'a.b', 'a-1.b-2', '0']) assert.deepEqual(isSubdomain(name), [], name)
  for (const name of ['', '-a', 'a-', 'a..b', 'A', 'a_b', `${'a'.repeat(254)}`])
    assert.notDeepEqual(isSubdomain(name), [], name)
  for (const name of ['a', 'A_b.c', 'example.com/A']) assert.deepEqual(isQualifiedName(name), [], name)
  for (const name of ['', '/a', 'a/', 'a/b/c', `x/${'a'.repeat(64)}`])
    assert.notDeepEqual(isQualifiedName(name), [], name)
  for (const name of ['a', '.hidden', 'A_b-c.d']) assert.deepEqual(isConfigKey(name), [], name)
  for (const name of ['', '.', '..', '..x', 'a/b']) assert.notDeepEqual(isConfigKey(name), [], name)
})
