// How does a claim get its volume from a driver? Check, write the order, call CreateVolume until an answer is recorded,
// create the PersistentVolume (SIDE-6 … SIDE-19, XPR-1 … XPR-9).
//
// 1. Before the first call the claim carries our finalizer: it cannot vanish while a volume may be under way (decision 8, TP-38).
// 2. An order is kept until the driver's answer is recorded, so that every retry is identical (SIDE-17, SIDE-64).
// 3. The finalizer goes when the volume's object exists, or when the driver's last answer was final and the claim is being
//    deleted.
import { annotations } from '../../api/annotations.ts'
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import { annotation, isDeleting, keyOf, refKey, uidOf, withAnnotations } from '../../api/meta.ts'
import { isAlreadyExists, isObjectRefused } from '../../api/status-error.ts'
import { classOf } from '../../api/storage-class.ts'
import { objectKey } from '../../client/object-loop.ts'
import type { Index } from '../../client/informer.ts'
import type { ObjectKey, ObjectLoop } from '../../client/object-loop.ts'
import { asVolumeError, refused } from '../../volume/effect.ts'
import type { DriverVolume } from '../controller.ts'
import { timeouts } from '../deadline.ts'
import { findSource, neededSource, releaseSource } from './content-source.ts'
import { createJobHistory } from './job-history.ts'
import type { JobHistory } from './job-history.ts'
import { createLoopWithHistory } from './job-loop.ts'
import { addFinalizer, change, dropFinalizer, recordOnClaim, slowRetryMs, workers } from './job.ts'
import type { JobDeps } from './job.ts'
import type { Needed } from './needed-objects.ts'
import {
  mayConcern,
  planFailure,
  planProvision,
  provisionerOf,
  provisioningFinalizer,
  RescheduleError,
} from './provision-plan.ts'
import type { ProvisionPlan } from './provision-plan.ts'
import { answerProblem, selectedNodeOf, volumeNameFor, volumeObject, writeOrder } from './provision-request.ts'
import type { Order, OrderOptions } from './provision-request.ts'
import { planTopology } from './topology.ts'

export interface ProvisionerOptions extends OrderOptions {
  readonly strictTopology: boolean
  /** Set when each node runs its own instance: only claims of this node are ours. */
  readonly ownNode?: string
  /** Called after each volume made: free space has changed. */
  onProvisioned?(): void
}

const saveRetryMs = 1_000
const deleteTries = 5

/** A claim made anew under the same name is another one: keys carry the uid. */
type ClaimKey = ObjectKey<'PersistentVolumeClaim'>

interface Provisioner {
  readonly deps: JobDeps
  readonly options: ProvisionerOptions
  readonly history: JobHistory
  /** By uid: what the driver was, or may be, working on. */
  readonly orders: Map<string, Order>
  /** The uids of claims whose last answer was final: nothing is under way. */
  readonly settled: Set<string>
  /** Volumes of this driver by handle: those with an object, and the names of those whose object is being written. */
  readonly byHandle: Pick<Index<PersistentVolume>, 'get'>
  readonly saving: Map<string, string>
  readonly loop: Pick<ObjectLoop<ClaimKey>, 'wake' | 'wakeAt'>
}

export function createProvisioner(deps: JobDeps, options: ProvisionerOptions): AsyncDisposable {
  const { driver, informers } = deps
  const stack = new AsyncDisposableStack()
  const claims = informers.of('PersistentVolumeClaim')
  const classes = informers.of('StorageClass')
  const volumes = informers.of('PersistentVolume')
  const history = createJobHistory(deps, 'provision')
  const [orders, settled] = [new Map<string, Order>(), new Set<string>()]
  const loop = stack.use(
    createLoopWithHistory<ClaimKey>(deps, {
      ...{ name: 'provisioner', workers, history, failure: 'provisioning failed' },
      async sync(key, signal) {
        const uid = key.uid ?? ''
        // An order outlives its claim: the driver's answer must be recorded all the same, also when a new claim has its name.
        const cached = claims.get(refKey(key))
        const claim = cached?.metadata.uid === uid ? cached : orders.get(uid)?.claim
        if (!claim) return
        const plan = planProvision({
          claim,
          storageClass: classes.get(classOf(claim)),
          volumeExists: volumes.get(volumeNameFor(claim)) !== undefined,
          isOrdered: orders.has(uid),
          isSettled: settled.has(uid),
          driver: driver.name,
          owns: deps.owns().claim,
        })
        await carryOut(provisioner, claim, plan, signal)
      },
      needs(key) {
        const claim = claims.get(refKey(key))
        return claim && !claim.spec?.volumeName ? neededFor(deps, claim) : []
      },
    }),
  )
  const byHandle = volumes.index(({ spec }) => (spec?.csi?.driver === driver.name ? [spec.csi.volumeHandle] : []))
  const provisioner: Provisioner = { deps, options, history, orders, settled, byHandle, saving: new Map(), loop }
  follow(provisioner, stack)
  return stack
}

/** Its class is not among them: without one a claim does not fail, and every claim of a class hears of it. */
const neededFor = (deps: JobDeps, claim: PersistentVolumeClaim): readonly Needed[] => [
  ...neededSource(deps, claim),
  ...named('VolumeAttributesClass', claim.spec?.volumeAttributesClassName),
  ...named('CSINode', selectedNodeOf(claim)),
]
const named = (kind: Needed['kind'], name: string | undefined) => (name ? [{ kind, name }] : [])

function claimKey(claim: PersistentVolumeClaim): ClaimKey {
  return { ...objectKey('PersistentVolumeClaim', claim), uid: claim.metadata.uid ?? '' }
}

function follow({ deps, orders, settled, loop }: Provisioner, stack: AsyncDisposableStack): void {
  const { driver, informers } = deps
  const claims = informers.of('PersistentVolumeClaim')
  stack.use(
    claims.subscribe(({ object, previous }) => {
      const claim = object ?? previous
      const uid = claim.metadata.uid ?? ''
      if (!object) settled.delete(uid)
      if (object && !mayConcern(object, driver.name)) return
      if (object && previous && !needsSync(object, previous)) return
      if (object || orders.has(uid)) loop.wake(claimKey(claim))
    }),
  )
  stack.use(
    informers.of('StorageClass').subscribe(({ object }) => {
      if (object?.provisioner !== driver.name) return
      for (const claim of claims.items.values())
        if (!claim.spec?.volumeName && classOf(claim) === object.metadata.name) loop.wake(claimKey(claim))
    }),
  )
}

async function carryOut(
  provisioner: Provisioner,
  claim: PersistentVolumeClaim,
  plan: ProvisionPlan,
  signal: AbortSignal,
): Promise<void> {
  const { deps, history, orders, settled } = provisioner
  switch (plan.kind) {
    case 'nothing':
      return
    case 'awaitNode':
      return history.keepFailure(claimKey(claim))
    case 'release':
      orders.delete(uidOf(claim))
      settled.delete(uidOf(claim))
      if (!plan.dropFinalizer) return
      await dropFinalizer(deps.client, 'PersistentVolumeClaim', claim, provisioningFinalizer, signal)
      return releaseSource(deps, claim, signal)
    case 'provision':
      return provision(provisioner, claim, signal).catch((error: unknown) => failed(provisioner, claim, error))
    default:
      return plan satisfies never
  }
}

/** The finalizer is written before the order is kept, the order is kept before the driver is called. */
async function provision(provisioner: Provisioner, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { deps, options, history, orders, settled, loop } = provisioner
  const { client, driver } = deps
  const uid = uidOf(claim)
  const kept = orders.get(uid)
  if (!kept && (await selectOwnNode(provisioner, claim, signal))) return
  const order = kept ?? (await prepare(provisioner, claim, signal))
  if (order === undefined) return
  if (!kept && !isDeleting(claim)) {
    const text = `External provisioner is provisioning volume for claim "${keyOf(claim)}"`
    recordOnClaim(deps, claim, 'Normal', 'Provisioning', text)
    const held = await addFinalizer(client, 'PersistentVolumeClaim', claim, provisioningFinalizer, signal)
    if (!held) return // deleted before anything was asked of the driver
  }
  orders.set(uid, order)
  settled.delete(uid)
  await history.calling(claimKey(claim), 'CreateVolume', async () => {
    const saved = await createAndSave(provisioner, order, signal)
    if (saved === 'bySomebodyElse') warnOfAnother(deps, claim, order.volumeName)
  })
  orders.delete(uid)
  const text = `Successfully provisioned volume ${order.volumeName}`
  recordOnClaim(deps, claim, 'Normal', 'ProvisioningSucceeded', text)
  deps.log.info('volume provisioned', { driver: driver.name, claim: keyOf(claim), volume: order.volumeName })
  options.onProvisioned?.()
  if (isDeleting(claim)) loop.wake(claimKey(claim))
}

/**
 * A claim that nobody selected a node for, of a driver with an instance per node: this instance takes it, durably and before
 * anything is asked of the driver, so that no other instance ever makes a second volume. Answers whether it wrote the claim.
 */
async function selectOwnNode(
  { deps, options }: Provisioner,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const { ownNode } = options
  if (ownNode === undefined || isDeleting(claim) || selectedNodeOf(claim) !== undefined) return false
  const select = (each: PersistentVolumeClaim) =>
    selectedNodeOf(each) === undefined ? withAnnotations(each, { [annotations.selectedNode]: ownNode }) : undefined
  await change(deps.client, 'PersistentVolumeClaim', claim, select, {}, signal)
  return true
}

/** Everything the call depends on; undefined when somebody else makes the volume. */
async function prepare(
  { deps, options }: Provisioner,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<Order | undefined> {
  const storageClass = deps.informers.of('StorageClass').get(classOf(claim))
  if (!storageClass) throw refused('ClassMissing', `storageclass.storage.k8s.io "${classOf(claim)}" not found`, 'none')
  if (claim.spec?.selector) throw refused('SelectorUnsupported', 'claim Selector is not supported', 'none')
  const found = await findSource(deps, claim, storageClass.provisioner, signal)
  if (found.kind === 'foreign') {
    const text = 'Assuming an external populator will provision the volume'
    recordOnClaim(deps, claim, 'Normal', 'Provisioning', text)
    return undefined
  }
  const requirements = requirementsOf(deps, options, claim, storageClass)
  const source = found.kind === 'source' ? found.source : undefined
  return writeOrder(deps, { claim, storageClass, source, requirements }, options, signal)
}

function requirementsOf(
  { driver, plugin, informers }: JobDeps,
  options: ProvisionerOptions,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
) {
  if (!plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')) return undefined
  const topology = planTopology({
    driver: driver.name,
    claimName: claim.metadata.name,
    storageClass,
    selectedNode: selectedNodeOf(claim),
    nodes: [...informers.of('Node').items.values()],
    csiNodes: [...informers.of('CSINode').items.values()],
    // An instance of one node makes volumes there and nowhere else.
    strict: options.strictTopology || options.ownNode !== undefined,
  })
  if (topology.kind === 'reschedule') throw new RescheduleError(topology.reason)
  return topology.kind === 'required' ? topology.requirements : undefined
}

/** Records what happened and decides how to go on; throws for a normal retry. */
async function failed(
  { deps, history, orders, settled, loop }: Provisioner,
  claim: PersistentVolumeClaim,
  error: unknown,
): Promise<void> {
  const uid = uidOf(claim)
  const key = claimKey(claim)
  const hasTopology = deps.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')
  const hasSelectedNode = selectedNodeOf(claim) !== undefined
  const keepsNode = hasSelectedNode && annotation(claim, annotations.chosenNode) === selectedNodeOf(claim)
  const verdict = planFailure({ error, isOrdered: orders.has(uid), hasTopology, hasSelectedNode, keepsNode })
  const { message } = asVolumeError(error)
  const text =
    verdict === 'infeasible'
      ? `Volume provisioning failed with infeasible error. Retries will be delayed. ${message}`
      : `failed to provision volume with StorageClass "${classOf(claim)}": ${message}`
  recordOnClaim(deps, claim, 'Warning', 'ProvisioningFailed', text)
  if (verdict === 'background') throw error // the order stays: the driver may still be working on it
  orders.delete(uid)
  settled.add(uid)
  switch (verdict) {
    case 'infeasible': {
      const retryAt = deps.clock.now() + slowRetryMs
      loop.wakeAt(key, retryAt)
      history.failed(key, error, retryAt)
      break
    }
    case 'reschedule':
      history.failed(key, error)
      await reschedule(deps, claim)
      break
    case 'final':
      throw error
    default:
      verdict satisfies never
  }
  if (isDeleting(claim)) loop.wake(key)
}

/** CreateVolume; an answer that must not be kept is deleted again (SIDE-18), unless it is somebody's volume. */
async function createAndSave(provisioner: Provisioner, order: Order, signal: AbortSignal) {
  const { deps, options, saving } = provisioner
  const volume = await deps.driver.controller(timeouts.provisioner).createVolume(order.request, signal)
  const { volumeId } = volume
  checkNobodys(provisioner, order, volumeId)
  const problem = answerProblem(order, volume)
  if (problem !== undefined) return undo(deps, order, volumeId, problem, signal)
  saving.set(volumeId, order.volumeName)
  try {
    return await save(deps, options, order, volume, signal)
  } catch (error) {
    if (!isObjectRefused(error)) throw error
    return await undo(deps, order, volumeId, `its PersistentVolume is refused: ${asVolumeError(error).message}`, signal)
  } finally {
    saving.delete(volumeId)
  }
}

/**
 * A handle that another volume has is another claim's data: it is neither used nor deleted. While that volume is going away the
 * driver may have given its handle to a new one: then the order stays, and the driver is asked again.
 */
function checkNobodys({ byHandle, saving }: Provisioner, { volumeName }: Order, volumeId: string): void {
  const other = [...byHandle.get(volumeId)].find(({ metadata }) => metadata.name !== volumeName)
  const name = other?.metadata.name ?? saving.get(volumeId)
  if (name === undefined || name === volumeName) return
  const text = `the driver answered a volume handle that is already the handle of PersistentVolume ${name}: not used, because one claim would see the data of another`
  throw refused('AnswerRefused', text, other && isDeleting(other) ? 'unknown' : 'none')
}

async function undo(deps: JobDeps, order: Order, volumeId: string, problem: string, signal: AbortSignal) {
  const controller = deps.driver.controller(timeouts.provisioner)
  for (let attempt = 1; ; attempt++) {
    try {
      await controller.deleteVolume(volumeId, order.request.secrets ?? {}, signal)
      break
    } catch (error) {
      if (attempt < deleteTries) continue
      const text = `${problem}; the volume is not deleted yet: ${asVolumeError(error).message}`
      throw refused('AnswerRefused', text, 'unknown', [], error)
    }
  }
  throw refused('AnswerRefused', problem, 'none')
}

/** Two provisioners that know nothing of each other ask the driver for everything twice. */
function warnOfAnother(deps: JobDeps, claim: PersistentVolumeClaim, volume: string): void {
  const { name } = deps.driver
  const text = `volume ${volume} was made by somebody else at the same time. If the sidecars of driver ${name} run, start the server with --leave-to-sidecars ${name}, or start them with --leader-election`
  recordOnClaim(deps, claim, 'Warning', 'AnotherProvisioner', text)
  deps.log.warn('another provisioner works for this driver', { driver: name, volume, flag: '--leave-to-sidecars' })
}

/**
 * The volume exists now; its object is written however long that takes (XPR-9), unless it is one that no server takes. An object that is there at the first try was
 * written by somebody else: after a restart of ours it is known, and the driver is not asked again.
 */
async function save(
  deps: JobDeps,
  options: ProvisionerOptions,
  order: Order,
  volume: DriverVolume,
  signal: AbortSignal,
): Promise<'byUs' | 'bySomebodyElse'> {
  const object = volumeObject(order, volume, deps.driver.name, options)
  for (let attempt = 1; ; attempt++) {
    try {
      await deps.client.create('PersistentVolume', object, {}, signal)
      return 'byUs'
    } catch (error) {
      if (isAlreadyExists(error)) return attempt === 1 ? 'bySomebodyElse' : 'byUs'
      if (signal.aborted || isObjectRefused(error)) throw error
      deps.log.warn('volume object not saved yet', { volume: order.volumeName, error })
      await deps.clock.sleep(saveRetryMs, signal)
    }
  }
}

/** Without the annotation the scheduler chooses again (XPR-8). */
async function reschedule({ client }: JobDeps, claim: PersistentVolumeClaim): Promise<void> {
  const clear = (each: PersistentVolumeClaim) =>
    annotation(each, annotations.selectedNode) === undefined
      ? undefined
      : withAnnotations(each, { [annotations.selectedNode]: undefined })
  await change(client, 'PersistentVolumeClaim', claim, clear, {}, new AbortController().signal)
}

/** Our own finalizer writes and status changes are no reason to sync again. */
function needsSync(now: PersistentVolumeClaim, before: PersistentVolumeClaim): boolean {
  return (
    now.spec?.volumeName !== before.spec?.volumeName ||
    isDeleting(now) !== isDeleting(before) ||
    selectedNodeOf(now) !== selectedNodeOf(before) ||
    provisionerOf(now) !== provisionerOf(before) ||
    classOf(now) !== classOf(before) ||
    annotation(now, annotations.migratedTo) !== annotation(before, annotations.migratedTo)
  )
}
