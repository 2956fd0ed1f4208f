// Does a pod get a node that suits its volumes, and does everybody learn why it does not?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, PersistentVolumeClaim, Pod } from '../../src/api/generated/types.ts'
import { createBindingController } from '../../src/controllers/binding/controller.ts'
import { createPlacementController } from '../../src/controllers/placement/controller.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { createVirtualCluster } from '../kit/virtual-cluster.ts'
import type { Cause } from '../../src/why/causes.ts'
import { assertWhy, why } from '../kit/assert-why.ts'
import { claim, node, pod, storageClass, volume } from '../kit/objects.ts'

const done = { 'pv.kubernetes.io/bind-completed': 'yes' }
const selectedKey = 'volume.kubernetes.io/selected-node'
const late = storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })
const affinity = (...values: string[]) => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values }] }],
    },
  },
})
const local = (name: string, on: string, rest: Parameters<typeof volume>[0] = {}) =>
  volume({ name, className: 'late', ...rest, spec: { local: { path: '/d' }, ...affinity(on), ...rest.spec } })
const bound = (name: string, volumeName: string, spec: Partial<PersistentVolumeClaim['spec']> = {}) =>
  claim({ name, volumeName, annotations: done, phase: 'Bound', spec })
const csi = (handle: string) => ({ csi: { driver: 'd', volumeHandle: handle } })

const template = { spec: { accessModes: ['ReadWriteOnce' as const], resources: { requests: { storage: '1Gi' } } } }

/** Only the placement; claims and volumes are as the test made them. */
async function placement(withBinding = false) {
  const bench = await createVirtualCluster()
  const run = bench.run((deps) => [
    createPlacementController(deps),
    ...(withBinding
      ? [createBindingController({ ...deps, plugins: createRegistry([]), options: { auditMs: 0 } })]
      : []),
  ])
  const placed = (name = 'p') => bench.server.peek('Pod', `ns/${name}`)?.spec?.nodeName
  const why = (name = 'p') => run.waiting().get(`Pod/ns/${name}`)?.[0]?.message
  return { ...bench, run, placed, why }
}

/** Places one pod among the given objects: the node, or the reason. */
async function outcome(
  nodes: readonly Node[],
  wanted: Pod,
  prepare?: (bench: Awaited<ReturnType<typeof placement>>) => Promise<void>,
  cause?: Cause,
) {
  const bench = await placement()
  for (const each of nodes) await bench.server.create('Node', each)
  await prepare?.(bench)
  await bench.run.settle()
  await bench.server.create('Pod', wanted)
  await bench.run.settle()
  const result = bench.placed() ?? bench.why()
  // Whatever it is that holds up the pod, itself or a claim, it is named, and a command helps.
  if (bench.placed() === undefined && bench.why() !== undefined) {
    const { blocked } = await why(await bench.asked(), `pod/ns/${wanted.metadata.name}`)
    assert.ok(blocked !== undefined && blocked.hints.length > 0, 'why names a cause and a next command')
    if (cause !== undefined) assert.equal(blocked.cause, cause)
  }
  await bench.run.stop()
  return result
}

const [n1, n2] = [node('n1'), node('n2')]
const busy = (cpu: string) =>
  pod('other', { node: 'n1', spec: { containers: [{ name: 'c', image: 'x', resources: { requests: { cpu } } }] } })
const wantsCpu = pod('p', {
  spec: { containers: [{ name: 'c', image: 'x', resources: { requests: { cpu: '600m' } } }] },
})

const simple: readonly [string, readonly Node[], Pod, string][] = [
  ['SCH: the first of equals by name', [n2, n1], pod('p'), 'n1'],
  ['no nodes at all', [], pod('p'), 'no nodes available to schedule pods'],
  ['nodeSelector', [n1, node('n2', { disk: 'ssd' })], pod('p', { spec: { nodeSelector: { disk: 'ssd' } } }), 'n2'],
  [
    'nodeSelector that nobody has',
    [n1, n2],
    pod('p', { spec: { nodeSelector: { disk: 'ssd' } } }),
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
  ],
  [
    'a cordoned node',
    [node('n1', {}, { spec: { unschedulable: true } })],
    pod('p'),
    '0/1 nodes are available: 1 node(s) were unschedulable.',
  ],
  [
    'a taint',
    [node('n1', {}, { spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] } })],
    pod('p'),
    '0/1 nodes are available: 1 node(s) had untolerated taint {k: v}.',
  ],
  [
    'a tolerated taint',
    [node('n1', {}, { spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] } })],
    pod('p', { spec: { tolerations: [{ operator: 'Exists' }] } }),
    'n1',
  ],
  [
    'a node that is not ready',
    [node('n1', {}, { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } })],
    pod('p'),
    '0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.',
  ],
  [
    'a node that has never reported (A11)',
    [node('n1', {}, { status: { conditions: [] } })],
    pod('p'),
    '0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.',
  ],
  [
    'a node that has never reported, beside one that is ready',
    [node('n1', {}, { status: { conditions: [] } }), n2],
    pod('p'),
    'n2',
  ],
  [
    'too little cpu',
    [node('n1', {}, { status: { allocatable: { cpu: '500m' } } })],
    wantsCpu,
    '0/1 nodes are available: 1 Insufficient cpu.',
  ],
]
for (const [name, nodes, wanted, expected] of simple)
  test(`placement: ${name}`, async () => assert.equal(await outcome(nodes, wanted), expected))

test('placement: pods already there count, and so does the number of pods', async () => {
  const small = [
    node('n1', {}, { status: { allocatable: { cpu: '1' } } }),
    node('n2', {}, { status: { allocatable: { pods: '0' } } }),
  ]
  const full = await outcome(small, wantsCpu, async ({ server }) => void (await server.create('Pod', busy('500m'))))
  assert.equal(full, '0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods.')
})

const refusals: readonly [string, Pod, PersistentVolumeClaim[], string, Cause][] = [
  ['a missing claim (SCH-2)', pod('p', { claims: ['c'] }), [], 'persistentvolumeclaim "c" not found', 'claimMissing'],
  [
    'an ephemeral claim that is not made yet (SCH-2, EPH-6)',
    pod('p', { spec: { volumes: [{ name: 'x', ephemeral: { volumeClaimTemplate: template } }] } }),
    [],
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-x"',
    'claimNotMade',
  ],
  [
    'an ephemeral claim of somebody else (SCH-2, EPH-5)',
    pod('p', { spec: { volumes: [{ name: 'x', ephemeral: { volumeClaimTemplate: template } }] } }),
    [claim({ name: 'p-x' })],
    'PVC ns/p-x was not created for pod ns/p (pod is not owner)',
    'foreignClaim',
  ],
  [
    'an immediate claim that is not bound (SCH-3)',
    pod('p', { claims: ['c'] }),
    [claim()],
    'pod has unbound immediate PersistentVolumeClaims',
    'noVolumeFits',
  ],
  [
    'a named claim whose bind is not complete is immediate (SCH-3)',
    pod('p', { claims: ['c'] }),
    [claim({ className: 'late', volumeName: 'v' })],
    'pod has unbound immediate PersistentVolumeClaims',
    'namedVolumeMissing',
  ],
  [
    'bound to a volume that is gone (SCH-4)',
    pod('p', { claims: ['c'] }),
    [bound('c', 'v')],
    '1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
    'namedVolumeMissing',
  ],
]
for (const [name, wanted, claims, expected, cause] of refusals) {
  test(name, async () => {
    const prepare = async ({ server }: Awaited<ReturnType<typeof placement>>) => {
      await server.create('StorageClass', late)
      for (const each of claims) await server.create('PersistentVolumeClaim', each)
    }
    const result = await outcome([n1], wanted, prepare, cause)
    assert.equal(result, `0/1 nodes are available: ${expected}.`)
  })
}

test('a lost claim and a terminating one are refused (SCH-2)', async () => {
  for (const [status, deleting, text] of [
    ['Lost', false, 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'],
    ['Bound', true, 'persistentvolumeclaim "c" is being deleted'],
  ] as const) {
    const result = await outcome([n1], pod('p', { claims: ['c'] }), async ({ server }) => {
      const made = await server.create('PersistentVolumeClaim', bound('c', 'v'))
      await server.update('PersistentVolumeClaim', { ...made, status: { phase: status } }, { subresource: 'status' })
      if (deleting) await server.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
    })
    assert.equal(result, `0/1 nodes are available: ${text}.`)
  }
})

test('a bound local volume decides (SCH-4, MAT-9)', async () => {
  const prepare =
    (on: string) =>
    async ({ server }: Awaited<ReturnType<typeof placement>>) => {
      await server.create('PersistentVolume', local('v', on))
      await server.create('PersistentVolumeClaim', bound('c', 'v'))
    }
  assert.equal(await outcome([n1, n2], pod('p', { claims: ['c'] }), prepare('n2')), 'n2')
  const refused = await outcome([n1, n2], pod('p', { claims: ['c'] }), prepare('n3'))
  assert.equal(refused, "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.")
})

test('zones of a bound volume; a set of zones; nodes without zones pass; the old key falls back to the new (SZN-1)', async () => {
  const zone = 'topology.kubernetes.io/zone'
  const beta = 'failure-domain.beta.kubernetes.io/zone'
  const result = (labels: Record<string, string>, nodeLabels: Record<string, string>) =>
    outcome([node('n1', nodeLabels)], pod('p', { claims: ['c'] }), async ({ server }) => {
      await server.create('PersistentVolume', volume({ labels }))
      await server.create('PersistentVolumeClaim', bound('c', 'v'))
    })
  assert.equal(await result({ [zone]: 'a__b' }, { [zone]: 'b' }), 'n1')
  assert.equal(
    await result({ [zone]: 'a' }, { [zone]: 'b' }),
    '0/1 nodes are available: 1 node(s) had no available volume zone.',
  )
  assert.equal(await result({ [zone]: 'a' }, {}), 'n1')
  assert.equal(await result({ [beta]: 'a' }, { [zone]: 'a' }), 'n1')
})

test('the driver’s limit counts volumes of pods, attachments and unbound claims, each once (SLM-1, SLM-3)', async () => {
  const limited = async (count: number, extra: 'attachment' | 'same' | 'none') =>
    outcome([n1], pod('p', { claims: ['c2'] }), async ({ server }) => {
      const drivers = [{ name: 'd', nodeID: 'n1', allocatable: { count } }]
      await server.create('CSINode', { metadata: { name: 'n1' }, spec: { drivers } })
      for (const at of ['1', '2', '3'])
        await server.create(
          'PersistentVolume',
          volume({ name: `v${at}`, spec: csi(extra === 'same' ? 'h' : `h${at}`) }),
        )
      await server.create('PersistentVolumeClaim', bound('c1', 'v1'))
      await server.create('PersistentVolumeClaim', bound('c2', 'v2'))
      await server.create('Pod', pod('other', { claims: ['c1', 'nowhere'], node: 'n1' }))
      if (extra !== 'attachment') return
      const spec = { attacher: 'd', nodeName: 'n1', source: { persistentVolumeName: 'v3' } }
      await server.create('VolumeAttachment', { metadata: { name: 'a' }, spec })
    })
  assert.equal(await limited(2, 'none'), 'n1')
  assert.equal(await limited(1, 'none'), '0/1 nodes are available: 1 node(s) exceed max volume count.')
  assert.equal(await limited(2, 'attachment'), '0/1 nodes are available: 1 node(s) exceed max volume count.')
  assert.equal(await limited(1, 'same'), 'n1')
})

test('the same inline disk twice on a node, unless both only read (SRS-1)', async () => {
  const withDisk = (name: string, readOnly: boolean, on?: string) =>
    pod(name, {
      ...(on === undefined ? {} : { node: on }),
      spec: { volumes: [{ name: 'd', gcePersistentDisk: { pdName: 'x', readOnly } }] },
    })
  const result = (readOnly: boolean) =>
    outcome(
      [n1],
      withDisk('p', readOnly),
      async ({ server }) => void (await server.create('Pod', withDisk('other', readOnly, 'n1'))),
    )
  assert.deepEqual(
    [await result(true), await result(false)],
    ['n1', '0/1 nodes are available: 1 node(s) had no available disk.'],
  )
})

test('a single-pod claim that another pod uses, wherever that runs (RWP-2)', async () => {
  const prepare = async ({ server }: Awaited<ReturnType<typeof placement>>) => {
    await server.create('PersistentVolume', volume({ modes: ['ReadWriteOncePod'] }))
    await server.create('PersistentVolumeClaim', bound('c', 'v', { accessModes: ['ReadWriteOncePod'] }))
    await server.create('Pod', pod('other', { claims: ['c'], node: 'n2' }))
  }
  const text =
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod'
  assert.equal(await outcome([n1, n2], pod('p', { claims: ['c'] }), prepare), `0/2 nodes are available: 2 ${text}.`)
})

test('a claim that names its node admits no other (SCH-5)', async () => {
  const result = await outcome([n1], pod('p', { claims: ['c'] }), async ({ server }) => {
    await server.create('StorageClass', late)
    await server.create('PersistentVolumeClaim', claim({ className: 'late', annotations: { [selectedKey]: 'n9' } }))
  })
  assert.equal(result, "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.")
})

test('no provisioner, and topologies that the class does not allow (SCH-7)', async () => {
  const result = (rest: Parameters<typeof storageClass>[1]) =>
    outcome([node('n1', { zone: 'a' })], pod('p', { claims: ['c'] }), async ({ server }) => {
      await server.create('StorageClass', { ...late, ...rest })
      await server.create('PersistentVolumeClaim', claim({ className: 'late' }))
    })
  const refused = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
  assert.equal(await result({ provisioner: 'kubernetes.io/no-provisioner' }), refused)
  assert.equal(
    await result({ allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['b'] }] }] }),
    refused,
  )
  assert.equal(await result({ allowedTopologies: [{}] }), refused)
})

test('capacity counts only where the driver publishes it; the pod’s claims are added up (SCH-8, WC-25)', async () => {
  const result = async (capacity: string | undefined, publishes: boolean, claims: number) => {
    const bench = await placement()
    await bench.server.create('Node', node('n1', { zone: 'a' }))
    await bench.server.create('StorageClass', late)
    await bench.server.create('CSIDriver', {
      metadata: { name: 'csi.example.com' },
      spec: { storageCapacity: publishes },
    })
    if (capacity !== undefined)
      await bench.server.create('CSIStorageCapacity', {
        metadata: { name: 'x', namespace: 'ns' },
        storageClassName: 'late',
        capacity,
        nodeTopology: { matchLabels: { zone: 'a' } },
      })
    const names = Array.from({ length: claims }, (_, at) => `c${at}`)
    for (const name of names)
      await bench.server.create('PersistentVolumeClaim', claim({ name, className: 'late', request: '1Gi' }))
    await bench.server.create('Pod', pod('p', { claims: names }))
    await bench.run.settle()
    const chosen = bench.server.peek('PersistentVolumeClaim', 'ns/c0')?.metadata.annotations?.[selectedKey]
    const answer = chosen ?? bench.why()
    await bench.run.stop()
    return answer
  }
  const noSpace = '0/1 nodes are available: 1 node(s) did not have enough free storage.'
  assert.deepEqual(
    [
      await result(undefined, false, 1),
      await result(undefined, true, 1),
      await result('1Gi', true, 1),
      await result('1Gi', true, 2),
    ],
    ['n1', noSpace, 'n1', noSpace],
  )
})

test('two local volumes, sizes reversed: each claim gets its own, then the pod its node (SCH-6, SCH-11, SCH-12, TC-58)', async () => {
  const bench = await placement(true)
  await bench.server.create('Node', n1)
  await bench.server.create('Node', n2)
  await bench.server.create('StorageClass', { ...late, provisioner: 'kubernetes.io/no-provisioner' })
  await bench.server.create('PersistentVolume', local('big', 'n2', { size: '5Gi' }))
  await bench.server.create('PersistentVolume', local('small', 'n2', { size: '2Gi' }))
  await bench.server.create('PersistentVolume', local('lonely', 'n1', { size: '2Gi' }))
  await bench.run.settle()
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'c1', request: '3Gi', className: 'late' }))
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'c2', request: '1Gi', className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c1', 'c2'] }))
  await bench.run.settle()
  const volumeOf = (name: string) => bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.spec.volumeName
  assert.deepEqual([bench.placed(), volumeOf('c1'), volumeOf('c2')], ['n2', 'big', 'small'])
  assert.match(bench.events().join('\n'), /Normal Scheduled Pod\/p: Successfully assigned ns\/p to n2/)
  await bench.run.stop()
})

test('what no volume fits is provisioned for the node; static and dynamic together (SCH-6, TC-58)', async () => {
  const bench = await placement(true)
  await bench.server.create('Node', n1)
  await bench.server.create('StorageClass', late)
  await bench.server.create('PersistentVolume', local('v', 'n1'))
  await bench.run.settle()
  await bench.server.create('PersistentVolumeClaim', claim({ name: 'c1', className: 'late' }))
  const dynamic = await bench.server.create(
    'PersistentVolumeClaim',
    claim({ name: 'c2', request: '9Gi', className: 'late' }),
  )
  await bench.server.create('Pod', pod('p', { claims: ['c1', 'c2'] }))
  await bench.run.settle()
  const asked = bench.server.peek('PersistentVolumeClaim', 'ns/c2')
  assert.deepEqual(
    [
      bench.placed(),
      asked?.metadata.annotations?.[selectedKey],
      asked?.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'],
    ],
    [undefined, 'n1', 'csi.example.com'],
  )
  assert.equal(bench.run.waiting().get('Pod/ns/p')?.[0]?.reason, 'bindingVolumes')
  await assertWhy(await bench.asked(), 'pod/ns/p', 'provisionerAbsent')
  await bench.server.create(
    'PersistentVolume',
    volume({ name: 'made', size: '9Gi', className: 'late', claimRef: { name: 'c2', uid: dynamic.metadata.uid! } }),
  )
  await bench.run.settle()
  assert.equal(bench.placed(), 'n1')
  await bench.run.stop()
})

test('provisioning that is given up makes the placement choose again (SCH-12, TC-58, XPR-8)', async () => {
  const bench = await placement()
  await bench.server.create('Node', n1)
  await bench.server.create('Node', n2)
  await bench.server.create('StorageClass', late)
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  const chosen = () => bench.server.peek('PersistentVolumeClaim', 'ns/c')?.metadata.annotations?.[selectedKey]
  assert.equal(chosen(), 'n1')
  const full = bench.server.peek('Node', 'n1')!
  await bench.server.update('Node', { ...full, spec: { unschedulable: true } })
  const asked = bench.server.peek('PersistentVolumeClaim', 'ns/c')!
  await bench.server.update('PersistentVolumeClaim', { ...asked, metadata: { ...asked.metadata, annotations: {} } })
  await bench.clock.advance(100)
  assert.equal(chosen(), 'n2')
  assert.match(
    bench.events().join('\n'),
    /Warning FailedScheduling Pod\/p: binding volumes: provisioning failed for PVC "c"/,
  )
  await bench.run.stop()
})

/** Nodes of which only the first `registered` have the driver of the class. */
async function withDriverOn(registered: readonly string[]) {
  const bench = await placement(true)
  for (const each of [n1, n2, node('n3')]) await bench.server.create('Node', each)
  await bench.server.create('StorageClass', late)
  for (const name of registered)
    await bench.server.create('CSINode', {
      metadata: { name },
      spec: { drivers: [{ name: 'csi.example.com', nodeID: name, topologyKeys: ['kubernetes.io/hostname'] }] },
    })
  const chosen = (name = 'c') =>
    bench.server.peek('PersistentVolumeClaim', `ns/${name}`)?.metadata.annotations?.[selectedKey]
  /** What a provisioner does whose node cannot have the volume. */
  const giveUp = async (name = 'c') => {
    const asked = bench.server.peek('PersistentVolumeClaim', `ns/${name}`)!
    await bench.server.update('PersistentVolumeClaim', { ...asked, metadata: { ...asked.metadata, annotations: {} } })
  }
  return { ...bench, chosen, giveUp }
}

test('a claim is provisioned only where its driver is registered, if it is registered anywhere', async () => {
  const someWhere = await withDriverOn(['n2'])
  await someWhere.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await someWhere.server.create('Pod', pod('p', { claims: ['c'] }))
  await someWhere.run.settle()
  assert.equal(someWhere.chosen(), 'n2')
  await someWhere.run.stop()

  const nowhere = await withDriverOn([])
  await nowhere.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await nowhere.server.create('Pod', pod('p', { claims: ['c'] }))
  await nowhere.run.settle()
  assert.equal(nowhere.chosen(), 'n1', 'a provisioner that registers on no node may serve all of them')
  await nowhere.run.stop()
})

const ofDriver = { csi: { driver: 'csi.example.com', volumeHandle: 'h' } }
const needsDriver: readonly [string, Pod, readonly PersistentVolumeClaim[]][] = [
  ['a bound claim', pod('p', { claims: ['c'] }), [bound('c', 'v')]],
  [
    'a bound claim for one pod',
    pod('p', { claims: ['c'] }),
    [bound('c', 'v', { accessModes: ['ReadWriteOncePod'], volumeMode: 'Block' })],
  ],
  ['a claim that would take a free volume', pod('p', { claims: ['c'] }), [claim({ className: 'late' })]],
  ['an inline volume', pod('p', { spec: { volumes: [{ name: 'v', csi: { driver: 'csi.example.com' } }] } }), []],
]
for (const [name, wanted, claims] of needsDriver)
  test(`a pod with ${name} is placed only where its driver is registered, if it is registered anywhere`, async () => {
    const place = async (registered: readonly string[], only?: string) => {
      const bench = await withDriverOn(registered)
      await bench.server.create('PersistentVolume', volume({ name: 'v', className: 'late', spec: ofDriver }))
      for (const each of claims) await bench.server.create('PersistentVolumeClaim', each)
      const nodeSelector = only === undefined ? {} : { 'kubernetes.io/hostname': only }
      await bench.server.create('Pod', { ...wanted, spec: { ...wanted.spec!, nodeSelector } })
      await bench.run.settle()
      const result = bench.placed() ?? bench.why()
      await bench.run.stop()
      return result
    }
    assert.equal(await place(['n3']), 'n3')
    assert.equal(await place([]), 'n1', 'nobody has it yet')
    assert.match((await place(['n3'], 'n2')) ?? '', /1 node\(s\) didn't have the CSI driver of the volume/)
  })

test('a pod that only nodes without the driver would take says so, and goes on when the driver registers there', async () => {
  const bench = await withDriverOn(['n2'])
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create(
    'Pod',
    pod('p', { claims: ['c'], spec: { nodeSelector: { 'kubernetes.io/hostname': 'n3' } } }),
  )
  await bench.run.settle()
  assert.equal(bench.chosen(), undefined)
  assert.match(bench.why() ?? '', /1 node\(s\) didn't have the CSI driver of the volume/)
  await bench.server.create('CSINode', {
    metadata: { name: 'n3' },
    spec: { drivers: [{ name: 'csi.example.com', nodeID: 'n3', topologyKeys: [] }] },
  })
  await bench.run.settle()
  assert.equal(bench.chosen(), 'n3')
  await bench.run.stop()
})

test('a node whose provisioner gave up is tried again only after every other', async () => {
  const bench = await withDriverOn(['n1', 'n2', 'n3'])
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  const tried = [bench.chosen()]
  for (let round = 0; round < 3; round++) {
    await bench.giveUp()
    await bench.clock.advance(100)
    tried.push(bench.chosen())
  }
  assert.deepEqual(tried, ['n1', 'n2', 'n3', undefined], 'and not at once')
  await bench.clock.advance(10_000)
  assert.equal(bench.chosen(), 'n1', 'the one whose rejection is oldest')
  await bench.run.stop()
})

test('a pod with two claims leaves the node that gave up on both, one after the other', async () => {
  const bench = await withDriverOn(['n1', 'n2'])
  for (const name of ['c1', 'c2'])
    await bench.server.create('PersistentVolumeClaim', claim({ name, className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c1', 'c2'] }))
  await bench.run.settle()
  assert.deepEqual([bench.chosen('c1'), bench.chosen('c2')], ['n1', 'n1'])
  await bench.giveUp('c1')
  await bench.clock.advance(100)
  assert.equal(bench.chosen('c1'), undefined, 'the second claim still names n1: neither node is chosen')
  await bench.giveUp('c2')
  await bench.clock.advance(100)
  assert.deepEqual([bench.chosen('c1'), bench.chosen('c2')], ['n2', 'n2'])
  await bench.run.stop()
})

test('a reset claimRef, a timeout: choose again; a deleted pod: nothing more (SCH-12, TC-58)', async () => {
  const bench = await placement()
  await bench.server.create('Node', n1)
  await bench.server.create('StorageClass', { ...late, provisioner: 'kubernetes.io/no-provisioner' })
  const made = await bench.server.create('PersistentVolume', local('v', 'n1'))
  await bench.server.update('PersistentVolume', { ...made, status: { phase: 'Available' } }, { subresource: 'status' })
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  const taken = bench.server.peek('PersistentVolume', 'v')!
  assert.deepEqual(
    [taken.spec.claimRef?.name, taken.metadata.annotations],
    ['c', { 'pv.kubernetes.io/bound-by-controller': 'yes' }],
  )
  const { claimRef: _reset, ...spec } = taken.spec
  await bench.server.update('PersistentVolume', { ...taken, spec })
  await bench.clock.advance(100)
  assert.match(bench.events().join('\n'), /binding volumes: ClaimRef got reset for pv "v"/)
  assert.equal(bench.server.peek('PersistentVolume', 'v')?.spec.claimRef?.name, 'c')
  await bench.clock.advance(600_001)
  assert.match(bench.events().join('\n'), /binding volumes: context deadline exceeded/)
  await bench.server.remove('Pod', { namespace: 'ns', name: 'p' })
  await bench.run.settle()
  assert.equal(bench.run.waiting().has('Pod/ns/p'), false)
  await bench.run.stop()
})

test('after a restart the claim’s reserved volume ties the pod to its node (SCH-1, SCH-13, WC-16)', async () => {
  const bench = await placement(true)
  await bench.server.create('Node', n1)
  await bench.server.create('Node', n2)
  await bench.server.create('StorageClass', late)
  const owner = await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('PersistentVolume', local('v', 'n2', { claimRef: { name: 'c', uid: owner.metadata.uid! } }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  assert.equal(bench.placed(), 'n2')
  await bench.run.stop()
})

test('a pod that waits is woken by what could help: a volume, a node, a class, capacity (SCH-14, WC-7)', async () => {
  const bench = await placement(true)
  await bench.server.create('Node', n1)
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  const reasons = [bench.why()]
  await bench.server.create('StorageClass', { ...late, provisioner: 'kubernetes.io/no-provisioner' })
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.run.settle()
  reasons.push(bench.why())
  await bench.server.create('PersistentVolume', local('v', 'n2'))
  await bench.run.settle()
  reasons.push(bench.why())
  await bench.server.create('Node', n2)
  await bench.run.settle()
  assert.equal(bench.placed(), 'n2')
  const conflict = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
  assert.deepEqual(reasons, ['0/1 nodes are available: persistentvolumeclaim "c" not found.', conflict, conflict])
  await bench.run.stop()
})

test('of two nodes with fitting volumes the one with the tighter fit is chosen; existing beats to-be-made (WC-31, SCH-10)', async () => {
  const bench = await placement(true)
  await bench.server.create('Node', n1)
  await bench.server.create('Node', n2)
  await bench.server.create('StorageClass', late)
  await bench.server.create('PersistentVolume', local('loose', 'n1', { size: '9Gi' }))
  await bench.server.create('PersistentVolume', local('tight', 'n2', { size: '1Gi' }))
  await bench.run.settle()
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  assert.equal(bench.placed(), 'n2')
  await bench.run.stop()
})

test('placement: pods of another scheduler are left alone', async () => {
  const bench = await placement()
  await bench.server.create('Node', n1)
  await bench.server.create('Pod', pod('p', { spec: { schedulerName: 'mine' } }))
  await bench.run.settle()
  assert.equal(bench.placed(), undefined)
  await bench.run.stop()
})

test('reasons are told in their order: affinity, conflict, space, missing volume (SCH-9)', async () => {
  const result = await outcome([n1], pod('p', { claims: ['gone', 'far', 'conflict'] }), async ({ server }) => {
    await server.create('StorageClass', { ...late, provisioner: 'kubernetes.io/no-provisioner' })
    await server.create('PersistentVolume', local('v', 'n2'))
    await server.create('PersistentVolumeClaim', bound('gone', 'nowhere'))
    await server.create('PersistentVolumeClaim', bound('far', 'v'))
    await server.create('PersistentVolumeClaim', claim({ name: 'conflict', className: 'late' }))
  })
  assert.equal(
    result,
    "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).",
  )
})

test('an ephemeral single-pod claim is checked like any other (WC-28, RWP-2)', async () => {
  const bench = await placement()
  await bench.server.create('Node', n1)
  await bench.server.create('PersistentVolume', volume({ modes: ['ReadWriteOncePod'] }))
  await bench.server.create('Pod', pod('other', { claims: ['p-x'], node: 'n1' }))
  const owner = await bench.server.create(
    'Pod',
    pod('p', { spec: { volumes: [{ name: 'x', ephemeral: { volumeClaimTemplate: template } }] } }),
  )
  const mine = bound('p-x', 'v', { accessModes: ['ReadWriteOncePod'] })
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', controller: true, uid: owner.metadata.uid! }]
  await bench.server.create('PersistentVolumeClaim', { ...mine, metadata: { ...mine.metadata, ownerReferences } })
  await bench.run.settle()
  assert.match(bench.why() ?? '', /ReadWriteOncePod access mode already in-use by another pod/)
  await bench.server.remove('Pod', { namespace: 'ns', name: 'other' }, { gracePeriodSeconds: 0 })
  await bench.run.settle()
  assert.equal(bench.placed(), 'n1')
  await bench.run.stop()
})

test('a capacity that says only the largest size (WC-26, SCH-8)', async () => {
  const bench = await placement()
  await bench.server.create('Node', node('n1', { zone: 'a' }))
  await bench.server.create('StorageClass', late)
  await bench.server.create('CSIDriver', { metadata: { name: 'csi.example.com' }, spec: { storageCapacity: true } })
  const topology = { nodeTopology: { matchLabels: { zone: 'a' } } }
  await bench.server.create('CSIStorageCapacity', {
    metadata: { name: 'x', namespace: 'ns' },
    storageClassName: 'late',
    maximumVolumeSize: '2Gi',
    ...topology,
  })
  await bench.server.create('PersistentVolumeClaim', claim({ className: 'late' }))
  await bench.server.create('Pod', pod('p', { claims: ['c'] }))
  await bench.run.settle()
  assert.equal(bench.server.peek('PersistentVolumeClaim', 'ns/c')?.metadata.annotations?.[selectedKey], 'n1')
  await bench.run.stop()
})
