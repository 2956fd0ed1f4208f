// How does a claim get its volume from a driver? One look per claim uid: check, write the order, call CreateVolume until
// an answer is recorded, create the PersistentVolume (SIDE-6 … SIDE-19, XPR-1 … XPR-9).
//
// 1. Before the first call the claim carries our finalizer: it cannot vanish while a volume may be under way (A.8, T-38).
// 2. An order is kept until the driver's answer is recorded, so that every retry is identical (SIDE-17, SIDE-64).
// 3. The finalizer goes when the volume's object exists, or when the driver's last word was final and the claim is going.
import { annotations } from '../../api/annotations.ts'
import { annotation, hasFinalizer, isDeleting, keyOf, uidOf, withAnnotations } from '../../api/meta.ts'
import { isAlreadyExists } from '../../api/status-error.ts'
import type { PersistentVolumeClaim, StorageClass } from '../../api/types.ts'
import type { Looked } from '../../loop/key-loop.ts'
import { asVolumeError } from '../../volume/effect.ts'
import { provisionVerdict } from '../codes.ts'
import type { DriverVolume } from '../controller.ts'
import { timeouts } from '../deadline.ts'
import { findSource, releaseSource } from './content-source.ts'
import { createJobStory, createToldLoop, reference } from './job-history.ts'
import { addFinalizer, change, className, dropFinalizer, jobBackoff, refused, slowRetryMs, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import { answerProblem, selectedNodeOf, volumeNameFor, volumeObject, writeOrder } from './provision-request.ts'
import type { Order, OrderOptions } from './provision-request.ts'
import { planTopology } from './topology.ts'

export interface ProvisionerOptions extends OrderOptions {
  readonly strictTopology: boolean
  /** Set when each node runs its own instance: only claims of this node are ours. */
  readonly ownNode?: string
  /** Told after each volume made: free space has changed. */
  onProvisioned?(): void
}

export const provisioningFinalizer = 'hawser.dev/provisioning'
const saveRetryMs = 1_000

export function createProvisioner(deps: JobDeps, options: ProvisionerOptions): AsyncDisposable {
  const { client, clock, log, recorder, driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const classes = informers.of('StorageClass')
  const nodes = informers.of('Node')
  const csiNodes = informers.of('CSINode')
  const volumes = informers.of('PersistentVolume')
  const keys = new Map<string, string>() // uid → namespace/name
  const orders = new Map<string, Order>() // uid → what the driver was, or may be, working on
  const settled = new Set<string>() // uids whose last answer was final: nothing is under way
  const controller = driver.controller(timeouts.provisioner)
  const calls = { controller, options }
  const story = createJobStory(deps, 'provision')
  const objectsOf = (uid: string) => [reference('PersistentVolumeClaim', keys.get(uid) ?? uid)]

  const look = async (uid: string, signal: AbortSignal): Promise<Looked | void> => {
    if (!deps.active()) return { again: clock.now() + 10_000 }
    const claim = claims.get(keys.get(uid) ?? '') ?? orders.get(uid)?.claim
    if (!claim || claim.metadata.uid !== uid) return
    if (volumes.get(volumeNameFor(claim))) return release(claim, signal)
    if (claim.spec?.volumeName) return release(claim, signal)
    const storageClass = classes.get(className(claim))
    const order = orders.get(uid)
    if (!order) {
      const wanted = storageClass !== undefined && isOurs(claim, storageClass, driver.name, options.ownNode)
      if (isDeleting(claim) && !hasFinalizer(claim, provisioningFinalizer)) return
      if (isDeleting(claim) && settled.has(uid)) return release(claim, signal)
      if (!wanted) return
    }
    await provision(claim, storageClass, signal).catch((error: unknown) => failed(claim, error))
  }
  const release = async (claim: PersistentVolumeClaim, signal: AbortSignal) => {
    orders.delete(uidOf(claim))
    settled.delete(uidOf(claim))
    if (!hasFinalizer(claim, provisioningFinalizer)) return
    // The binder is about to write the claim too: waiting for it saves both a conflict.
    if (!claim.spec?.volumeName && !isDeleting(claim)) return
    await dropFinalizer(client, 'PersistentVolumeClaim', claim, provisioningFinalizer, signal)
    await releaseSource(deps, claim, signal)
  }
  const provision = async (
    claim: PersistentVolumeClaim,
    storageClass: StorageClass | undefined,
    signal: AbortSignal,
  ) => {
    const uid = uidOf(claim)
    const kept = orders.get(uid)
    if (!kept && !storageClass)
      throw refused('ClassMissing', `storageclass.storage.k8s.io "${className(claim)}" not found`)
    const prepared = kept ?? (await prepare(claim, storageClass!, signal))
    if (prepared === undefined) return
    if ('reschedule' in prepared) throw new Reschedule(prepared.reschedule)
    if (!kept && !isDeleting(claim)) {
      const text = `External provisioner is provisioning volume for claim "${keyOf(claim)}"`
      recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, 'Normal', 'Provisioning', text)
      const held = await addFinalizer(client, 'PersistentVolumeClaim', claim, provisioningFinalizer, signal)
      if (!held) return // deleted before anything was asked of the driver
    }
    orders.set(uid, prepared)
    settled.delete(uid)
    await story.calling(objectsOf(uid), uid, 'CreateVolume', async () => {
      const volume = await ask(calls, prepared, signal)
      await save(deps, calls, prepared, volume, signal)
    })
    orders.delete(uid)
    const text = `Successfully provisioned volume ${prepared.volumeName}`
    recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, 'Normal', 'ProvisioningSucceeded', text)
    log.info('volume provisioned', { driver: driver.name, claim: keyOf(claim), volume: prepared.volumeName })
    options.onProvisioned?.()
    if (isDeleting(claim)) loop.wake(uid)
  }
  const prepare = async (claim: PersistentVolumeClaim, storageClass: StorageClass, signal: AbortSignal) => {
    if (claim.spec?.selector) throw refused('SelectorUnsupported', 'claim Selector is not supported')
    const found = await findSource(deps, claim, storageClass.provisioner, signal)
    if (found.kind === 'foreign') {
      const text = 'Assuming an external populator will provision the volume'
      recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, 'Normal', 'Provisioning', text)
      return undefined
    }
    const topology = deps.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')
      ? planTopology({
          driver: driver.name,
          claimName: claim.metadata.name,
          storageClass,
          selectedNode: selectedNodeOf(claim),
          nodes: [...nodes.items.values()],
          csiNodes: [...csiNodes.items.values()],
          strict: options.strictTopology,
        })
      : { kind: 'none' as const }
    if (topology.kind === 'reschedule') return { reschedule: topology.reason }
    const requirements = topology.kind === 'required' ? topology.requirements : undefined
    const source = found.kind === 'source' ? found.source : undefined
    return writeOrder(deps, { claim, storageClass, source, requirements }, options, signal)
  }
  /** Says what happened and decides how to go on; throws for a normal retry. */
  const failed = async (claim: PersistentVolumeClaim, error: unknown): Promise<void> => {
    const uid = uidOf(claim)
    const facts = {
      topology: deps.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'),
      selectedNode: selectedNodeOf(claim) !== undefined,
    }
    const asked = orders.has(uid)
    const verdict = error instanceof Reschedule ? 'reschedule' : asked ? provisionVerdict(error, facts) : 'final'
    const text = `failed to provision volume with StorageClass "${className(claim)}": ${asVolumeError(error).message}`
    const say = (message: string) =>
      recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, 'Warning', 'ProvisioningFailed', message)
    if (verdict === 'background') {
      say(text)
      throw error
    }
    orders.delete(uid)
    settled.add(uid)
    switch (verdict) {
      case 'infeasible':
        say(
          `Volume provisioning failed with infeasible error. Retries will be delayed. ${asVolumeError(error).message}`,
        )
        loop.wakeAt(uid, clock.now() + slowRetryMs)
        story.failed(objectsOf(uid), uid, error, clock.now() + slowRetryMs)
        break
      case 'reschedule':
        say(text)
        story.failed(objectsOf(uid), uid, error)
        await reschedule(deps, claim)
        break
      case 'final':
        say(text)
        throw error
      default:
        verdict satisfies never
    }
    if (isDeleting(claim)) loop.wake(uid)
  }
  const loop = stack.use(
    createToldLoop(story, objectsOf, {
      name: `provisioner ${driver.name}`,
      clock,
      workers,
      backoff: jobBackoff,
      look,
      onError: (uid, error, retryAt) =>
        log.warn('provisioning failed', { driver: driver.name, claim: keys.get(uid) ?? uid, error, retryAt }),
    }),
  )
  stack.use(
    claims.subscribe(({ object, previous, key }) => {
      const uid = (object ?? previous).metadata.uid ?? ''
      if (object) keys.set(uid, key)
      else {
        keys.delete(uid)
        settled.delete(uid)
      }
      if (object && !mayConcern(object, driver.name)) return
      if (object && previous && !worthLooking(object, previous)) return
      if (object || orders.has(uid)) loop.wake(uid)
    }),
  )
  const wakeClaimsOf = (storageClass: StorageClass | undefined) => {
    if (storageClass?.provisioner !== driver.name) return
    for (const claim of claims.items.values()) {
      if (!claim.spec?.volumeName && className(claim) === storageClass.metadata.name) loop.wake(uidOf(claim))
    }
  }
  stack.use(classes.subscribe(({ object }) => wakeClaimsOf(object)))
  return stack
}

class Reschedule extends Error {}

interface Calls {
  readonly controller: ReturnType<JobDeps['driver']['controller']>
  readonly options: ProvisionerOptions
}

/** CreateVolume, and the checks of SIDE-18: an answer that must not be kept is deleted again. */
async function ask({ controller }: Calls, order: Order, signal: AbortSignal): Promise<DriverVolume> {
  const volume = await controller.createVolume(order.request, signal)
  const problem = answerProblem(order, volume)
  if (problem === undefined) return volume
  for (let attempt = 1; ; attempt++) {
    try {
      await controller.deleteVolume(volume.volumeId, order.request.secrets ?? {}, signal)
      break
    } catch (error) {
      if (attempt >= 5) throw error
    }
  }
  throw refused('AnswerRefused', problem)
}

/** XPR-9: the volume exists now; its object is written however long that takes. */
async function save(
  deps: JobDeps,
  { options }: Calls,
  order: Order,
  volume: DriverVolume,
  signal: AbortSignal,
): Promise<void> {
  const object = volumeObject(order, volume, deps.driver.name, options)
  for (;;) {
    try {
      await deps.client.create('PersistentVolume', object, {}, signal)
      return
    } catch (error) {
      if (isAlreadyExists(error)) return
      if (signal.aborted) throw error
      deps.log.warn('volume object not saved yet', { volume: order.volumeName, error })
      await deps.clock.sleep(saveRetryMs, signal)
    }
  }
}

/** XPR-8: the scheduler chooses again. */
async function reschedule({ client }: JobDeps, claim: PersistentVolumeClaim): Promise<void> {
  const clear = (each: PersistentVolumeClaim) =>
    annotation(each, annotations.selectedNode) === undefined
      ? undefined
      : withAnnotations(each, { [annotations.selectedNode]: undefined })
  await change(client, 'PersistentVolumeClaim', claim, clear, {}, new AbortController().signal)
}

/** Cheap test on every change: could this claim be ours at all? */
function mayConcern(claim: PersistentVolumeClaim, driver: string): boolean {
  return provisionerOf(claim) === driver || annotation(claim, annotations.migratedTo) === driver
}

function provisionerOf(claim: PersistentVolumeClaim): string | undefined {
  return annotation(claim, annotations.storageProvisioner) ?? annotation(claim, annotations.betaStorageProvisioner)
}

/** XPR-2 */
function isOurs(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  driver: string,
  ownNode: string | undefined,
): boolean {
  if (claim.spec?.volumeName || !mayConcern(claim, driver)) return false
  const node = selectedNodeOf(claim)
  if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && node === undefined) return false
  return ownNode === undefined || node === ownNode
}

/** Our own finalizer writes and status changes are no reason to ask again. */
function worthLooking(now: PersistentVolumeClaim, before: PersistentVolumeClaim): boolean {
  return (
    now.spec?.volumeName !== before.spec?.volumeName ||
    isDeleting(now) !== isDeleting(before) ||
    selectedNodeOf(now) !== selectedNodeOf(before) ||
    provisionerOf(now) !== provisionerOf(before) ||
    className(now) !== className(before) ||
    annotation(now, annotations.migratedTo) !== annotation(before, annotations.migratedTo)
  )
}
