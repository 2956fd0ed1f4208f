// The lives that a volume may lead, told once for every driver: each scenario makes claims and pods, writes, reads back by
// checksum, takes everything down again and looks for what was left behind.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { bytesOfQuantity } from '../../../src/api/quantity.ts'
import type { CSIVolumeSource, PersistentVolumeClaim, Pod } from '../../../src/api/generated/types.ts'
import { until } from '../../kit/machine.ts'
import { claim, gone, pod } from '../../kit/real-cluster.ts'
import type { CsiCluster } from '../../kit/real-cluster.ts'

/** A driver in a cluster, and how far it goes. */
export interface Subject {
  readonly cluster: CsiCluster
  readonly nodes: readonly string[]
  readonly storageClassName: string
  readonly snapshotClassName: string
  readonly size: string
  readonly grownSize: string
  /** False where a mounted filesystem cannot grow here; then the pod is made anew. */
  readonly growsMounted: boolean
  /** False for filesystems of which the kernel mounts no two copies at once. */
  readonly mountsCopies: boolean
  /** Whether a filesystem's own size follows that of its volume. */
  readonly limitsSize: boolean
  /** Volumes and snapshots that the driver still holds, by its own books. */
  readonly held: () => readonly string[]
}

type Mode = 'Filesystem' | 'Block'
type ClaimSpec = NonNullable<PersistentVolumeClaim['spec']>

export const inDefault = (name: string) => ({ namespace: 'default', name })
const ofClaim = (claimName: string, readOnly = false) => ({ persistentVolumeClaim: { claimName, readOnly } })

export interface Running {
  readonly uid: string
  /** The directory or the device that the pod would be given. */
  readonly path: string
  stop(): Promise<void>
}

export async function bound({ cluster }: Pick<Subject, 'cluster'>, name: string): Promise<string> {
  return until(`claim ${name} bound`, async () => {
    const found = await cluster.client.get('PersistentVolumeClaim', inDefault(name))
    return found.status?.phase === 'Bound' ? found.spec?.volumeName : undefined
  })
}

export async function makeClaim(subject: Subject, name: string, more: Partial<ClaimSpec> = {}): Promise<string> {
  const resources = { requests: { storage: subject.size } }
  const spec = { storageClassName: subject.storageClassName, resources, ...more }
  await subject.cluster.client.create('PersistentVolumeClaim', claim(name, spec))
  return bound(subject, name)
}

export async function run(
  { cluster }: Pick<Subject, 'cluster'>,
  object: Pod,
  volume: string,
  mode: Mode = 'Filesystem',
): Promise<Running> {
  const made = await cluster.client.create('Pod', object)
  const { name, uid = '' } = made.metadata
  const node = object.spec?.nodeName ?? ''
  const device = join(cluster.directory, node, 'pods', uid, 'volumeDevices', 'kubernetes.io~csi', volume)
  const path =
    mode === 'Block'
      ? await until(`device of pod ${name}`, () => existsSync(device) && device)
      : await until(`volume of pod ${name} mounted`, () => cluster.podVolume(uid, volume))
  const stop = async () => {
    await cluster.client.remove('Pod', inDefault(name), { gracePeriodSeconds: 0 })
    await gone(cluster.client, 'Pod', inDefault(name))
  }
  return { uid, path, stop }
}

export function podOn(node: string, name: string, claimName: string, mode: Mode = 'Filesystem', readOnly = false): Pod {
  const source = { ...ofClaim(claimName, readOnly), ...(mode === 'Block' ? { block: true } : {}) }
  return pod(name, { nodeName: node }, { d: source })
}

const dataBytes = 2 << 20

/** Random bytes in the volume, on disk when this returns; answers their checksum. */
export function write(path: string): string {
  const data = randomBytes(dataBytes)
  const file = openSync(isDevice(path) ? path : join(path, 'data'), isDevice(path) ? 'r+' : 'w')
  writeSync(file, data)
  fsyncSync(file)
  closeSync(file)
  return createHash('sha256').update(data).digest('hex')
}

export function checksum(path: string): string {
  const data = Buffer.alloc(dataBytes)
  const file = openSync(isDevice(path) ? path : join(path, 'data'), 'r')
  readSync(file, data)
  closeSync(file)
  return createHash('sha256').update(data).digest('hex')
}

const isDevice = (path: string) => !lstatSync(path).isDirectory()

/** Provision → write → move → read → grow → snapshot → restore → delete → nothing left. */
export async function wholeLife(subject: Subject, mode: Mode): Promise<void> {
  const { cluster, nodes } = subject
  const { client } = cluster
  const [first = '', second = first] = nodes
  const volume = await makeClaim(subject, 'data', { volumeMode: mode })
  const before = await run(subject, podOn(first, 'p1', 'data', mode), volume, mode)
  const written = write(before.path)
  await before.stop()
  let moved = await run(subject, podOn(second, 'p2', 'data', mode), volume, mode)
  assert.equal(checksum(moved.path), written, `written on ${first}, read on ${second}`)

  moved = await grow(subject, moved, () => run(subject, podOn(second, 'p2', 'data', mode), volume, mode), mode)
  assert.equal(checksum(moved.path), written, 'the same bytes after growing')

  await client.create('VolumeSnapshot', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 's', namespace: 'default' },
    spec: { source: { persistentVolumeClaimName: 'data' }, volumeSnapshotClassName: subject.snapshotClassName },
  })
  const ready = await until('snapshot ready', async () => {
    const found = await client.get('VolumeSnapshot', inDefault('s'))
    return found.status?.readyToUse ? found : undefined
  })
  assert.equal(bytesOfQuantity(ready.status?.restoreSize ?? '0'), bytesOfQuantity(subject.grownSize))
  const changed = write(moved.path)
  assert.notEqual(changed, written)
  const restored = await makeClaim(subject, 'restored', {
    volumeMode: mode,
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' },
    resources: { requests: { storage: subject.grownSize } },
  })
  if (!subject.mountsCopies && mode === 'Filesystem') {
    await moved.stop()
    await until('the source is unmounted', () => cluster.mounts().length === 0)
  }
  const copy = await run(subject, podOn(first, 'p3', 'restored', mode), restored, mode)
  assert.equal(checksum(copy.path), written, 'the restored volume has the bytes of the snapshot')
  if (subject.mountsCopies || mode === 'Block') {
    assert.equal(checksum(moved.path), changed, 'the source has its own')
    await moved.stop()
  }
  await copy.stop()
  await client.remove('VolumeSnapshot', inDefault('s'))
  await gone(client, 'VolumeSnapshot', inDefault('s'))
  await nothingLeft(subject, ['data', 'restored'])
}

/** Under the running pod where the machine allows it; else the driver says so and the next mount has the size. */
async function grow(
  subject: Subject,
  running: Running,
  again: () => Promise<Running>,
  mode: Mode = 'Filesystem',
): Promise<Running> {
  const { client } = subject.cluster
  const sized = subject.limitsSize && mode === 'Filesystem'
  const blocks = sized ? statfsSync(running.path).blocks : 0
  const patch = { spec: { resources: { requests: { storage: subject.grownSize } } } }
  await client.patch('PersistentVolumeClaim', inDefault('data'), { type: 'merge', body: patch })
  const found = () => client.get('PersistentVolumeClaim', inDefault('data'))
  let now = running
  if (mode === 'Filesystem' && !subject.growsMounted) {
    console.log('# CAP_SYS_RESOURCE is missing here: ext4 is grown by remounting, not online')
    await until('the driver grew the volume', async () =>
      (await found()).status?.allocatedResourceStatuses?.['storage']?.startsWith('NodeResize'),
    )
    await running.stop()
    await until('the device is unmounted', () => subject.cluster.mounts().length === 0)
    now = await again()
  }
  const grown = await until('claim grown', async () => {
    const claimNow = await found()
    return claimNow.status?.capacity?.['storage'] === subject.grownSize ? claimNow : undefined
  })
  assert.equal(grown.status?.allocatedResourceStatuses?.['storage'], undefined)
  assert.deepEqual(grown.status?.conditions ?? [], [], 'no condition of the expansion is left (CSI-62)')
  if (sized) assert.ok(statfsSync(now.path).blocks > blocks * 1.2, 'the filesystem grew')
  return now
}

/** Deletes the claims and looks everywhere: API, mounts, loop devices, the nodes' directories, the driver's books. */
export async function nothingLeft(subject: Subject, claims: readonly string[]): Promise<void> {
  const { cluster, held } = subject
  const { client } = cluster
  for (const name of claims) await client.remove('PersistentVolumeClaim', inDefault(name))
  for (const name of claims) await gone(client, 'PersistentVolumeClaim', inDefault(name))
  const objects = ['PersistentVolume', 'VolumeAttachment', 'VolumeSnapshotContent', 'VolumeSnapshot', 'Pod'] as const
  for (const kind of objects)
    await until(`no ${kind} left`, async () => (await client.list(kind)).items.length === 0 || undefined)
  await until('mounts gone', () => cluster.mounts().length === 0)
  await until('loop devices gone', () => cluster.loops().length === 0)
  await until('driver volumes gone', () => held().length === 0)
  await until('files gone', () => leftFiles(subject).length === 0, 5_000).catch(() => {
    assert.deepEqual(leftFiles(subject), [])
  })
  await until('nodes report nothing in use or attached', async () => {
    const found = (await client.list('Node')).items
    return found.every(({ status }) => !status?.volumesInUse?.length && !status?.volumesAttached?.length)
  })
}

/** Everything about volumes below the nodes' roots; the directories of plugins and drivers themselves may stay. */
function leftFiles({ cluster, nodes }: Subject): string[] {
  const entries = (path: string) => (existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [])
  return nodes.flatMap((node) => {
    const csi = join(cluster.directory, node, 'plugins/kubernetes.io/csi')
    const devices = join(csi, 'volumeDevices')
    const shelves = ['staging', 'publish'].map((name) => join(devices, name))
    return [
      ...entries(join(cluster.directory, node, 'pods')),
      ...entries(csi)
        .filter((path) => path !== devices)
        .flatMap(entries),
      ...entries(devices).filter((path) => !shelves.includes(path)),
      ...shelves.flatMap(entries),
    ]
  })
}

/** Two pods of one node, one of them reading only; the volume outlives the first. */
export async function sharedByPods(subject: Subject, accessModes: ClaimSpec['accessModes']): Promise<void> {
  const node = subject.nodes[0] ?? ''
  const volume = await makeClaim(subject, 'shared', { accessModes: accessModes ?? [] })
  const writer = await run(subject, podOn(node, 'w', 'shared'), volume)
  const reader = await run(subject, podOn(node, 'r', 'shared', 'Filesystem', true), volume)
  const written = write(writer.path)
  assert.equal(checksum(reader.path), written)
  assert.throws(() => writeFileSync(join(reader.path, 'no'), ''), { code: 'EROFS' })
  await writer.stop()
  assert.equal(checksum(reader.path), written, 'still there when the writer has gone')
  await reader.stop()
  await nothingLeft(subject, ['shared'])
}

/** A volume filled from another claim that may only be read, by many. */
export async function readOnlyMany(subject: Subject): Promise<void> {
  const node = subject.nodes[0] ?? ''
  const source = await makeClaim(subject, 'data')
  const writer = await run(subject, podOn(node, 'w', 'data'), source)
  const written = write(writer.path)
  await writer.stop()
  await until('unmounted', () => subject.cluster.mounts().length === 0)
  const volume = await makeClaim(subject, 'copies', {
    accessModes: ['ReadOnlyMany'],
    dataSource: { kind: 'PersistentVolumeClaim', name: 'data' },
  })
  const readers = [
    await run(subject, podOn(node, 'r1', 'copies', 'Filesystem', true), volume),
    await run(subject, podOn(node, 'r2', 'copies', 'Filesystem', true), volume),
  ]
  for (const reader of readers) {
    assert.equal(checksum(reader.path), written)
    assert.throws(() => writeFileSync(join(reader.path, 'no'), ''), { code: 'EROFS' })
  }
  for (const reader of readers) await reader.stop()
  await nothingLeft(subject, ['copies', 'data'])
}

/** CSI-43, TP-34: a volume written in the pod itself. */
export async function inline(subject: Subject, csi: CSIVolumeSource): Promise<void> {
  const node = subject.nodes[0] ?? ''
  const running = await run(subject, pod('inline', { nodeName: node }, { d: { csi } }), 'd')
  const written = write(running.path)
  assert.equal(checksum(running.path), written)
  const saved = JSON.parse(readFileSync(join(running.path, '../vol_data.json'), 'utf8')) as Record<string, string>
  const id = `csi-${createHash('sha256').update(`${running.uid}d`).digest('hex')}`
  assert.deepEqual(
    [saved['volumeHandle'], saved['volumeLifecycleMode'], saved['driverName']],
    [id, 'Ephemeral', csi.driver],
  )
  assert.deepEqual([...subject.held()], [id])
  await running.stop()
  await nothingLeft(subject, [])
}
