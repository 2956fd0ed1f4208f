// How much room is left, and where? CSIStorageCapacity objects for each class and topology segment of a driver that
// can tell (SIDE-50). Asked once a minute and after each volume made or deleted.
import { createHash } from 'node:crypto'
import { quantityOfBytes } from '../../api/quantity.ts'
import { isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import type { CSIStorageCapacity, StorageClass } from '../../api/types.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { timeouts } from '../deadline.ts'
import type { Segments } from '../values.ts'
import { change, jobBackoff } from './job.ts'
import type { JobDeps } from './job.ts'
import { driverParameters } from './parameters.ts'
import { allSegments } from './topology.ts'

export interface CapacityTracker extends AsyncDisposable {
  /** Free space has changed: look at everything again soon. */
  refresh(): void
}

export interface CapacityOptions {
  /** Where the objects live. */
  readonly namespace: string
  /** Whose objects they are; another instance's are left alone. */
  readonly managedBy: string
  /** Set when each node runs its own instance: only its own segment is asked for. */
  readonly ownNode?: string
}

const pollMs = 60_000
const driverLabel = 'csi.storage.k8s.io/drivername'
const managerLabel = 'csi.storage.k8s.io/managed-by'

interface Place {
  readonly storageClass: StorageClass
  readonly segment: Segments | undefined
}

export function createCapacityTracker(deps: JobDeps, options: CapacityOptions): CapacityTracker {
  const { client, clock, log, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const classes = informers.of('StorageClass')
  const nodes = informers.of('Node')
  const csiNodes = informers.of('CSINode')
  const objects = informers.of('CSIStorageCapacity')
  const controller = driver.controller(timeouts.provisioner)

  const places = (): Map<string, Place> => {
    const topology = deps.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')
    const own = options.ownNode
    const facts = {
      driver: driver.name,
      nodes: [...nodes.items.values()].filter(({ metadata }) => own === undefined || metadata.name === own),
      csiNodes: [...csiNodes.items.values()],
    }
    const segments = topology ? allSegments(facts, undefined) : [undefined]
    const found = new Map<string, Place>()
    for (const storageClass of classes.items.values()) {
      if (storageClass.provisioner !== driver.name || storageClass.volumeBindingMode !== 'WaitForFirstConsumer')
        continue
      for (const segment of segments)
        found.set(nameFor(driver.name, storageClass.metadata.name, segment), { storageClass, segment })
    }
    return found
  }
  const ours = ({ metadata }: CSIStorageCapacity) =>
    metadata.labels?.[driverLabel] === driver.name && metadata.labels?.[managerLabel] === options.managedBy

  const look = async (name: string, signal: AbortSignal) => {
    if (!deps.active()) return { again: clock.now() + pollMs }
    const present = objects.get(`${options.namespace}/${name}`)
    const place = places().get(name)
    if (!place) {
      if (present && ours(present))
        await client.remove('CSIStorageCapacity', { namespace: options.namespace, name }, {}, signal).catch(ignoreGone)
      return
    }
    const parameters = driverParameters(place.storageClass.parameters)
    const answer = await controller.capacity({ parameters, ...(place.segment && { topology: place.segment }) }, signal)
    const wanted: CSIStorageCapacity = {
      ...objectFor(name, place, driver.name, options),
      capacity: quantityOfBytes(answer.availableBytes),
      ...(answer.maximumVolumeBytes !== undefined && { maximumVolumeSize: quantityOfBytes(answer.maximumVolumeBytes) }),
    }
    if (present) await change(client, 'CSIStorageCapacity', present, (each) => updated(each, wanted), {}, signal)
    else await client.create('CSIStorageCapacity', wanted, {}, signal).catch(ignoreExisting)
    return { again: clock.now() + pollMs }
  }
  const loop = stack.use(
    createKeyLoop<string>({
      name: `capacity ${driver.name}`,
      clock,
      workers: 2,
      backoff: jobBackoff,
      look,
      onError: (name, error, retryAt) =>
        log.warn('capacity unknown', { driver: driver.name, object: name, error, retryAt }),
    }),
  )
  const refresh = () => {
    for (const name of places().keys()) loop.wake(name)
  }
  const reconsider = () => {
    refresh()
    for (const object of objects.items.values()) if (ours(object)) loop.wake(object.metadata.name)
  }
  let labelsBefore = ''
  stack.use(
    classes.subscribe(({ object, previous }) => (object ?? previous)?.provisioner === driver.name && reconsider()),
  )
  stack.use(csiNodes.subscribe(reconsider))
  stack.use(
    nodes.subscribe(() => {
      // Nodes report often; only their segments matter here.
      const now = JSON.stringify([...places().keys()])
      if (now !== labelsBefore) reconsider()
      labelsBefore = now
    }),
  )
  reconsider()
  let waiting: Disposable | undefined
  stack.defer(() => waiting?.[Symbol.dispose]())
  return {
    // Many volumes made at once are one question, a moment later.
    refresh: () => {
      waiting ??= clock.at(clock.now() + 500, () => {
        waiting = undefined
        refresh()
      })
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

function nameFor(driver: string, storageClass: string, segment: Segments | undefined): string {
  const text = JSON.stringify([driver, storageClass, segment ?? null])
  return `csisc-${createHash('sha256').update(text).digest('hex').slice(0, 20)}`
}

function objectFor(
  name: string,
  { storageClass, segment }: Place,
  driver: string,
  options: CapacityOptions,
): CSIStorageCapacity {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: {
      name,
      namespace: options.namespace,
      labels: { [driverLabel]: driver, [managerLabel]: options.managedBy },
    },
    storageClassName: storageClass.metadata.name,
    nodeTopology: segment ? { matchLabels: segment.segments } : {},
  }
}

function updated(present: CSIStorageCapacity, wanted: CSIStorageCapacity): CSIStorageCapacity {
  if (present.capacity === wanted.capacity && present.maximumVolumeSize === wanted.maximumVolumeSize) return present
  const { maximumVolumeSize: _old, ...rest } = present
  return {
    ...rest,
    ...(wanted.capacity !== undefined && { capacity: wanted.capacity }),
    ...(wanted.maximumVolumeSize !== undefined && { maximumVolumeSize: wanted.maximumVolumeSize }),
  }
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}
