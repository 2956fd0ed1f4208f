// How does a volume get its size on the node, while it is mounted and while it is in use? (EXN-1 … EXN-10)
// The claim's status is the protocol with the control plane: what it says decides whether the driver is asked at all.
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from '../../api/generated/types.ts'
import { bytesOfQuantity, quantityOfBytes } from '../../api/quantity.ts'
import { timestamp } from '../../clock/clock.ts'
import { asVolumeError, hasTag, outcomeOf, refused } from '../../volume/effect.ts'
import type { VolumeError } from '../../volume/effect.ts'
import { pluginLabel } from '../../volume/identity.ts'
import { eventReasons } from '../../volume/messages.ts'
import type { Operation, Report } from '../../volume/operation.ts'
import { podVolumePath, podDeviceDirectory } from '../../volume/paths.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import type { ActualEvent } from '../volumes/actual.ts'
import type { MountWork, OperationDeps } from './steps.ts'
import { mountSubject, notifyPod } from './steps.ts'

export interface ExpandPaths {
  readonly path: string
  readonly stagingPath: string
  readonly devicePath: string
}

/** What an expansion came to; `events` are for the actual world, whatever the end. */
interface Expansion {
  readonly finished: boolean
  readonly bytes: bigint
  readonly events: readonly ActualEvent[]
  readonly error?: VolumeError
}

export const expandInUse: Operation<MountWork, OperationDeps, ActualEvent> = {
  name: 'volume_fs_resize',
  label: 'NodeExpandVolume',
  failureReason: eventReasons.resizeFailed,
  key: ({ desired }) => [desired.volume],
  subject: mountSubject,
  plugin: ({ desired, mount }) => pluginLabel(desired.plugin, mount.spec),
  async run(work, deps, report, signal) {
    const { step, emit } = report
    const { desired, mount } = work
    const { volume } = desired
    const actual = work.actual()
    const oldBytes = actual?.sizeBytes ?? 0n
    const check = () => {
      if (oldBytes === 0n || desired.sizeBytes === 0n) {
        throw refused('SizeUnknown', 'current or new size of the volume is not set', 'untried')
      }
    }
    await step('expansion', check, { prefix: 'NodeExpandvolume.expansion failed' })
    const grow = async (): Promise<boolean> => {
      const plugin = expander(work, deps)
      const claim = plugin && (await claimOf(work, deps, signal))
      if (!plugin || !claim) return false
      if (mount.readOnly) return (tellReadOnly(work, deps, claim), false)
      const paths = await pathsInUse(work, deps, plugin, signal)
      const newBytes = desired.sizeBytes
      return await expandAndSettle({ work, deps, plugin, claim, paths, oldBytes, newBytes }, report, signal)
    }
    const prefix = 'NodeExpandVolume.NodeExpandVolume failed'
    if (await step('NodeExpandVolume', grow, { prefix })) return
    // Not allowed yet is no failure; it is looked at again when the size or the claim changes, not ten times a second (WA-24).
    emit({ kind: 'expansionDeferred', volume, bytes: desired.sizeBytes, claimChanges: desired.claimChanges })
  },
}

/** Part of every mount. Only an error blocks the mount; "not finished" does not (EXN-2). */
export async function expandOnMount(
  work: MountWork,
  deps: OperationDeps,
  paths: ExpandPaths,
  report: Report<ActualEvent>,
  signal: AbortSignal,
): Promise<void> {
  const { mount } = work
  const plugin = expander(work, deps)
  if (!plugin || work.remount) return
  const claim = await claimOf(work, deps, signal)
  if (!claim) return
  // As recorded, a pod that reads only hears of it even when there was nothing to grow.
  if (mount.readOnly) return tellReadOnly(work, deps, claim)
  const oldBytes = bytesOf(claim.status?.capacity?.['storage'])
  const newBytes = bytesOf(mount.spec.persistentVolume?.spec?.capacity?.['storage'])
  if (oldBytes >= newBytes) return
  await expandAndSettle({ work, deps, plugin, claim, paths, oldBytes, newBytes }, report, signal)
}

type ClaimCondition = NonNullable<PersistentVolumeClaimStatus['conditions']>[number]

interface Attempt {
  readonly work: MountWork
  readonly deps: OperationDeps
  readonly plugin: NodePlugin
  readonly claim: PersistentVolumeClaim
  readonly paths: ExpandPaths
  readonly oldBytes: bigint
  readonly newBytes: bigint
}

/**
 * What was learnt reaches the world whatever the end; then an error is thrown, or we say whether it has its size. A size
 * reached by a mount counts, too: a second, needless call by the next look is spared (WA-33).
 */
async function expandAndSettle(attempt: Attempt, { emit }: Report<ActualEvent>, signal: AbortSignal): Promise<boolean> {
  const { finished, bytes, events, error } = await expandOnce(attempt, signal)
  for (const event of events) emit(event)
  if (error) throw error
  if (finished) emit({ kind: 'resized', volume: attempt.work.desired.volume, bytes })
  // What was allocated may be less than what the volume shows; asking again would change nothing.
  return finished && bytes >= attempt.newBytes
}

/** The recovery-capable flow when the claim carries its marks, else the legacy flow (EXN-4). */
async function expandOnce(attempt: Attempt, signal: AbortSignal): Promise<Expansion> {
  const { claim } = attempt
  const recovery = resizeStatus(claim) !== '' || claim.status?.allocatedResources !== undefined
  return recovery ? await expandWithRecovery(attempt, signal) : await expandLegacy(attempt, signal)
}

async function expandWithRecovery(attempt: Attempt, signal: AbortSignal): Promise<Expansion> {
  const { work, deps, claim, oldBytes } = attempt
  const { volume } = work.desired
  const newBytes = bytesOf(claim.status?.allocatedResources?.['storage']) || attempt.newBytes
  const status = resizeStatus(claim)
  const updated = bytesOf(claim.status?.capacity?.['storage']) >= newBytes && status === ''
  const shared = claim.spec?.accessModes?.includes('ReadWriteMany') === true
  const unneeded = claim.metadata.annotations?.['volume.kubernetes.io/node-expansion-not-required'] !== undefined
  const allowed =
    (updated && shared && !unneeded) || status === 'NodeResizePending' || status === 'NodeResizeInProgress'
  if (!allowed) return { finished: updated, bytes: updated ? newBytes : oldBytes, events: [] }

  const marked = updated ? claim : await markStatus(deps, claim, 'NodeResizeInProgress', [], signal)
  const outcome = await outcomeOf(() => callPlugin(attempt, oldBytes, newBytes, signal))
  if (outcome.kind === 'done') return await expansionDone(attempt, marked, newBytes, updated, signal)
  const { error } = outcome
  if (updated && hasTag(error, 'notSupported')) return { finished: true, bytes: newBytes, events: [] }
  const events: ActualEvent[] = []
  if (outcome.kind === 'failed') {
    const failedBefore = work.actual()?.expansion.failedFinally === true
    const changedMind = bytesOf(claim.spec?.resources?.requests?.['storage']) !== newBytes && failedBefore
    const next = hasTag(error, 'infeasible') || changedMind ? 'NodeResizeInfeasible' : resizeStatus(marked)
    const text = `failed to expand pvc with ${error.message}`
    // A claim that cannot be told changes nothing about the driver's word; the next attempt tells it again.
    await markStatus(deps, marked, next, [resizeError(deps, marked, text)], signal).catch(() => marked)
    events.push({ kind: 'expansionFailed', volume })
  }
  if (hasTag(error, 'failedPrecondition')) {
    events.push({ kind: 'expansionRefused', volume })
    return { finished: false, bytes: oldBytes, events }
  }
  return { finished: false, bytes: oldBytes, events, error }
}

/** Without marks on the claim: the driver is asked, and only a success is written (EXN-10). */
async function expandLegacy(attempt: Attempt, signal: AbortSignal): Promise<Expansion> {
  const { work, claim, oldBytes, newBytes } = attempt
  const outcome = await outcomeOf(() => callPlugin(attempt, oldBytes, newBytes, signal))
  if (outcome.kind === 'done') {
    const updated = bytesOf(claim.status?.capacity?.['storage']) >= newBytes
    return await expansionDone(attempt, claim, newBytes, updated, signal)
  }
  if (hasTag(outcome.error, 'notSupported')) return { finished: true, bytes: newBytes, events: [] }
  if (hasTag(outcome.error, 'failedPrecondition')) {
    return { finished: true, bytes: newBytes, events: [{ kind: 'expansionRefused', volume: work.desired.volume }] }
  }
  return { finished: false, bytes: oldBytes, events: [], error: outcome.error }
}

/** Tells pod and claim of the success, and writes the new size into the claim unless it stands there (EXN-9). */
async function expansionDone(
  attempt: Attempt,
  claim: PersistentVolumeClaim,
  bytes: bigint,
  updated: boolean,
  signal: AbortSignal,
): Promise<Expansion> {
  const { work, deps } = attempt
  const text = `MountVolume.NodeExpandVolume succeeded for volume "${work.mount.spec.name}" ${deps.node}`
  tellBoth(work, deps, claim, 'Normal', eventReasons.fileSystemResized, text)
  if (!updated) {
    const ended = new Set(['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'])
    const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !ended.has(type))
    const body = {
      metadata: { resourceVersion: claim.metadata.resourceVersion },
      status: {
        capacity: { storage: quantityOfBytes(bytes) },
        allocatedResourceStatuses: { storage: null },
        conditions: conditions.length > 0 ? conditions : null,
      },
    }
    const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name }
    await deps.client.patch('PersistentVolumeClaim', ref, { type: 'merge', body }, { subresource: 'status' }, signal)
  }
  return { finished: true, bytes, events: [] }
}

function resizeError({ clock }: OperationDeps, claim: PersistentVolumeClaim, message: string): ClaimCondition {
  const before = claim.status?.conditions?.find(({ type, status }) => type === 'NodeResizeError' && status === 'True')
  const since = before?.lastTransitionTime ?? timestamp(clock.now())
  return { type: 'NodeResizeError', status: 'True', message, lastTransitionTime: since }
}

/** Guarded by the resource version, so that nobody's newer word is overwritten (EXN-7). */
async function markStatus(
  { client }: OperationDeps,
  claim: PersistentVolumeClaim,
  status: string,
  added: readonly ClaimCondition[],
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const types = new Set(added.map(({ type }) => type))
  const conditions = [...(claim.status?.conditions ?? []).filter(({ type }) => !types.has(type)), ...added]
  const body = {
    metadata: { resourceVersion: claim.metadata.resourceVersion },
    status: {
      allocatedResourceStatuses: { storage: status === '' ? null : status },
      ...(added.length === 0 ? {} : { conditions }),
    },
  }
  const ref = { namespace: claim.metadata.namespace ?? '', name: claim.metadata.name }
  return await client.patch('PersistentVolumeClaim', ref, { type: 'merge', body }, { subresource: 'status' }, signal)
}

function callPlugin(
  { work, plugin, paths }: Attempt,
  oldBytes: bigint,
  newBytes: bigint,
  signal: AbortSignal,
): Promise<bigint> {
  const { path, stagingPath, devicePath } = paths
  const request = {
    spec: work.mount.spec,
    oldBytes,
    newBytes,
    path,
    devicePath,
    ...(stagingPath ? { stagingPath } : {}),
  }
  return plugin.expand!(request, signal)
}

/** The plugin, if it grows volumes on the node and the volume belongs to a claim (EXN-1). */
function expander({ mount }: MountWork, { registry }: OperationDeps): NodePlugin | undefined {
  if (!mount.spec.persistentVolume?.spec?.claimRef) return undefined
  const { plugin } = registry.find(mount.spec)
  return plugin.expand && (plugin.requiresResize?.(mount.spec) ?? true) ? plugin : undefined
}

async function pathsInUse(
  { desired, mount, actual }: MountWork,
  { root, host }: OperationDeps,
  plugin: NodePlugin,
  signal: AbortSignal,
): Promise<ExpandPaths> {
  const { spec, uid } = mount
  if (spec.mode === 'Block') {
    const path = `${podDeviceDirectory(root, uid, desired.plugin)}/${spec.name}`
    // The volume's record knows the device of whoever came last; this pod's own is behind its link.
    const devicePath = await host.files.readlink(path, signal)
    return { path, devicePath, stagingPath: plugin.block?.(spec)?.stagingPath?.(spec) ?? '' }
  }
  const devicePath = actual()?.devicePath ?? ''
  const target = podVolumePath(root, uid, desired.plugin, spec.name)
  return { path: plugin.path?.(spec, target) ?? target, devicePath, stagingPath: actual()?.device.path ?? '' }
}

async function claimOf({ mount }: MountWork, { client }: OperationDeps, signal: AbortSignal) {
  const claim = mount.spec.persistentVolume?.spec?.claimRef
  if (!claim?.name || !claim.namespace) return undefined
  try {
    return await client.get('PersistentVolumeClaim', { namespace: claim.namespace, name: claim.name }, signal)
  } catch (error) {
    throw refused(
      'ClaimUnread',
      `mountVolume.NodeExpandVolume get PVC failed : ${asVolumeError(error).message}`,
      'untried',
    )
  }
}

function tellReadOnly(work: MountWork, deps: OperationDeps, claim: PersistentVolumeClaim): void {
  const text = `MountVolume.NodeExpandVolume failed for volume "${work.mount.spec.name}" requested read-only file system`
  tellBoth(work, deps, claim, 'Warning', eventReasons.fileSystemResizeFailed, text)
}

function tellBoth(
  { mount }: MountWork,
  deps: OperationDeps,
  claim: PersistentVolumeClaim,
  type: 'Normal' | 'Warning',
  reason: string,
  message: string,
): void {
  notifyPod(deps, mount.pod)({ type, reason, message })
  deps.recorder.event({ kind: 'PersistentVolumeClaim', object: claim }, type, reason, message)
}

const resizeStatus = (claim: PersistentVolumeClaim) => claim.status?.allocatedResourceStatuses?.['storage'] ?? ''
const bytesOf = (quantity: string | undefined) => (quantity === undefined ? 0n : bytesOfQuantity(quantity))
