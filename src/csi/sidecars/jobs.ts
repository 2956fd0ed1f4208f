// Which jobs run for which driver? As soon as a driver is registered and ready, everything its capabilities allow is
// started, and begun anew when its connection was lost, for it may have changed (SIDE-1, SIDE-2, SIDE-60).
import { operationBackoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Client } from '../../client/client.ts'
import type { History } from '../../client/history.ts'
import type { Informers } from '../../client/informer.ts'
import { createRecorder } from '../../client/recorder.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { KeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Driver, Drivers } from '../drivers.ts'
import type { ControllerCapabilityName, NodeCapabilityName } from '../values.ts'
import { createAttacher } from './attacher.ts'
import { createCapacityTracker, removeCapacities } from './capacity.ts'
import { createSourceReleaser } from './content-source.ts'
import { createDeleter } from './deleter.ts'
import { createHealthMonitor } from './health.ts'
import { createFreshView } from './fresh-view.ts'
import type { FreshView } from './fresh-view.ts'
import type { JobDeps } from './job.ts'
import { createLeaseWatch } from './leases.ts'
import type { JobName } from './leases.ts'
import { createModifier } from './modifier.ts'
import type { JobsMode } from './ownership.ts'
import { ownershipFrom, planMode } from './ownership.ts'
import { createProvisioner } from './provisioner.ts'
import { createResizer } from './resizer.ts'
import { createConnectionHistory } from '../connection-history.ts'
import type { ConnectionHistory } from '../connection-history.ts'
import { createSnapshotBinder } from './snapshot-binder.ts'
import { createSnapshotter } from './snapshotter.ts'

export interface CsiJobsDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  readonly log: Log
  readonly drivers: Drivers
  readonly history?: History
}

export interface CsiJobsOptions {
  /** Drivers, or single jobs of drivers, that upstream's sidecars do; always, whatever the leases say. */
  readonly leaveTo?: Readonly<Record<string, 'all' | readonly JobName[]>>
  /** Our own holder identity, so that our own leases do not stop us. */
  readonly identity?: string
  /** Where CSIStorageCapacity objects are kept. */
  readonly namespace?: string
  /** The node whose instances of drivers these are: with a topology, each does the jobs of its own node, else one of them does all. */
  readonly ownNode?: string
  /** Of a driver without a topology, the instance on this node does the jobs, if there is one. */
  readonly prefers?: string
  /** Bind snapshots to their contents; once in a process (default true). */
  readonly bindSnapshots?: boolean
  readonly strictTopology?: boolean
  readonly defaultFsType?: string
  readonly extraMetadata?: boolean
}

export interface CsiJobs extends AsyncDisposable {
  /** Drivers whose jobs are running. */
  readonly running: ReadonlySet<string>
}

export function createCsiJobs(deps: CsiJobsDeps, options: CsiJobsOptions = {}): CsiJobs {
  const { client, clock, log, drivers, informers } = deps
  const stack = new AsyncDisposableStack()
  const view = stack.use(createFreshView({ client, informers }))
  const connection = createConnectionHistory(deps.history, options.ownNode)
  const leases = createLeaseWatch({ informers, clock, identity: options.identity ?? '' })
  const running = new Map<Driver, { readonly mode: JobsMode; readonly jobs: AsyncDisposable }>()
  const names = new Set<string>()
  const stale = new Set<Driver>()
  // Asked for before the first job starts, so that no job decides on a half-filled cache.
  for (const kind of watchedKinds) informers.of(kind)

  const csiNodes = informers.of('CSINode')
  const stop = async (driver: Driver) => {
    const found = running.get(driver)
    running.delete(driver)
    names.delete(driver.name)
    await found?.jobs[Symbol.asyncDispose]()
  }
  const loop = stack.use(
    createKeyLoop<Driver>({
      name: 'csi jobs',
      clock,
      workers: 8,
      backoff: operationBackoff,
      async look(driver, signal) {
        const registered = drivers.get(driver.name) === driver
        if (!registered || stale.delete(driver)) await stop(driver)
        if (!registered) return
        await informers.synced()
        const { ownNode, prefers } = options
        const mode = planMode({ driver: driver.name, ownNode, prefers, csiNodes: csiNodes.items.values() })
        if (running.get(driver)?.mode !== mode) await stop(driver)
        if (mode === 'none' || running.has(driver)) return
        const jobs = await start(deps, optionsFor(options, mode), { leases, view, connection }, driver, signal)
        connection.works(driver)
        running.set(driver, { mode, jobs })
        names.add(driver.name)
        log.info('csi jobs started', { driver: driver.name })
      },
      onError(driver, error, retryAt) {
        if (drivers.get(driver.name) === driver) connection.failed(driver, error)
        log.warn('csi jobs not started', { driver: driver.name, error, retryAt })
      },
    }),
  )
  if (options.ownNode !== undefined)
    stack.use(csiNodes.subscribe(() => drivers.all().forEach((each) => loop.wake(each))))
  const connections = new Map<Driver, Disposable>()
  stack.use(
    drivers.subscribe(({ kind, driver }) => {
      if (kind === 'added') connections.set(driver, followConnection(driver, loop, stale, connection))
      else {
        connections.get(driver)?.[Symbol.dispose]()
        connections.delete(driver)
        connection.works(driver) // nobody waits for a driver that is no longer registered
      }
      loop.wake(driver)
    }),
  )
  if (options.bindSnapshots !== false) bindSnapshots(stack, deps, options, { leases, view })
  return {
    running: names,
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync()
      for (const driver of [...running.keys()]) await stop(driver)
    },
  }
}

function bindSnapshots(
  stack: AsyncDisposableStack,
  { client, clock, log, history }: CsiJobsDeps,
  options: CsiJobsOptions,
  { leases, view }: { readonly leases: ReturnType<typeof createLeaseWatch>; readonly view: FreshView },
): void {
  const recorder = stack.use(createRecorder({ client, clock, log, component: 'snapshot-controller' }))
  const active = () => !leases.heldByAnother('snapshot-controller', '')
  const isLeft = (driver: string) => isLeftTo(options, driver, 'snapshot-controller')
  const binder = { client: view.client, clock, log, informers: view.caches, recorder, history, active }
  stack.use(createSnapshotBinder(binder, { isLeft }))
}

/** A driver that was away begins anew, and as soon as it is back: how long it was away is no reason to wait. */
function followConnection(
  driver: Driver,
  loop: Pick<KeyLoop<Driver>, 'wake' | 'forget'>,
  stale: Set<Driver>,
  connection: ConnectionHistory,
): Disposable {
  const stack = new DisposableStack()
  const lost = () => {
    connection.waits(driver, 'driverUnreachable')
    stale.add(driver)
    loop.wake(driver)
  }
  stack.use(driver.onLost(lost))
  stack.use(driver.onReady(() => (loop.forget(driver), loop.wake(driver))))
  return stack
}

const watchedKinds = [
  'PersistentVolumeClaim',
  'PersistentVolume',
  'StorageClass',
  'VolumeAttachment',
  'Node',
  'CSINode',
  'CSIStorageCapacity',
  'VolumeSnapshot',
  'VolumeSnapshotClass',
  'VolumeSnapshotContent',
  'VolumeAttributesClass',
  'Pod',
  'Lease',
] as const

async function start(
  deps: CsiJobsDeps,
  options: CsiJobsOptions,
  shared: {
    readonly leases: ReturnType<typeof createLeaseWatch>
    readonly view: FreshView
    readonly connection: ConnectionHistory
  },
  driver: Driver,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const { clock, log, history } = deps
  const { client, caches: informers } = shared.view
  await driver.identity.waitReady(signal, (reason) => shared.connection.waits(driver, reason))
  const plugin = await driver.pluginCapabilities(signal)
  const controller = await driver.controllerCapabilities(signal)
  // A controller-only instance has no node service: then nothing is known of it, which is fine.
  const node = await driver.nodeCapabilities(signal).catch(() => new Set<NodeCapabilityName>())
  await using stack = new AsyncDisposableStack()
  const base = (job: JobName, component: string): JobDeps | undefined => {
    if (isLeftTo(options, driver.name, job)) return undefined
    const recorder = stack.use(createRecorder({ client, clock, log, component }))
    const active = () => !shared.leases.heldByAnother(job, driver.name)
    const owns = () => ownershipFrom(informers, driver.name, options.ownNode)
    const known = { plugin, controller, node, ownNode: options.ownNode }
    return { client, clock, log, informers, driver, ...known, recorder, active, owns, history }
  }
  const own = options.ownNode === undefined ? {} : { ownNode: options.ownNode }
  const provisioner = base('provisioner', `${driver.name}_hawser`)
  if (!provisioner)
    await removeCapacities({ client, informers }, { driver: driver.name, managedBy: managedBy(options) }, signal)
  if (provisioner && controller.has('CREATE_DELETE_VOLUME')) startProvisioner(stack, provisioner, options, own)
  const attacher = base('attacher', `csi-attacher ${driver.name}`)
  if (attacher) stack.use(createAttacher(attacher))
  const resizer = base('resizer', `external-resizer ${driver.name}`)
  if (resizer && (controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME'))) stack.use(createResizer(resizer))
  if (resizer && controller.has('MODIFY_VOLUME')) stack.use(createModifier(resizer))
  const snapshotter = base('snapshotter', `csi-snapshotter ${driver.name}`)
  if (snapshotter && controller.has('CREATE_DELETE_SNAPSHOT')) stack.use(createSnapshotter(snapshotter))
  if (provisioner && tellsHealth(controller)) stack.use(createHealthMonitor(provisioner))
  return stack.move()
}

function isLeftTo({ leaveTo }: CsiJobsOptions, driver: string, job: JobName): boolean {
  const left = leaveTo?.[driver]
  return left === 'all' || left?.includes(job) === true
}

/** In the newer protocol, or in the older one. */
function tellsHealth(controller: ReadonlySet<ControllerCapabilityName>): boolean {
  if (controller.has('LIST_VOLUME_HEALTH') || controller.has('GET_VOLUME_HEALTH')) return true
  return controller.has('VOLUME_CONDITION') && (controller.has('LIST_VOLUMES') || controller.has('GET_VOLUME'))
}

/** An instance that does the jobs of the whole cluster works as if it were the only one. */
function optionsFor({ ownNode, ...rest }: CsiJobsOptions, mode: JobsMode): CsiJobsOptions {
  return mode === 'own' && ownNode !== undefined ? { ...rest, ownNode } : rest
}

/** Whose CSIStorageCapacity objects are ours. */
const managedBy = ({ ownNode }: CsiJobsOptions) => `hawser-${ownNode ?? 'controller'}`

function startProvisioner(
  stack: AsyncDisposableStack,
  deps: JobDeps,
  options: CsiJobsOptions,
  own: { readonly ownNode?: string },
): void {
  const tracker = deps.controller.has('GET_CAPACITY')
    ? stack.use(
        createCapacityTracker(deps, {
          namespace: options.namespace ?? 'kube-system',
          managedBy: managedBy(options),
          ...own,
        }),
      )
    : undefined
  const changed = () => tracker?.refresh()
  const identity = `hawser-${deps.driver.name}`
  stack.use(
    createProvisioner(deps, {
      ...own,
      identity,
      strictTopology: options.strictTopology ?? false,
      defaultFsType: options.defaultFsType ?? '',
      extraMetadata: options.extraMetadata ?? false,
      onProvisioned: changed,
    }),
  )
  stack.use(createSourceReleaser(deps))
  stack.use(createDeleter(deps, { onDeleted: changed }))
}
