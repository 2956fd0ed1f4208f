// How much room is left, and where? CSIStorageCapacity objects for each class and topology segment of a driver that
// can tell (SIDE-50). Asked once a minute and after each volume made or deleted.
import { refKey, refOf } from '../../api/meta.ts'
import { ignoreNotFound, isAlreadyExists } from '../../api/status-error.ts'
import { createObjectLoop, keyText } from '../../client/object-loop.ts'
import type { ObjectKey } from '../../client/object-loop.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { timeouts } from '../deadline.ts'
import { capacityObject, isOwn, placesOf, planCapacity, withCapacity } from './capacity-plan.ts'
import type { Owner, Place } from './capacity-plan.ts'
import { change, jobBackoff } from './job.ts'
import type { JobDeps } from './job.ts'
import { driverParameters } from './parameters.ts'

export interface CapacityTracker extends AsyncDisposable {
  /** Free space has changed: ask for everything again soon. */
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

type CapacityKey = ObjectKey<'CSIStorageCapacity'>

const pollMs = 60_000
/** Many volumes made at once are one question. */
const refreshMs = 500

export function createCapacityTracker(deps: JobDeps, options: CapacityOptions): CapacityTracker {
  const { clock, log, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const owner: Owner = { ...options, driver: driver.name }
  const objects = informers.of('CSIStorageCapacity')
  const loop = stack.use(
    createObjectLoop<CapacityKey>({
      name: `capacity ${driver.name}`,
      clock,
      workers: 2,
      backoff: jobBackoff,
      async look(key, signal) {
        if (deps.active()) return sync(deps, owner, key, currentPlaces(deps, options).get(key.name), signal)
        // Whoever holds the lease publishes objects of its own: ours would only grow old beside them.
        await sync(deps, owner, key, undefined, signal)
        return { again: clock.now() + pollMs }
      },
      onError: (key, error, retryAt) =>
        log.warn('capacity unknown', { driver: driver.name, object: keyText(key), error, retryAt }),
    }),
  )
  const wake = (name: string) => loop.wake({ kind: 'CSIStorageCapacity', namespace: options.namespace, name })
  const refresh = () => {
    for (const name of currentPlaces(deps, options).keys()) wake(name)
  }
  const reconsider = () => {
    refresh()
    for (const object of objects.items.values()) if (isOwn(object, owner)) wake(object.metadata.name)
  }
  follow(deps, options, stack, reconsider)
  reconsider()
  let timer: Disposable | undefined
  stack.defer(() => timer?.[Symbol.dispose]())
  return {
    refresh: () => {
      timer ??= clock.at(clock.now() + refreshMs, () => {
        timer = undefined
        refresh()
      })
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** For a driver whose provisioner is left to others: what we published before would only grow old. */
export async function removeCapacities(
  { client, informers }: Pick<JobDeps, 'client' | 'informers'>,
  owner: Pick<Owner, 'driver' | 'managedBy'>,
  signal: AbortSignal,
): Promise<void> {
  for (const object of informers.of('CSIStorageCapacity').items.values())
    if (isOwn(object, owner)) await client.remove('CSIStorageCapacity', refOf(object), {}, signal).catch(ignoreNotFound)
}

function follow(deps: JobDeps, options: CapacityOptions, stack: AsyncDisposableStack, reconsider: () => void): void {
  const { driver, informers } = deps
  let placesBefore = ''
  stack.use(
    informers
      .of('StorageClass')
      .subscribe(({ object, previous }) => (object ?? previous)?.provisioner === driver.name && reconsider()),
  )
  stack.use(informers.of('CSINode').subscribe(reconsider))
  stack.use(
    informers.of('Node').subscribe(() => {
      // Nodes report often; only their segments matter here.
      const places = JSON.stringify([...currentPlaces(deps, options).keys()])
      if (places !== placesBefore) reconsider()
      placesBefore = places
    }),
  )
}

function currentPlaces({ driver, plugin, informers }: JobDeps, { ownNode }: CapacityOptions) {
  return placesOf({
    driver: driver.name,
    hasTopology: plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
    classes: informers.of('StorageClass').items.values(),
    nodes: [...informers.of('Node').items.values()],
    csiNodes: [...informers.of('CSINode').items.values()],
    ...(ownNode === undefined ? {} : { ownNode }),
  })
}

async function sync(
  deps: JobDeps,
  owner: Owner,
  key: CapacityKey,
  place: Place | undefined,
  signal: AbortSignal,
): Promise<Looked | void> {
  const { client, clock, driver } = deps
  const { namespace } = owner
  const { name } = key
  const present = deps.informers.of('CSIStorageCapacity').get(refKey(key))
  const plan = planCapacity(present, place, owner)
  switch (plan.kind) {
    case 'nothing':
      return
    case 'remove':
      return client.remove('CSIStorageCapacity', { namespace, name }, {}, signal).then(() => {}, ignoreNotFound)
    case 'ask': {
      const { storageClass, segment } = plan.place
      const request = { parameters: driverParameters(storageClass.parameters), ...(segment && { topology: segment }) }
      const answer = await driver.controller(timeouts.provisioner).capacity(request, signal)
      const wanted = capacityObject(name, plan.place, answer, owner)
      if (present) await change(client, 'CSIStorageCapacity', present, (each) => withCapacity(each, wanted), {}, signal)
      else await client.create('CSIStorageCapacity', wanted, {}, signal).catch(ignoreExisting)
      return { again: clock.now() + pollMs }
    }
    default:
      return plan satisfies never
  }
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}
