// Why does it stand where it stands? A pure function from the facts of one moment to a chain, a cause and what helps.
//
// 1. Objects speak first, records second: a bound claim is bound, whatever an older record says.
// 2. The first step that is not done and has a cause is the one that blocks; later steps wait for it.
// 3. No text is read: causes come from reasons, codes and fields only; messages are passed on as they are.
import type { Pod, VolumeSnapshot } from '../api/generated/types.ts'
import type { Cause, SpokenCause } from './causes.ts'
import { speak } from './causes.ts'
import { classLinks } from './class-links.ts'
import { claimLinks } from './claim-links.ts'
import type { HistoryLine } from './done-before.ts'
import { doneBefore } from './done-before.ts'
import { callNamed } from './driver-links.ts'
import type { Facts } from './facts.ts'
import { claimOf, nodeOf, podsOfClaim, volumeOf } from './facts.ts'
import type { Block, Link } from './link.ts'
import { nodeLinks } from './node-links.ts'
import { podLinks } from './pod-links.ts'
import { snapshotLinks } from './snapshot-links.ts'
import { attachmentLinks, volumeLinks } from './volume-links.ts'

type Verdict = 'healthy' | 'working' | 'waiting' | 'missing'

export interface Explanation {
  readonly subject: string
  readonly verdict: Verdict
  readonly steps: readonly ExplainedStep[]
  readonly blocked?: ExplainedBlock
  /** Other things that stand still, beside the first. */
  readonly also: readonly ExplainedBlock[]
  readonly history: readonly HistoryLine[]
}

export interface ExplainedStep {
  readonly number: number
  readonly name: string
  readonly actor: string
  readonly state: Link['state']
  readonly at?: string
  readonly tookMs?: number
  readonly detail?: string
}

export interface ExplainedBlock extends SpokenCause {
  readonly cause: Cause
  readonly actor: string
  readonly step: { readonly number: number; readonly of: number; readonly name: string; readonly inside?: string }
  readonly since?: string
  readonly error?: { readonly code?: string; readonly message: string; readonly effect?: string }
  readonly attempts?: number
  readonly nextTry?: string
}

export function explain(facts: Facts): Explanation {
  const links = linksOf(facts)
  const { kind, namespace, name } = facts.subject
  const subject = namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
  if (links === undefined) return { subject, verdict: 'missing', steps: [], also: [], history: [] }
  const ordered = settle(links)
  const stuck = ordered.filter(({ state }) => state === 'blocked' || state === 'working')
  const [first, ...rest] = stuck.toSorted((a, b) => weight(a) - weight(b))
  const tell = (link: Link) => spoken(link, ordered)
  return {
    subject,
    verdict: first === undefined ? verdictOf(ordered) : first.state === 'working' ? 'working' : 'waiting',
    steps: ordered.map(stepOf),
    ...(first === undefined ? {} : { blocked: tell(first) }),
    also: rest.map(tell).filter(isNews(first && tell(first))),
    history: doneBefore(facts),
  }
}

/** One trouble may hold up several steps; it is told once. */
function isNews(
  first: ExplainedBlock | undefined,
): (block: ExplainedBlock, index: number, all: ExplainedBlock[]) => boolean {
  return ({ sentence }, index, all) =>
    sentence !== first?.sentence && all.findIndex((other) => other.sentence === sentence) === index
}

/** Undefined when there is no such object. */
function linksOf(facts: Facts): readonly Link[] | undefined {
  const { kind, namespace, name } = facts.subject
  switch (kind) {
    case 'Pod': {
      const pod = facts.pods.find((each) => isNamed(each, namespace, name))
      return pod && podLinks(facts, pod)
    }
    case 'PersistentVolumeClaim': {
      const claim = claimOf(facts, namespace, name)
      return claim && untilCause(facts, claimLinks(facts, claim), podsOfClaim(facts, claim))
    }
    case 'PersistentVolume': {
      const volume = volumeOf(facts, name)
      return volume && volumeLinks(facts, volume)
    }
    case 'VolumeAttachment': {
      const attachment = facts.attachments.find(({ metadata }) => metadata.name === name)
      return attachment && attachmentLinks(facts, attachment)
    }
    case 'VolumeAttributesClass': {
      const found = facts.attributesClasses.find(({ metadata }) => metadata.name === name)
      return found && classLinks(facts, found)
    }
    case 'VolumeSnapshot': {
      const found = facts.snapshots.find((each) => isNamed(each, namespace, name))
      return found && snapshotLinks(facts, found)
    }
    case 'Node': {
      const node = nodeOf(facts, name)
      return node && nodeLinks(facts, node)
    }
    default:
      return kind satisfies never
  }
}

const isNamed = ({ metadata }: Pod | VolumeSnapshot, namespace: string | undefined, name: string) =>
  metadata.name === name && metadata.namespace === namespace

/** A claim that waits for its pod's place waits, in truth, for what the pod waits for. */
function untilCause(facts: Facts, links: readonly Link[], pods: readonly Pod[]): readonly Link[] {
  const waitsForPod = links.some(({ block }) => block?.cause === 'podUnscheduled')
  const place = waitsForPod
    ? pods.flatMap((pod) => podLinks(facts, pod)).find(({ name, block }) => name === 'it is scheduled' && block)
    : undefined
  if (!place) return links
  const step: Link = { ...place, name: `pod ${place.block?.names.pod ?? ''} is scheduled` }
  return links.flatMap((link) =>
    link.block?.cause === 'podUnscheduled' ? [step, { name: link.name, actor: link.actor, state: 'later' }] : [link],
  )
}

/** Steps that nobody speaks about and that lie before a finished one are finished too. */
function settle(links: readonly Link[]): readonly Link[] {
  const lastDone = links.findLastIndex(({ state }) => state === 'done')
  return links.map((link, index) =>
    link.state === 'later' && index < lastDone && !blocksBefore(links, index) ? { ...link, state: 'done' } : link,
  )
}

const blocksBefore = (links: readonly Link[], index: number) =>
  links.slice(0, index).some(({ state }) => state === 'blocked' || state === 'working')

/** What is stuck comes before what is under way, and last what only points there; among equals the earlier step. */
const weight = ({ state, block }: Link) => (isVague(block) ? 2 : state === 'blocked' ? 0 : 1)

/** Causes that only point to another step. */
const vague: ReadonlySet<Cause> = new Set(['volumesBeingBound', 'notAttached', 'busy', 'retrying', 'volumesUnresolved'])
const isVague = (block: Block | undefined) => block !== undefined && vague.has(block.cause)

function verdictOf(links: readonly Link[]): Verdict {
  return links.every(({ state }) => state === 'done') ? 'healthy' : 'working'
}

function stepOf(link: Link, index: number): ExplainedStep {
  const { name, actor, state, at, tookMs, detail } = link
  return {
    number: index + 1,
    name,
    actor,
    state,
    ...(at === undefined ? {} : { at: new Date(at).toISOString() }),
    ...(tookMs === undefined ? {} : { tookMs }),
    ...(detail === undefined ? {} : { detail }),
  }
}

function spoken(link: Link, links: readonly Link[]): ExplainedBlock {
  const { cause, names, since, error, attempts, nextTry, step } = link.block!
  return {
    cause,
    ...speak(cause, {
      ...(error && isOwnWords(cause) ? { detail: error.message } : {}),
      ...callNamed(step, names.driver),
      ...names,
    }),
    actor: link.actor,
    step: {
      number: links.indexOf(link) + 1,
      of: links.length,
      name: link.name,
      ...(step === undefined ? {} : { inside: step }),
    },
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    ...(error === undefined ? {} : { error: withTrueEffect(error) }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(nextTry === undefined ? {} : { nextTry: new Date(nextTry).toISOString() }),
  }
}

/** Causes whose sentence ends with what the driver said. */
const isOwnWords = (cause: Cause) => cause === 'driverSaysUnavailable' || cause === 'driverUnavailable'

/** These answers of a driver are final, but say nothing about what it has done before it gave up. */
const unclearCodes: ReadonlySet<string> = new Set(['INTERNAL', 'UNKNOWN', 'DATA_LOSS'])

function withTrueEffect(error: NonNullable<Block['error']>): NonNullable<Block['error']> {
  const isUnclear = error.effect === 'none' && error.code !== undefined && unclearCodes.has(error.code)
  return isUnclear ? { ...error, effect: 'unknown' } : error
}
