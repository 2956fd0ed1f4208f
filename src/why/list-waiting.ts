// What waits at all? Every object that `why` can explain, asked one after the other; worst first, each trouble told once.
import { hasEnded } from '../api/pod-claims.ts'
import type { ObjectMeta } from '../api/generated/types.ts'
import type { Cause } from './causes.ts'
import { explain } from './explain.ts'
import type { Facts, SubjectKind, WhySubject } from './facts.ts'

export interface WaitingObject {
  readonly subject: WhySubject
  readonly verdict: 'waiting' | 'working'
  readonly cause: Cause
  readonly sentence: string
  readonly since?: string
  /** Others that the same trouble holds up. */
  readonly others: readonly WhySubject[]
}

/** `missingOf` answers which objects a pod needs that do not exist. Without a namespace everything is looked at. */
export function listWaiting(
  facts: Omit<Facts, 'subject' | 'missing'>,
  namespace: string | undefined,
  missingOf: (pod: WhySubject) => readonly string[],
): readonly WaitingObject[] {
  const found = subjectsOf(facts, namespace).flatMap((subject): WaitingObject[] => {
    const missing = subject.kind === 'Pod' ? missingOf(subject) : []
    const { verdict, blocked } = explain({ ...facts, subject, missing })
    if (blocked === undefined || (verdict !== 'waiting' && verdict !== 'working')) return []
    const { cause, sentence, since } = blocked
    return [{ subject, verdict, cause, sentence, ...(since === undefined ? {} : { since }), others: [] }]
  })
  return together(found.toSorted((one, other) => rank(one) - rank(other) || ageOrder(one, other)))
}

/** Pods that may need objects which do not exist; those that run or have ended need none. */
export const waitingPods = ({ pods }: Pick<Facts, 'pods'>, namespace: string | undefined) =>
  pods.filter((pod) => inScope(pod, namespace) && pod.status?.phase !== 'Running' && !hasEnded(pod))

interface Named {
  readonly metadata: ObjectMeta
}

const inScope = ({ metadata }: Named, namespace: string | undefined) =>
  namespace === undefined || metadata.namespace === namespace

function subjectsOf(facts: Omit<Facts, 'subject' | 'missing'>, namespace: string | undefined): readonly WhySubject[] {
  const named = (kind: SubjectKind, objects: readonly Named[]): readonly WhySubject[] =>
    objects
      .filter((object) => inScope(object, namespace))
      .map(({ metadata: { name = '', namespace: own } }) => ({
        kind,
        name,
        ...(own === undefined ? {} : { namespace: own }),
      }))
  return [
    ...named('Pod', facts.pods),
    ...named('PersistentVolumeClaim', facts.claims),
    ...named('VolumeSnapshot', facts.snapshots),
    ...named('PersistentVolume', facts.volumes),
    ...named('VolumeAttachment', facts.attachments),
    ...named('VolumeAttributesClass', facts.attributesClasses),
    ...named('Node', facts.nodes),
  ]
}

/** Data or machines are in danger. */
const grave: ReadonlySet<Cause> = new Set<Cause>([
  'volumeLost',
  'volumeIll',
  'ioError',
  'storageGone',
  'wrongFilesystem',
  'noSpaceOnNode',
  'outOfCapacity',
  'nodeFull',
  'nodeNotReady',
  'nodeGone',
  'driverUnavailable',
  'driverSaysUnavailable',
  'driverSilent',
])

/** As somebody wanted it, or nothing that anybody is held up by. */
const harmless: ReadonlySet<Cause> = new Set<Cause>(['firstConsumer', 'retained', 'reserved', 'noRuntime', 'podFailed'])

function rank({ verdict, cause }: WaitingObject): number {
  if (verdict === 'working') return 3
  return grave.has(cause) ? 0 : harmless.has(cause) ? 2 : 1
}

const ageOrder = (one: WaitingObject, other: WaitingObject) =>
  Date.parse(one.since ?? '9999-01-01') - Date.parse(other.since ?? '9999-01-01')

/** One line per trouble: what a pod waits for is often what its claim waits for. */
function together(sorted: readonly WaitingObject[]): readonly WaitingObject[] {
  const bySentence = Map.groupBy(sorted, ({ sentence }) => sentence)
  return [...bySentence.values()].map(([first, ...rest]) => ({ ...first!, others: rest.map(({ subject }) => subject) }))
}
