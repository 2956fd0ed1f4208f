// What is known before we explain? API objects and the history's records of one moment, and how to look things up in them.
import { keyOf } from '../api/meta.ts'
import { claimKeysOf, hasEnded } from '../api/pod-claims.ts'
import type {
  CSIDriver,
  CSINode,
  Lease,
  Node,
  OperationRecord,
  OperationWaiting,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  VolumeAttachment,
  VolumeAttributesClass,
  VolumeSnapshot,
  VolumeSnapshotContent,
} from '../api/generated/types.ts'

/** What `why` can explain. */
export const subjectKinds = [
  'Pod',
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'VolumeAttributesClass',
  'VolumeSnapshot',
  'Node',
] as const

export type SubjectKind = (typeof subjectKinds)[number]

export const isSubjectKind = (kind: unknown): kind is SubjectKind => subjectKinds.some((each) => each === kind)

export interface WhySubject {
  readonly kind: SubjectKind
  readonly namespace?: string
  readonly name: string
}

export interface Facts {
  readonly now: number
  readonly subject: WhySubject
  readonly pods: readonly Pod[]
  readonly claims: readonly PersistentVolumeClaim[]
  readonly volumes: readonly PersistentVolume[]
  readonly classes: readonly StorageClass[]
  readonly attributesClasses: readonly VolumeAttributesClass[]
  readonly attachments: readonly VolumeAttachment[]
  readonly snapshots: readonly VolumeSnapshot[]
  readonly snapshotContents: readonly VolumeSnapshotContent[]
  readonly nodes: readonly Node[]
  /** Heartbeats: a node whose lease is old does not answer, whatever its last status says. */
  readonly leases: readonly Lease[]
  readonly csiNodes: readonly CSINode[]
  readonly csiDrivers: readonly CSIDriver[]
  readonly operations: readonly OperationRecord[]
  /** Objects that the pod's volumes need and that do not exist: `Secret key`. */
  readonly missing: readonly string[]
}

export interface Waited extends OperationWaiting {
  readonly actor: string
}

interface Target {
  readonly kind: string
  readonly namespace?: string | undefined
  readonly name: string | undefined
  /** A record about another object of the same name does not count. */
  readonly uid?: string | undefined
}

export function claimOf(facts: Facts, namespace: string | undefined, name: string): PersistentVolumeClaim | undefined {
  return facts.claims.find((each) => each.metadata.name === name && each.metadata.namespace === namespace)
}

export function volumeOf(facts: Facts, name: string | undefined): PersistentVolume | undefined {
  return name ? facts.volumes.find(({ metadata }) => metadata.name === name) : undefined
}

export function nodeOf(facts: Facts, name: string | undefined): Node | undefined {
  return facts.nodes.find(({ metadata }) => metadata.name === name)
}

export const leaseNamespace = 'kube-node-lease'

export interface Readiness {
  readonly ready: boolean
  readonly since?: number
  /** Why it is not ready: it is silent, or says so itself. */
  readonly detail: string
}

/** A node is ready when it says so and has said anything lately. */
export function readinessOf(facts: Facts, node: Node | undefined): Readiness {
  const condition = (node?.status?.conditions ?? []).find(({ type }) => type === 'Ready')
  const renewed = parse(facts.leases.find(({ metadata }) => metadata.name === node?.metadata.name)?.spec?.renewTime)
  if (renewed !== undefined && facts.now - renewed > silentMs)
    return { ready: false, since: renewed, detail: 'it has stopped reporting' }
  const since = parse(condition?.lastTransitionTime)
  const detail =
    condition === undefined
      ? 'it has never reported'
      : condition.status === 'False'
        ? `it reports so itself (${condition.message || condition.reason || 'no reason given'})`
        : 'it has stopped reporting'
  return { ready: condition?.status === 'True', ...(since === undefined ? {} : { since }), detail }
}

const silentMs = 60_000

export function classNamed(facts: Facts, name: string | undefined): StorageClass | undefined {
  return name ? facts.classes.find(({ metadata }) => metadata.name === name) : undefined
}

export function isRegistered(facts: Facts, driver: string, node?: string): boolean {
  return facts.csiNodes.some(
    ({ metadata, spec }) =>
      (node === undefined || metadata.name === node) && (spec?.drivers ?? []).some(({ name }) => name === driver),
  )
}

export function podsOfClaim(facts: Facts, claim: PersistentVolumeClaim): readonly Pod[] {
  return podsNaming(facts, claim).filter((pod) => !hasEnded(pod))
}

export function podsNaming(facts: Facts, claim: PersistentVolumeClaim): readonly Pod[] {
  const key = keyOf(claim)
  return facts.pods.filter((pod) => claimKeysOf(pod).includes(key))
}

export function recordsOf(facts: Facts, target: Target): readonly OperationRecord[] {
  return facts.operations.filter(({ spec }) =>
    (spec.objects ?? []).some(
      ({ kind, namespace, name, uid }) =>
        kind === target.kind &&
        name === target.name &&
        (namespace ?? undefined) === target.namespace &&
        (uid === undefined || target.uid === undefined || uid === target.uid),
    ),
  )
}

/** What an object waits for now, most telling first: tries that failed come after what they wait for. */
export function waitsOf(facts: Facts, target: Target, actor?: (name: string) => boolean): readonly Waited[] {
  return recordsOf(facts, target)
    .filter(({ spec, status }) => status?.phase === 'Waiting' && (actor?.(spec.actor) ?? true))
    .flatMap(({ spec, status }) => (status?.waiting ?? []).map((each) => ({ ...each, actor: spec.actor })))
    .toSorted((a, b) => rank(a.reason) - rank(b.reason))
}

const rank = (reason: string) => (reason === 'retrying' || reason === 'busy' || reason === 'backingOff' ? 1 : 0)

/** The latest record of these operations about the target that failed, or is being tried again after a failure. */
export function failureOf(
  facts: Facts,
  target: Target,
  operations: readonly string[],
  also: (record: OperationRecord) => boolean = () => true,
): OperationRecord | undefined {
  return recordsOf(facts, target)
    .filter(({ spec, status }) => operations.includes(spec.operation) && status?.error !== undefined)
    .filter(({ status }) => status?.phase === 'Failed' || status?.phase === 'Running')
    .filter(also)
    .toSorted((a, b) => timeOf(b) - timeOf(a))[0]
}

export function runningOf(
  facts: Facts,
  target: Target,
  operations: readonly string[],
  also: (record: OperationRecord) => boolean = () => true,
): OperationRecord | undefined {
  return recordsOf(facts, target).find(
    (record) => operations.includes(record.spec.operation) && record.status?.phase === 'Running' && also(record),
  )
}

export function doneOf(facts: Facts, target: Target, operations: readonly string[]): OperationRecord | undefined {
  return recordsOf(facts, target).find((record) => operations.includes(record.spec.operation) && isDone(record))
}

/** A failure that is over counts as no success: only what was tried and succeeded has a number of tries. */
export const isDone = ({ status }: OperationRecord): boolean =>
  status?.phase === 'Succeeded' && status.attempts !== undefined

export const timeOf = ({ status }: OperationRecord) => parse(status?.finishedAt ?? status?.startedAt) ?? 0

/** Milliseconds since 1970. */
export function parse(time: string | undefined): number | undefined {
  const value = Date.parse(time ?? '')
  return Number.isNaN(value) ? undefined : value
}
