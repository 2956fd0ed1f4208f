// Does somebody else's driver work? csi-driver-host-path lives every life of scenarios.ts with two nodes, and is asked for
// what only it can do here: classes of attributes, limits, and errors of its own. Skipped, and loudly so, where the program
// is not to be had.
//
// The driver knows one node only: its books are in one process, and it attaches to its own node id. So one process serves
// both agents, which are then one node to it; it is run with --check-volume-lifecycle, so that a call in a wrong order fails.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { CSIDriver } from '../../../src/api/generated/types.ts'
import { hostPathPlugin } from '../../kit/host-path-plugin.ts'
import { untilWhy, why } from '../../kit/assert-why.ts'
import { until } from '../../kit/machine.ts'
import { claim, startCsiCluster } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'
import {
  bound,
  checksum,
  inDefault,
  inline,
  makeClaim,
  nothingLeft,
  podOn,
  readOnlyMany,
  run,
  sharedByPods,
  wholeLife,
  write,
} from './scenarios.ts'
import type { Subject } from './scenarios.ts'

const driverName = 'hostpath.csi.k8s.io'
const limitedName = 'limited.csi.k8s.io'
const plainName = 'plain.csi.k8s.io'
const lateName = 'late.csi.k8s.io'
const program = await hostPathPlugin()
const skip = program.path === undefined ? program.why : process.getuid?.() === 0 ? false : 'needs root'
if (skip) console.log(`# LOUDLY SKIPPED: third-party driver csi-driver-host-path: ${skip}`)
const options = { skip, timeout: 90_000 }

let cluster: CsiCluster
let subject: Subject
let limited: Subject
before(async () => {
  if (skip) return
  cluster = await startCsiCluster({ mode: 'local', nodeNames: ['n1', 'n2'], others: startDrivers })
  for (const name of [driverName, limitedName, lateName]) await furnish(cluster, name)
  await furnish(cluster, plainName, {
    attachRequired: false,
    podInfoOnMount: false,
    requiresRepublish: true,
    tokenRequests: [{ audience: 'hawser' }],
    fsGroupPolicy: 'None',
  })
  subject = subjectOf(driverName)
  limited = subjectOf(limitedName)
})
after(() => cluster?.[Symbol.asyncDispose]())

test(
  'csi-driver-host-path: a driver that comes after its claim and pod is found, and serves them (CSI-12)',
  options,
  async () => {
    const late = subjectOf(lateName)
    await cluster.client.create(
      'PersistentVolumeClaim',
      claim('data', { storageClassName: lateName, resources: { requests: { storage: late.size } } }),
    )
    const { uid = '' } = (await cluster.client.create('Pod', podOn('n1', 'p', 'data'))).metadata
    assert.equal((await cluster.client.get('PersistentVolumeClaim', inDefault('data'))).status?.phase, 'Pending')
    for (const words of ['pvc/data', 'pod/p']) await untilWhy(cluster.client, words, 'provisionerAbsent')
    drivers.get(lateName)?.start()
    const volume = await bound(late, 'data')
    await until('mounted', () => cluster.podVolume(uid, volume))
    await cluster.client.remove('Pod', inDefault('p'), { gracePeriodSeconds: 0 })
    await nothingLeft(late, ['data'])
  },
)

test(
  'csi-driver-host-path: without attaching, with tokens, published again while it runs (CSI-20, CSI-25, CSI-37, CSI-39)',
  options,
  async () => {
    const plain = subjectOf(plainName)
    await wholeLife(plain, 'Filesystem')
    const volume = await makeClaim(plain, 'data')
    const running = await run(plain, podOn('n1', 'p', 'data'), volume)
    const written = write(running.path)
    assert.deepEqual((await cluster.client.list('VolumeAttachment')).items, [])
    const labels = { metadata: { labels: { touched: 'yes' } } }
    await cluster.client.patch('Pod', inDefault('p'), { type: 'merge', body: labels })
    await until('published again', () => published(plainName) >= 2)
    assert.equal(checksum(running.path), written)
    await running.stop()
    await nothingLeft(plain, ['data'])
  },
)

test('csi-driver-host-path: a filesystem, its whole life (SIDE-61 … SIDE-63)', options, () =>
  wholeLife(subject, 'Filesystem'),
)
test('csi-driver-host-path: a raw device, its whole life (CSI-50 … CSI-54, CSI-61)', options, () =>
  wholeLife(subject, 'Block'),
)
test('csi-driver-host-path: inline volumes (CSI-43, TP-34)', options, () => inline(subject, { driver: driverName }))
test('csi-driver-host-path: two pods share a volume, one reads only', options, () =>
  sharedByPods(subject, ['ReadWriteMany']),
)
test('csi-driver-host-path: ReadOnlyMany, filled from a clone (SIDE-13)', options, () => readOnlyMany(subject))

test('csi-driver-host-path: ReadWriteOncePod holds one pod at a time (CSI-19)', options, async () => {
  const volume = await makeClaim(subject, 'single', { accessModes: ['ReadWriteOncePod'] })
  const first = await run(subject, podOn('n1', 'one', 'single'), volume)
  const written = write(first.path)
  await cluster.client.create('Pod', podOn('n1', 'two', 'single'))
  const event = await until('the second pod is refused', async () =>
    (await cluster.client.list('Event')).items.find(
      ({ involvedObject, reason }) => involvedObject?.name === 'two' && reason === 'FailedMount',
    ),
  )
  assert.match(event.message ?? '', /ReadWriteOncePod access mode and is already in use by another pod/)
  await untilWhy(cluster.client, 'pod/two', 'singlePodWriter')
  await first.stop()
  const uid = (await cluster.client.get('Pod', inDefault('two'))).metadata.uid ?? ''
  const path = await until('the second pod follows', () => cluster.podVolume(uid, volume))
  assert.equal(checksum(path), written)
  await cluster.client.remove('Pod', inDefault('two'), { gracePeriodSeconds: 0 })
  await nothingLeft(subject, ['single'])
})

test(
  'csi-driver-host-path: attributes are changed, refused ones are told (SIDE-39, MOD-1 … MOD-3)',
  options,
  async () => {
    const { client } = cluster
    for (const [name, parameters] of [
      ['gold', { tier: 'gold' }],
      ['odd', { colour: 'blue' }],
    ] as const)
      await client.create('VolumeAttributesClass', {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'VolumeAttributesClass',
        metadata: { name },
        driverName,
        parameters,
      })
    const volume = await makeClaim(subject, 'data')
    const want = (name: string) =>
      client.patch('PersistentVolumeClaim', inDefault('data'), {
        type: 'merge',
        body: { spec: { volumeAttributesClassName: name } },
      })
    const status = async () => (await client.get('PersistentVolumeClaim', inDefault('data'))).status
    await want('gold')
    await until('modified', async () => (await status())?.currentVolumeAttributesClassName === 'gold')
    assert.equal((await status())?.modifyVolumeStatus, undefined)
    assert.equal((await client.get('PersistentVolume', { name: volume })).spec?.volumeAttributesClassName, 'gold')
    await want('odd')
    await until('refused', async () => (await status())?.modifyVolumeStatus?.status === 'Infeasible')
    await untilWhy(client, 'pvc/data', 'badParameters')
    assert.equal((await status())?.currentVolumeAttributesClassName, 'gold')
    await want('gold')
    await until('taken back', async () => (await status())?.modifyVolumeStatus === undefined)
    await nothingLeft(subject, ['data'])
  },
)

test(
  'csi-driver-host-path: a node that is full says so, and goes on when there is room (CSINODE-3, SIDE-27)',
  options,
  async () => {
    const { client } = cluster
    const entry = (await client.get('CSINode', { name: 'n1' })).spec.drivers.find(({ name }) => name === limitedName)
    assert.equal(entry?.allocatable?.count, 1)
    const volumes = [await makeClaim(limited, 'a'), await makeClaim(limited, 'b')]
    const first = await run(limited, podOn('n1', 'pa', 'a'), volumes[0]!)
    await client.create('Pod', podOn('n1', 'pb', 'b'))
    const failure = await until(
      'the attachment fails',
      async () =>
        (await client.list('VolumeAttachment')).items.find(({ status }) => status?.attachError)?.status?.attachError,
    )
    assert.deepEqual([failure.errorCode, /Cannot attach any more volumes/.test(failure.message ?? '')], [8, true])
    const { blocked } = await untilWhy(client, 'pod/pb', 'attachLimit')
    assert.match(blocked?.error?.message ?? '', /Cannot attach any more volumes/)
    await first.stop()
    const uid = (await client.get('Pod', inDefault('pb'))).metadata.uid ?? ''
    await until('the second is mounted', () => cluster.podVolume(uid, volumes[1]!))
    await client.remove('Pod', inDefault('pb'), { gracePeriodSeconds: 0 })
    await nothingLeft(limited, ['a', 'b'])
  },
)

test(
  'csi-driver-host-path: too large for the controller, right, too large for the node (SIDE-38, NEX-4, EXP-7, TP-41)',
  options,
  async () => {
    const { client } = cluster
    const volume = await makeClaim(limited, 'data')
    const running = await run(limited, podOn('n1', 'p', 'data'), volume)
    const written = write(running.path)
    const want = (storage: string) =>
      client.patch('PersistentVolumeClaim', inDefault('data'), {
        type: 'merge',
        body: { spec: { resources: { requests: { storage } } } },
      })
    const status = async () => (await client.get('PersistentVolumeClaim', inDefault('data'))).status
    const resize = async () => (await status())?.allocatedResourceStatuses?.['storage']
    await want('2Gi') // --max-volume-size is 1Gi
    await until('infeasible at the controller', async () => (await resize()) === 'ControllerResizeInfeasible')
    await untilWhy(client, 'pvc/data', 'outOfRange')
    await want('128Mi')
    await until('the smaller wish is granted', async () => (await status())?.capacity?.['storage'] === '128Mi')
    assert.deepEqual((await status())?.conditions ?? [], [])
    await want('512Mi') // --max-volume-size-node is 256Mi
    await until('the node cannot follow', async () =>
      (await client.list('Event')).items.find(
        ({ involvedObject, reason, message }) =>
          involvedObject?.kind === 'Pod' && reason === 'VolumeResizeFailed' && /code = OutOfRange/.test(message ?? ''),
      ),
    )
    assert.equal((await status())?.capacity?.['storage'], '128Mi')
    await until('why names the node', async () => {
      const { blocked } = await why({ client, clock: { now: Date.now } }, 'pvc/data')
      return blocked?.actor === 'node n1' && blocked.cause === 'outOfRange'
    })
    assert.equal(checksum(running.path), written, 'the pod has what it had')
    await running.stop()
    await nothingLeft(limited, ['data'])
  },
)

test('csi-driver-host-path: a claim too large is not made and not forgotten (XPR-7)', options, async () => {
  const { client } = cluster
  await client.create(
    'PersistentVolumeClaim',
    claim('huge', { storageClassName: limitedName, resources: { requests: { storage: '2Gi' } } }),
  )
  const event = await until('refused', async () =>
    (await client.list('Event')).items.find(
      ({ involvedObject, reason }) => involvedObject?.name === 'huge' && reason === 'ProvisioningFailed',
    ),
  )
  assert.match(event.message ?? '', /rpc error: code = OutOfRange desc = /)
  await untilWhy(client, 'pvc/huge', 'outOfRange')
  await nothingLeft(limited, ['huge'])
})

test(
  'csi-driver-host-path: killed while its volume is in use, it comes back and takes it apart (SIDE-2)',
  options,
  async () => {
    const volume = await makeClaim(subject, 'data')
    const running = await run(subject, podOn('n1', 'p', 'data'), volume)
    const written = write(running.path)
    drivers.get(driverName)?.kill()
    assert.equal(checksum(running.path), written, 'the mount does not need the driver')
    await cluster.client.remove('PersistentVolumeClaim', inDefault('data'))
    await untilWhy(cluster.client, 'pvc/data', 'claimProtected')
    await cluster.client.remove('Pod', inDefault('p'), { gracePeriodSeconds: 0 })
    // The pod is gone by force; its node still has the volume, and cannot let it go without the driver.
    await untilWhy(cluster.client, 'node/n1', 'driverUnavailable')
    drivers.get(driverName)?.start()
    await nothingLeft(subject, [])
    await makeClaim(subject, 'again')
    await nothingLeft(subject, ['again'])
  },
)

interface Restartable extends Disposable {
  readonly name: string
  readonly socket: string
  start(): void
  kill(): void
}

const drivers = new Map<string, Restartable>()

function startDrivers(directory: string): Restartable[] {
  const started = [
    startDriver(directory, lateName, ['--enable-attach'], true),
    startDriver(directory, plainName, []),
    startDriver(directory, driverName, [
      '--enable-attach',
      '--enable-controller-modify-volume',
      '--accepted-mutable-parameter-names=tier',
    ]),
    startDriver(directory, limitedName, [
      '--enable-attach',
      '--attach-limit=1',
      `--max-volume-size=${1 << 30}`,
      `--max-volume-size-node=${256 << 20}`,
    ]),
  ]
  for (const each of started) drivers.set(each.name, each)
  return started
}

function startDriver(directory: string, name: string, more: readonly string[], later = false): Restartable {
  const socket = join(directory, `${name}.sock`)
  const state = stateOf(directory, name)
  mkdirSync(state)
  const argv = [
    ...['--endpoint', `unix://${socket}`, '--nodeid', 'machine', '--statedir', state, '--drivername', name],
    ...['--check-volume-lifecycle', '-v=5', ...more],
  ]
  const start = () => {
    const log = openSync(logOf(directory, name), 'a')
    const started = spawn(program.path!, argv, { stdio: ['ignore', log, log] })
    closeSync(log)
    return started
  }
  let child = later ? undefined : start()
  return {
    name,
    socket,
    start: () => void (child = start()),
    kill: () => void child?.kill('SIGKILL'),
    [Symbol.dispose]: () => void child?.kill('SIGKILL'),
  }
}

const logOf = (directory: string, name: string) => join(directory, `${name}.log`)

/** How often the driver was asked to publish the volume that it was asked for last. */
function published(name: string): number {
  const calls = readFileSync(logOf(cluster.directory, name), 'utf8').matchAll(
    /"Method":"\/csi\.v1\.Node\/NodePublishVolume","Request":\{[^\n]*?"volume_id":"([^"]+)"/g,
  )
  const ids = Array.from(calls, ([, id]) => id)
  return ids.filter((id) => id === ids.at(-1)).length
}

const stateOf = (directory: string, name: string) => join(directory, `state-${name}`)

function subjectOf(name: string): Subject {
  return {
    cluster,
    nodes: ['n1', 'n2'],
    storageClassName: name,
    snapshotClassName: name,
    size: '16Mi',
    grownSize: '64Mi',
    growsMounted: true,
    mountsCopies: true,
    limitsSize: false,
    held() {
      const text = readFileSync(join(stateOf(cluster.directory, name), 'state.json'), 'utf8')
      const state = JSON.parse(text) as { Volumes: { VolID: string }[] | null; Snapshots: { Id: string }[] | null }
      return [...(state.Volumes ?? []).map(({ VolID }) => VolID), ...(state.Snapshots ?? []).map(({ Id }) => Id)]
    },
  }
}

async function furnish({ client }: CsiCluster, name: string, more: Partial<CSIDriver['spec']> = {}): Promise<void> {
  await client.create('CSIDriver', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec: {
      attachRequired: true,
      podInfoOnMount: true,
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      fsGroupPolicy: 'File',
      ...more,
    },
  })
  await client.create('StorageClass', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: name,
    reclaimPolicy: 'Delete',
    allowVolumeExpansion: true,
  })
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name },
    driver: name,
    deletionPolicy: 'Delete',
  })
}
