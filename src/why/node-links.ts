// How is a node, and what waits there? Its health, its drivers, and every volume that stands still on it.
import { hasEnded } from '../api/pod-claims.ts'
import type { Node, OperationRecord } from '../api/generated/types.ts'
import type { Cause, CauseNames } from './causes.ts'
import { driverTrouble, runningLink } from './driver-links.ts'
import type { Facts, Waited } from './facts.ts'
import { claimOf, isRegistered, parse, podsNaming, readinessOf, volumeOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, sinceFacts, waitFacts } from './link.ts'
import { containerOperations, mountOperations, podOperations, unmountOperations } from './operation-names.ts'
import { ownVolumeName, withWords } from './pod-names.ts'
import { causeOfAttachment, causeOfCode, causeOnNode } from './reasons.ts'

export function nodeLinks(facts: Facts, node: Node): readonly Link[] {
  const { name = '', creationTimestamp } = node.metadata
  const { ready, since: at, detail } = readinessOf(facts, node)
  const names = { node: name, detail }
  const health = ready
    ? done('it is ready', `node ${name}`, undefined, at)
    : blocked('it is ready', `node ${name}`, 'nodeNotReady', names, sinceFacts(at))
  return [
    done(`node ${name} is registered`, `node ${name}`, undefined, parse(creationTimestamp)),
    health,
    ...spaceLinks(node),
    ...driverLinks(facts, name),
    ...failedLinks(facts, name),
    ...hangingLinks(facts, name),
    ...waitingLinks(facts, name),
  ]
}

function spaceLinks({ metadata, status }: Node): readonly Link[] {
  const found = (status?.conditions ?? []).find(({ type }) => type === 'DiskPressure')
  if (found?.status !== 'True') return []
  const { name: node = '' } = metadata
  const names = { node, detail: found.message ?? '' }
  const since = sinceFacts(parse(found.lastTransitionTime))
  return [blocked('its disks have space', `node ${node}`, 'diskPressure', names, since)]
}

/** Volumes attached to the node whose driver is not there cannot be mounted or let go. */
function driverLinks(facts: Facts, node: string): readonly Link[] {
  const wanted = new Set(
    facts.attachments.filter(({ spec }) => spec.nodeName === node).map(({ spec }) => spec.attacher),
  )
  const drivers = facts.csiNodes.find(({ metadata }) => metadata.name === node)?.spec?.drivers ?? []
  const present = drivers.flatMap(({ name }) => {
    const away = driverTrouble(facts, `driver ${name} answers`, name, { node }, node)
    return [done(`driver ${name} is registered`, `csi ${name}`), ...(away ? [away] : [])]
  })
  const absent = [...wanted]
    .filter((driver) => !isRegistered(facts, driver, node))
    .map((driver) => blocked(`driver ${driver} is registered`, `csi ${driver}`, 'driverNotOnNode', { driver, node }))
  return [...present, ...absent]
}

function failedLinks(facts: Facts, node: string): readonly Link[] {
  return facts.operations
    .filter((record) => record.spec.node === node && record.status?.phase === 'Failed' && isWanted(facts, record))
    .map((record) => {
      const { spec, status } = record
      const cause = causeOfCode(status?.error?.code, usualCause(spec.operation))
      const container = containerOperations.includes(spec.operation) ? { container: status?.step ?? '' } : {}
      const names = withWords({ node, ...namesOf(facts, spec), ...container }, status?.error?.message)
      return blocked(
        titleOf(spec.operation, names),
        spec.actor,
        cause,
        names,
        failureFacts(record, waitOf(facts, record)),
      )
    })
}

/** Work of the node that runs for long; what has just begun is nothing to speak of. */
function hangingLinks(facts: Facts, node: string): readonly Link[] {
  return facts.operations
    .filter(({ spec, status }) => spec.node === node && status?.phase === 'Running' && status.error === undefined)
    .map((record) => {
      const names: CauseNames = { node, ...namesOf(facts, record.spec) }
      return runningLink(facts, titleOf(record.spec.operation, names), record, 'mountRunning', names)
    })
    .filter(({ state }) => state === 'blocked')
}

/** What a pod that is gone or going wanted mounted, nobody waits for any more. */
function isWanted(facts: Facts, { spec }: OperationRecord): boolean {
  if (!mountOperations.includes(spec.operation)) return true
  const objects = spec.objects ?? []
  const uid = spec.pod ?? objects.find(({ kind }) => kind === 'Pod')?.uid
  const live = facts.pods.filter((pod) => !pod.metadata.deletionTimestamp && !hasEnded(pod))
  if (uid !== undefined) return live.some((pod) => pod.metadata.uid === uid)
  const volume = volumeOf(facts, objects.find(({ kind }) => kind === 'PersistentVolume')?.name)
  const { claimRef } = volume?.spec ?? {}
  const claim = claimOf(facts, claimRef?.namespace, claimRef?.name ?? '')
  return (
    claim !== undefined &&
    podsNaming(facts, claim).some((pod) => pod.spec?.nodeName === spec.node && live.includes(pod))
  )
}

function usualCause(operation: string): Cause {
  if (operation === 'volume_attach') return 'attachFailed'
  if (containerOperations.includes(operation)) return 'containerNotStarted'
  if (podOperations.includes(operation)) return 'retrying'
  return mountOperations.includes(operation) ? 'mountFailed' : 'unmountFailed'
}

/** `volume v of pod web is mounted` */
function titleOf(operation: string, { volume = '?', pod, container }: CauseNames): string {
  if (containerOperations.includes(operation)) return `container ${container} of pod ${pod} starts`
  if (podOperations.includes(operation)) return `pod ${pod} has its directories`
  const what = pod === undefined ? `volume ${volume}` : `volume ${volume} of pod ${pod}`
  if (operation === 'volume_attach') return `${what} is attached`
  if (mountOperations.includes(operation)) return `${what} is mounted`
  return unmountOperations.includes(operation) ? `${what} is unmounted` : `${operation} of ${what}`
}

/** When the node tries again is said by what it waits for. */
function waitOf({ operations }: Facts, { spec }: OperationRecord): Waited | undefined {
  const waiting = operations.find(
    (other) =>
      other.spec.actor === spec.actor && other.spec.volume === spec.volume && other.status?.phase === 'Waiting',
  )
  const [wait] = waiting?.status?.waiting ?? []
  return wait && { ...wait, actor: spec.actor }
}

function waitingLinks(facts: Facts, node: string): readonly Link[] {
  return facts.operations
    .filter(({ status }) => status?.phase === 'Waiting')
    .flatMap(({ spec, status }) =>
      (status?.waiting ?? [])
        .filter((wait) => wait.node === node && wait.reason !== 'busy' && wait.reason !== 'backingOff')
        .map((wait) => {
          const cause = spec.actor === 'attachment' ? causeOfAttachment(wait.reason) : causeOnNode(wait.reason)
          const names: CauseNames = { node, ...namesOf(facts, spec) }
          const told = wait.message === undefined ? {} : { holder: wait.message, detail: wait.message }
          return blocked(
            `${names.volume ?? 'a volume'} goes on`,
            spec.actor,
            cause ?? 'retrying',
            { ...names, ...told },
            waitFacts({ ...wait, actor: spec.actor }),
          )
        }),
    )
}

/** The pod and the volume that a record is about; a volume without an object has the name that its pod gave it. */
function namesOf(
  { pods, volumes }: Facts,
  { objects = [], volume: unique, pod: uid }: OperationRecord['spec'],
): CauseNames {
  const reference = objects.find(({ kind }) => kind === 'Pod')
  const pod = pods.find(({ metadata }) => metadata.uid === (uid ?? reference?.uid))
  const volume = objects.find(({ kind }) => kind === 'PersistentVolume')?.name
  const driver = volumes.find(({ metadata }) => metadata.name === volume)?.spec?.csi?.driver
  return {
    ...(driver === undefined ? {} : { driver }),
    ...(reference?.name === undefined ? {} : { pod: reference.name }),
    ...(reference?.namespace === undefined ? {} : { namespace: reference.namespace }),
    ...(unique === undefined ? {} : { volume: unique }),
    ...(pod ? ownVolumeName(pod, unique) : {}),
    ...(volume === undefined ? {} : { volume }),
  }
}
