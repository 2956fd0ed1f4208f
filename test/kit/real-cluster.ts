// A whole Hawser with the built-in driver, for end-to-end tests: real API server (memory store), controllers, nodes,
// driver processes and mounts, all under one temporary directory that is checked for leftovers at the end.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KindMap, KindName } from '../../src/api/kinds.ts'
import type { ObjectRef } from '../../src/api/meta.ts'
import { isNotFound } from '../../src/api/status-error.ts'
import type { Client } from '../../src/client/client.ts'
import { createHistory } from '../../src/client/history.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { createCsiJobs } from '../../src/csi/sidecars/jobs.ts'
import type { CsiJobsOptions } from '../../src/csi/sidecars/jobs.ts'
import { spawnLocalDriver } from '../../src/drivers/local/process.ts'
import type { LocalDriverProcess } from '../../src/drivers/local/process.ts'
import { localDriverName } from '../../src/drivers/local/driver.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { startControllers } from '../../src/main/controllers.ts'
import { startControlPlane } from '../../src/main/control-plane.ts'
import { openDataDirectory } from '../../src/installation/data-directory.ts'
import { openNodeIdentity } from '../../src/installation/node-identity.ts'
import { startNode } from '../../src/main/node.ts'
import type { StartedNode } from '../../src/main/node.ts'
import { createLog, silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { loopsBelow, mountsBelow, until } from './machine.ts'
import { claimRequest, podRequest } from './objects.ts'

export interface CsiCluster extends AsyncDisposable {
  readonly client: Client
  readonly directory: string
  readonly url: string
  readonly token: string
  readonly nodes: readonly StartedNode[]
  readonly drivers: readonly LocalDriverProcess[]
  /** The pod's directory of one volume on any node. */
  podVolume(uid: string, volume: string): string
  /** Mount points and loop devices below the cluster's directory. */
  mounts(): string[]
  loops(): string[]
  /** Ids that the driver still holds. */
  driverVolumes(): string[]
}

export interface ClusterOptions {
  readonly mode: 'local' | 'shared'
  readonly nodeNames?: readonly string[]
  readonly runtime?: 'none' | 'process'
  readonly jobs?: CsiJobsOptions
  /** Starts further drivers, registered on every node; told the cluster's directory. */
  readonly others?: (directory: string) => readonly (Disposable & { readonly name: string; readonly socket: string })[]
}

export async function startCsiCluster(options: ClusterOptions): Promise<CsiCluster> {
  const verbose = process.env['HAWSER_TEST_LOG'] !== undefined
  const log = verbose
    ? createLog((level, message, fields) => console.error(level, message, JSON.stringify(fields)))
    : silentLog
  const clock = createSystemClock()
  const random = createRandom(randomBytes(16))
  const metrics = createMetrics()
  const directory = mkdtempSync(join(tmpdir(), 'hawser-csi-'))
  const names = options.nodeNames ?? ['n1']
  const config = {
    dataDirectory: directory,
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory' as const,
    bare: false,
    nodes: names.map((name) => ({ name, root: join(directory, name) })),
    csiDrivers: [],
    leaveToSidecars: [],
    runtime: options.runtime ?? ('none' as const),
    forceDetachOnTimeout: true,
  }
  await using stack = new AsyncDisposableStack()
  stack.defer(() => {
    // Each node makes its root a mount of its own (MOUNT-24) and leaves it, as a kubelet does. A failed test leaves more.
    for (const path of mountsBelow(directory).toSorted().toReversed()) spawnSync('umount', [path])
    for (const loop of loopsBelow(directory)) spawnSync('losetup', ['-d', loop])
    rmSync(directory, { recursive: true, force: true })
  })
  const data = stack.use(openDataDirectory(directory, config))
  const parts = { config, directory: data, clock, random, log, metrics }
  const plane = stack.use(await startControlPlane({ ...parts, onStoreLost: () => {}, onProgress: () => {} }))
  const controllerClient = plane.clientFor('system:kube-controller-manager')
  const host = stack.use(createLinuxHost())
  const history = stack.use(createHistory({ client: controllerClient, clock, log, owns: () => true }))
  const controllers = stack.use(
    await startControllers({
      host,
      client: controllerClient,
      clock,
      random,
      log,
      metrics,
      forceDetachOnTimeout: true,
      placement: {},
      history,
    }),
  )
  const others = options.others?.(directory) ?? []
  for (const other of others) stack.use(other)
  const forever = new AbortController().signal
  const nodes: StartedNode[] = []
  const drivers: LocalDriverProcess[] = []
  for (const node of config.nodes) {
    const identity = stack.use(await openNodeIdentity({ dataDirectory: directory, node, host }, forever))
    const socket = join(node.root, 'plugins', localDriverName, 'csi.sock')
    const dataDirectory = join(directory, options.mode === 'shared' ? 'driver' : `driver-${node.name}`)
    const driver = stack.use(
      await spawnLocalDriver({ clock, log }, { socket, dataDirectory, nodeId: node.name, mode: options.mode }),
    )
    const client = plane.clientFor(`system:node:${node.name}`)
    const csiDrivers = [{ name: localDriverName, socket }, ...others]
    const nodeDeps = { config, node, identity, client, clock, random, log, metrics, host, version: 'test', csiDrivers }
    const started = stack.use(await startNode(nodeDeps))
    nodes.push(started)
    drivers.push(driver)
  }
  const { informers } = controllers
  const jobs = { client: controllerClient, informers, clock, log, drivers: nodes[0]!.drivers, history }
  stack.use(createCsiJobs(jobs, { defaultFsType: 'ext4', ...options.jobs }))
  const client = plane.clientFor('admin')
  await createBasics(client, options.mode)
  const owned = stack.move()
  return {
    client,
    directory,
    url: plane.url,
    token: data.adminToken(),
    nodes,
    drivers,
    podVolume: (uid, volume) => {
      for (const name of names) {
        const path = join(directory, name, 'pods', uid, 'volumes', 'kubernetes.io~csi', volume, 'mount')
        if (mountsBelow(directory).includes(path)) return path
      }
      throw new Error(`volume ${volume} of pod ${uid} is not mounted`)
    },
    mounts: () => mountsBelow(directory).filter((path) => !names.some((name) => path === join(directory, name))),
    loops: () => loopsBelow(directory),
    driverVolumes: () =>
      readdirSync(directory)
        .filter((name) => name.startsWith('driver'))
        .flatMap((name) => ['volumes', 'snapshots'].flatMap((kind) => readdirSync(join(directory, name, kind)))),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function createBasics(client: Client, mode: 'local' | 'shared'): Promise<void> {
  await client.create('CSIDriver', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: localDriverName },
    spec: {
      attachRequired: mode === 'shared',
      podInfoOnMount: true,
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      fsGroupPolicy: 'File',
      storageCapacity: true,
    },
  })
  for (const volumeBindingMode of ['Immediate', 'WaitForFirstConsumer'] as const) {
    await client.create('StorageClass', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: volumeBindingMode === 'Immediate' ? 'now' : 'later' },
      provisioner: localDriverName,
      volumeBindingMode,
      allowVolumeExpansion: true,
      reclaimPolicy: 'Delete',
    })
  }
  await client.create('VolumeSnapshotClass', {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'snaps' },
    driver: localDriverName,
    deletionPolicy: 'Delete',
  })
}

export async function gone<K extends KindName>(client: Client, kind: K, ref: ObjectRef): Promise<void> {
  await until(`${kind} ${ref.name} gone`, () =>
    client.get(kind, ref).then(
      () => false,
      (error: unknown) => {
        if (isNotFound(error)) return true
        throw error
      },
    ),
  )
}

export function claim(
  name: string,
  overrides: Partial<NonNullable<KindMap['PersistentVolumeClaim']['spec']>> = {},
): KindMap['PersistentVolumeClaim'] {
  return claimRequest(name, {
    storageClassName: 'now',
    resources: { requests: { storage: '16Mi' } },
    ...overrides,
  })
}

export function pod(
  name: string,
  spec: Partial<NonNullable<KindMap['Pod']['spec']>>,
  volumes: Record<string, object>,
): KindMap['Pod'] {
  const block = (volume: object) => 'block' in volume
  const entries = Object.entries(volumes)
  return podRequest(name, {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'c',
        image: 'local/none:1',
        command: ['/bin/sleep', '3600'],
        volumeMounts: entries
          .filter(([, volume]) => !block(volume))
          .map(([volume]) => ({ name: volume, mountPath: `/${volume}` })),
        volumeDevices: entries
          .filter(([, volume]) => block(volume))
          .map(([volume]) => ({ name: volume, devicePath: `/dev/${volume}` })),
      },
    ],
    volumes: entries.map(([volume, source]) => {
      const { block: _block, ...rest } = source as { block?: true }
      return { name: volume, ...rest }
    }),
    ...spec,
  } as KindMap['Pod']['spec'] & {}) // the builder fills exactly the members a pod needs
}
