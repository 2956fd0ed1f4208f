// What should be done for one volume now, and what does it wait for? Every decision of the reconciler, in one
// total function (REC-2 … REC-7). It sees records and facts only; the loop starts what it answers, in this order.
import type { PodUid } from '../../api/names.ts'
import type { NodeWaitReason } from '../../volume/wait-reasons.ts'
import type { ActualMount, ActualVolume } from './actual.ts'
import type { DesiredMount, DesiredVolume } from './desired.ts'

export type NodeAction =
  | { readonly kind: 'mount'; readonly pod: PodUid; readonly remount: boolean }
  | { readonly kind: 'expand'; readonly pod: PodUid }
  | { readonly kind: 'verifyAttached'; readonly pod: PodUid }
  /** Nobody attaches it: it is entered as it is. */
  | { readonly kind: 'enter'; readonly pod: PodUid }
  /** The claim's size becomes the size the volume is known to have. */
  | { readonly kind: 'size'; readonly bytes: bigint }
  | { readonly kind: 'unmount'; readonly pod: PodUid }
  | { readonly kind: 'unmountDevice' | 'forget' }

export interface Waiting {
  readonly reason: NodeWaitReason
  readonly pod?: PodUid
  readonly until?: number
  /** The last error, for reasons that have one. */
  readonly error?: string
}

export interface NodeFacts {
  /** All pod sources have spoken and every pod they named has been processed once. */
  readonly podListComplete: boolean
  /** Pods that run or may run and whose volumes are not all resolved. */
  readonly unresolvedPods: ReadonlySet<PodUid>
  /** Pods whose containers run or begin, whether anybody still names the pod or not. */
  readonly runningPods: Pick<ReadonlySet<PodUid>, 'has'>
  /** One of these pods has something on disk that no plugin could explain: it may be on any volume found there. */
  readonly unexplained: boolean
  /** Can the volume's plugin grow a volume in use on the node? (KA-7) */
  readonly expandable: boolean
  /** Does our copy of the Node list it under volumesAttached? Unknown while there is no copy (VCA-2). */
  readonly listedAttached: boolean | undefined
  /** For whom a mount was last begun. Mounts of one volume share a back-off, so that the next turn is another pod's (NPO-13). */
  readonly triedLast: PodUid | undefined
}

export interface VolumePlan {
  readonly actions: readonly NodeAction[]
  readonly waiting: readonly Waiting[]
}

export function planVolume(
  desired: DesiredVolume | undefined,
  actual: ActualVolume | undefined,
  facts: NodeFacts,
): VolumePlan {
  if (desired && actual && hasOtherLabel(desired, actual)) {
    // It must be off the node altogether before it can be mounted with the new label (KD-6, KA-6, REC-4).
    const { actions, waiting } = planVolume(undefined, actual, facts)
    const error = `waiting for unmount of volume "${desired.volume}", because it is already mounted to a different pod with a different SELinux label`
    const pods = [...desired.pods.keys()].map((pod) => ({ reason: 'labelMismatch' as const, pod, error }))
    return { actions, waiting: [...waiting, ...pods] }
  }
  const actions: NodeAction[] = []
  const waiting: Waiting[] = []
  // Unmounts come first: a mount of the same volume must not overtake them (DES-2).
  for (const mount of actual?.pods.values() ?? []) {
    if (desired?.pods.has(mount.pod)) continue
    const reason = whyNotUnmount(actual!, mount, facts)
    if (reason) waiting.push({ reason, pod: mount.pod })
    else actions.push({ kind: 'unmount', pod: mount.pod })
  }
  if (desired) planMounts(desired, actual, facts, actions, waiting)
  else if (actual?.pods.size === 0) planDevice(actual, facts, actions, waiting)
  return { actions, waiting }
}

function hasOtherLabel(desired: DesiredVolume, actual: ActualVolume): boolean {
  return actual.label !== undefined && actual.label !== desired.label.mounted
}

/** Sizes differ, both are known, and the driver did not refuse before (KA-7). */
function needsExpansion(desired: DesiredVolume, actual: ActualVolume): boolean {
  if (desired.sizeBytes === 0n || actual.sizeBytes === 0n || desired.sizeBytes <= actual.sizeBytes) return false
  const { refusedInUse, deferred } = actual.expansion
  if (deferred?.bytes === desired.sizeBytes && deferred.claimChanges === desired.claimChanges) return false
  return !refusedInUse
}

function whyNotUnmount(actual: ActualVolume, mount: ActualMount, facts: NodeFacts): NodeWaitReason | undefined {
  if (!facts.podListComplete) return 'podListIncomplete'
  if (actual.devicePathUnread) return 'devicePathUnread'
  if (facts.runningPods.has(mount.pod)) return 'containersRunning'
  if (mount.foundOnDisk && facts.unresolvedPods.has(mount.pod)) return 'claimsUnresolved'
  return undefined
}

function planMounts(
  desired: DesiredVolume,
  actual: ActualVolume | undefined,
  facts: NodeFacts,
  actions: NodeAction[],
  waiting: Waiting[],
): void {
  if (!actual) {
    const [first] = desired.pods.keys()
    const reason = desired.attachable ? whyNotVerify(desired, facts) : undefined
    if (reason) {
      for (const pod of desired.pods.keys()) waiting.push({ reason, pod })
    } else if (first !== undefined) actions.push({ kind: desired.attachable ? 'verifyAttached' : 'enter', pod: first })
    return
  }
  const claimed = actual.sizeBytes === 0n && desired.sizeBytes > 0n ? claimBytesOf(desired) : 0n
  if (claimed > 0n) actions.push({ kind: 'size', bytes: claimed })
  const settled: DesiredMount[] = []
  for (const mount of inTurn([...desired.pods.values()], facts.triedLast)) {
    const need = mountNeed(mount, actual.pods.get(mount.uid))
    if (need === 'nothing') settled.push(mount)
    else actions.push({ kind: 'mount', pod: mount.uid, remount: need === 'remount' })
  }
  if (!facts.expandable || !needsExpansion(desired, actual)) return
  // One expansion serves all pods; a pod that only reads cannot do it for the others (EXN-3).
  const grown = settled.find(({ readOnly }) => !readOnly) ?? settled[0]
  if (grown) actions.push({ kind: 'expand', pod: grown.uid })
}

/** The size of the claim as its pods read it; a pod that only reads the volume has no say (KA-10). */
function claimBytesOf({ pods }: DesiredVolume): bigint {
  return [...pods.values()].find(({ readOnly, claimBytes }) => !readOnly && claimBytes > 0n)?.claimBytes ?? 0n
}

/** Round and round, from behind the pod that was tried last: pods whose mounts fail must not take every turn. */
function inTurn(mounts: readonly DesiredMount[], triedLast: PodUid | undefined): readonly DesiredMount[] {
  const next = mounts.findIndex(({ uid }) => uid === triedLast) + 1
  return [...mounts.slice(next), ...mounts.slice(0, next)]
}

/** An attachable volume is verified live only after we said that we use it and heard that it is there (NSP-2). */
function whyNotVerify(desired: DesiredVolume, facts: NodeFacts): NodeWaitReason | undefined {
  if (!desired.reportedInUse) return 'notReportedInUse'
  return facts.listedAttached === false ? 'notAttached' : undefined
}

/** Remount has priority over growth (KA-6). */
function mountNeed(desired: DesiredMount, actual: ActualMount | undefined): 'mount' | 'remount' | 'nothing' {
  if (actual?.presence !== 'present') return 'mount'
  return actual.generation < desired.generation ? 'remount' : 'nothing'
}

/** Nobody wants it and nobody is on it: first the device goes, then the record (REC-6, INV-4). */
function planDevice(actual: ActualVolume, facts: NodeFacts, actions: NodeAction[], waiting: Waiting[]): void {
  if (!facts.podListComplete) waiting.push({ reason: 'podListIncomplete' })
  else if (actual.devicePathUnread) waiting.push({ reason: 'devicePathUnread' })
  else if (actual.device.foundOnDisk && facts.unexplained) waiting.push({ reason: 'claimsUnresolved' })
  else actions.push({ kind: actual.device.presence === 'absent' ? 'forget' : 'unmountDevice' })
}
