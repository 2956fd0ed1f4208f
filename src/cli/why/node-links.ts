// How is a node, and what waits there? Its health, its drivers, and every volume that stands still on it.
import type { Node } from '../../api/types.ts'
import type { CauseNames } from './causes.ts'
import type { Facts } from './facts.ts'
import { isRegistered, parse, readinessOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, failureFacts, sinceFacts, waitFacts } from './link.ts'
import { mountOperations } from './operation-names.ts'
import { causeOfAttachment, causeOfCode, causeOnNode } from './reasons.ts'

export function nodeLinks(facts: Facts, node: Node): readonly Link[] {
  const { name = '', creationTimestamp } = node.metadata
  const { ready, since: at, detail } = readinessOf(facts, node)
  const names = { node: name, detail }
  const health = ready
    ? done('it answers', `node ${name}`, undefined, at)
    : blocked('it answers', `node ${name}`, 'nodeNotReady', names, sinceFacts(at))
  return [
    done(`node ${name} is known`, `node ${name}`, undefined, parse(creationTimestamp)),
    health,
    ...driverLinks(facts, name),
    ...failedLinks(facts, name),
    ...waitingLinks(facts, name),
  ]
}

/** Volumes attached to the node whose driver is not there cannot be mounted or let go. */
function driverLinks(facts: Facts, node: string): readonly Link[] {
  const wanted = new Set(
    facts.attachments.filter(({ spec }) => spec.nodeName === node).map(({ spec }) => spec.attacher),
  )
  const drivers = facts.csiNodes.find(({ metadata }) => metadata.name === node)?.spec?.drivers ?? []
  const present = drivers.map(({ name }) => done(`driver ${name} is registered`, `csi ${name}`))
  const absent = [...wanted]
    .filter((driver) => !isRegistered(facts, driver, node))
    .map((driver) => blocked(`driver ${driver} is registered`, `csi ${driver}`, 'driverNotOnNode', { driver, node }))
  return [...present, ...absent]
}

function failedLinks(facts: Facts, node: string): readonly Link[] {
  return facts.operations
    .filter(({ spec, status }) => spec.node === node && status?.phase === 'Failed')
    .map((record) => {
      const { spec, status } = record
      const otherwise = spec.operation === 'volume_attach' ? 'attachFailed' : undefined
      const usual = mountOperations.includes(spec.operation) ? 'mountFailed' : 'unmountFailed'
      const cause = causeOfCode(status?.error?.code, otherwise ?? usual)
      const names: CauseNames = { node, ...objectNames(spec.objects), ...volumeName(spec.volume, spec.objects) }
      return blocked(`${spec.operation} of ${names.volume ?? ''}`, spec.actor, cause, names, failureFacts(record))
    })
}

function waitingLinks(facts: Facts, node: string): readonly Link[] {
  return facts.operations
    .filter(({ status }) => status?.phase === 'Waiting')
    .flatMap(({ spec, status }) =>
      (status?.waiting ?? [])
        .filter((wait) => wait.node === node && wait.reason !== 'busy' && wait.reason !== 'backingOff')
        .map((wait) => {
          const cause = spec.actor === 'attachment' ? causeOfAttachment(wait.reason) : causeOnNode(wait.reason)
          const names: CauseNames = { node, ...objectNames(spec.objects), ...volumeName(spec.volume, spec.objects) }
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

type References = readonly { readonly kind?: string; readonly name?: string; readonly namespace?: string }[] | undefined

function objectNames(objects: References): CauseNames {
  const pod = (objects ?? []).find(({ kind }) => kind === 'Pod')
  return {
    ...(pod?.name === undefined ? {} : { pod: pod.name }),
    ...(pod?.namespace === undefined ? {} : { namespace: pod.namespace }),
  }
}

function volumeName(unique: string | undefined, objects: References): CauseNames {
  const volume = (objects ?? []).find(({ kind }) => kind === 'PersistentVolume')?.name ?? unique
  return volume === undefined ? {} : { volume }
}
