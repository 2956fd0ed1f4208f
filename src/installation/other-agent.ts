// Does another agent run this node already? Two agents of one name would each start the node's pods, and so write twice to
// their volumes. A lease says where its agent runs. Whoever starts takes the lease over before anything else:
//
// 1. A lease of our own place is ours. One without a place, or none, is free.
// 2. The place is another root of this machine: its lock tells at once whether an agent runs there.
// 3. The place is elsewhere, and the lease was renewed a moment ago: that agent runs.
// 4. Otherwise the lease is watched for as long as it is good, on our own clock. Its times tell nothing after the server was away,
//    or when clocks differ. If it changes meanwhile, that agent runs.
// 5. It is taken with its resourceVersion, so of two that start at the same instant one is refused.
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { annotations as wellKnown } from '../api/annotations.ts'
import type { Lease } from '../api/generated/types.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { getIfExists } from '../client/get-if-exists.ts'
import { microTimestamp } from '../clock/clock.ts'
import type { Clock } from '../clock/clock.ts'
import { UsageError } from './config.ts'
import { noteHolder } from './directory-lock.ts'

/** The same after each restart of the agent, and of the machine. */
export function placeOfAgent(root: string, machineId: string): string {
  return `${root}${onThisMachine(machineId)}`
}

const onThisMachine = (machineId: string) => ` on ${hostname()} (${machineId.slice(0, 12) || 'no machine id'})`

export interface NodeClaim {
  readonly client: Client
  readonly clock: Clock
  readonly node: string
  readonly root: string
  readonly machineId: string
  /** Called before a wait of up to a minute. */
  readonly onWait: (sentence: string) => void
}

const namespace = 'kube-node-lease'
const usualSeconds = 40
const lookMs = 2_000
/** Two that start at once meet a few times at most. */
const mostTries = 10

/** Takes the node's lease; throws a UsageError that names the other agent. */
export async function claimNode(claim: NodeClaim, signal: AbortSignal): Promise<void> {
  for (let tries = 0; tries < mostTries; tries++) {
    const lease = await readLease(claim, signal)
    const other = lease && otherPlace(lease, claim)
    if (lease && other !== undefined) await requireGone(claim, lease, other, signal)
    if (await takeLease(claim, lease, signal)) return
  }
  throw refusal(claim, 'somewhere', 'it takes the lease again and again')
}

const readLease = ({ client, node }: NodeClaim, signal: AbortSignal) =>
  getIfExists(client, 'Lease', { namespace, name: node }, signal)

function otherPlace({ metadata }: Lease, { root, machineId }: NodeClaim): string | undefined {
  const place = metadata.annotations?.[wellKnown.agentPlace]
  return place === placeOfAgent(root, machineId) ? undefined : place
}

async function requireGone(claim: NodeClaim, lease: Lease, other: string, signal: AbortSignal): Promise<void> {
  const { clock, node } = claim
  const own = onThisMachine(claim.machineId)
  const root = other.endsWith(own) ? other.slice(0, -own.length) : undefined
  if (root !== undefined) {
    // Nobody runs with a root that is gone: a backup was restored at another place.
    const holder = existsSync(root) ? noteHolder(join(root, 'node.lock')) : undefined
    if (holder === undefined) return
    throw refusal(claim, other, `process ${holder} holds ${root}`)
  }
  const seconds = lease.spec?.leaseDurationSeconds ?? usualSeconds
  const agoMs = clock.now() - Date.parse(lease.spec?.renewTime ?? '')
  if (agoMs >= 0 && agoMs < seconds * 1000)
    throw refusal(claim, other, `it renewed its lease ${Math.round(agoMs / 1000)} seconds ago`)
  claim.onWait(`node ${node} was last run with ${other}; waiting ${seconds} s for a sign of that agent`)
  for (let waitedMs = 0; waitedMs < seconds * 1000; waitedMs += lookMs) {
    await clock.sleep(lookMs, signal)
    const now = await readLease(claim, signal)
    if (now && now.metadata.resourceVersion !== lease.metadata.resourceVersion)
      throw refusal(claim, other, 'it renewed its lease just now')
  }
}

/** False: somebody else wrote meanwhile. */
async function takeLease(claim: NodeClaim, lease: Lease | undefined, signal: AbortSignal): Promise<boolean> {
  const { client, clock, node } = claim
  const annotations = { [wellKnown.agentPlace]: placeOfAgent(claim.root, claim.machineId) }
  const renewTime = microTimestamp(clock.now())
  const spec = { holderIdentity: node, leaseDurationSeconds: usualSeconds, renewTime }
  try {
    if (lease) {
      const { resourceVersion = '' } = lease.metadata
      const body = { metadata: { annotations, resourceVersion }, spec }
      await client.patch('Lease', { namespace, name: node }, { type: 'merge', body }, {}, signal)
    } else {
      const metadata = { namespace, name: node, annotations }
      const made = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata,
        spec: { ...spec, acquireTime: renewTime },
      }
      await client.create('Lease', made, {}, signal)
    }
    return true
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error)) return false
    // A lease that has gone is made anew; a namespace that is missing, the agent makes when it registers.
    if (isNotFound(error)) return lease === undefined
    throw error
  }
}

function refusal({ node }: NodeClaim, place: string, sign: string): UsageError {
  return new UsageError(
    `node ${node} is run by another agent, with ${place}: ${sign}`,
    `choose another name with --node-name NAME, or stop that agent and wait until its lease is over`,
  )
}
