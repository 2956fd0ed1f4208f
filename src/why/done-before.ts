// What was done to an object, and to what belongs to it? The history's finished records, oldest first, with their durations.
import { claimsOf } from '../api/pod-claims.ts'
import type { ObjectReference, OperationRecord } from '../api/generated/types.ts'
import type { Facts, WhySubject } from './facts.ts'
import { claimOf, isDone, parse, recordsOf, volumeOf } from './facts.ts'

export interface HistoryLine {
  readonly at: string
  readonly actor: string
  readonly operation: string
  readonly step?: string
  readonly phase: string
  readonly tookMs: number
  /** What it was done to, beside the object asked about: `pv/pvc-0b1c`. */
  readonly objects: readonly string[]
}

interface Target {
  readonly kind: string
  readonly namespace?: string | undefined
  readonly name: string
}

const mostLines = 30

export function doneBefore(facts: Facts): readonly HistoryLine[] {
  return recordsAbout(facts)
    .filter((record) => isDone(record) || record.status?.phase === 'Failed')
    .filter(({ spec }) => spec.operation !== 'wait' && spec.operation !== 'resolve')
    .flatMap((record) => lineOf(record, facts.subject))
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
    .slice(-mostLines)
}

function recordsAbout(facts: Facts): readonly OperationRecord[] {
  const { kind, name } = facts.subject
  if (kind === 'Node') return facts.operations.filter(({ spec }) => spec.node === name)
  return [...new Set(related(facts).flatMap((target) => recordsOf(facts, target)))]
}

/** The object itself, the claims it uses, and the volumes behind them; a volume's claim, an attachment's volume. */
function related(facts: Facts): readonly Target[] {
  const { kind, namespace, name } = facts.subject
  const own: Target = { ...facts.subject }
  const claim = (claimName: string, inNamespace = namespace): readonly Target[] => {
    const volume = claimOf(facts, inNamespace, claimName)?.spec?.volumeName
    return [
      { kind: 'PersistentVolumeClaim', namespace: inNamespace, name: claimName },
      ...(volume ? [{ kind: 'PersistentVolume', name: volume }] : []),
    ]
  }
  if (kind === 'Pod') {
    const pod = facts.pods.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
    return [own, ...(pod ? claimsOf(pod).flatMap((each) => claim(each.claimName)) : [])]
  }
  if (kind === 'PersistentVolumeClaim') return [own, ...claim(name)]
  if (kind === 'PersistentVolume') {
    const { claimRef } = volumeOf(facts, name)?.spec ?? {}
    return claimRef?.name ? [own, ...claim(claimRef.name, claimRef.namespace)] : [own]
  }
  if (kind === 'VolumeSnapshot') {
    const snapshot = facts.snapshots.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
    const content = snapshot?.status?.boundVolumeSnapshotContentName
    return content ? [own, { kind: 'VolumeSnapshotContent', name: content }] : [own]
  }
  const attachment = facts.attachments.find(({ metadata }) => kind === 'VolumeAttachment' && metadata.name === name)
  const volume = attachment?.spec.source.persistentVolumeName
  return volume ? [own, { kind: 'PersistentVolume', name: volume }] : [own]
}

function lineOf({ spec, status }: OperationRecord, subject: WhySubject): HistoryLine[] {
  const started = parse(status?.startedAt)
  const finished = parse(status?.finishedAt) ?? started
  if (started === undefined || finished === undefined || status === undefined) return []
  return [
    {
      at: new Date(started).toISOString(),
      actor: spec.actor,
      operation: spec.operation,
      ...(status.step === undefined ? {} : { step: status.step }),
      phase: status.phase,
      tookMs: finished - started,
      objects: (spec.objects ?? []).filter((each) => !isSubject(each, subject)).map(wordsOf),
    },
  ]
}

const isSubject = ({ kind, name }: ObjectReference, subject: WhySubject) =>
  kind === subject.kind && name === subject.name

/** `pvc/data`, as a command would name it. */
function wordsOf({ kind = '', name = '' }: ObjectReference): string {
  const short = { PersistentVolume: 'pv', PersistentVolumeClaim: 'pvc' }[kind]
  return `${short ?? kind.toLowerCase()}/${name}`
}
