// Does another agent run this node already? Two agents of one name would each start the node's pods, and so write twice to
// their volumes. A lease says where its agent runs; one of elsewhere that is not over is somebody else's.
import { hostname } from 'node:os'
import { annotations as wellKnown } from '../api/annotations.ts'
import type { Lease } from '../api/generated/types.ts'
import type { Client } from '../client/client.ts'
import { getIfExists } from '../client/get-if-exists.ts'
import { UsageError } from './config.ts'

/** The same after each restart of the agent, and of the machine. */
export function placeOfAgent(root: string, machineId: string): string {
  return `${root} on ${hostname()} (${machineId.slice(0, 12) || 'no machine id'})`
}

export interface AgentPlace {
  readonly client: Client
  readonly node: string
  readonly place: string
  readonly now: number
}

/** Throws a UsageError that names the other agent. */
export async function refuseOtherAgent({ client, node, place, now }: AgentPlace, signal: AbortSignal): Promise<void> {
  const lease = await getIfExists(client, 'Lease', { namespace: 'kube-node-lease', name: node }, signal)
  const other = lease && otherHolder(lease, place, now)
  if (!other) return
  throw new UsageError(
    `node ${node} is run by another agent, with ${other.place}: its lease is good for ${other.secondsLeft} more seconds`,
    `choose another name with --node-name NAME, or stop that agent and wait until its lease is over`,
  )
}

function otherHolder({ metadata, spec }: Lease, place: string, now: number) {
  const holder = metadata.annotations?.[wellKnown.agentPlace]
  if (holder === undefined || holder === place || !spec?.renewTime) return undefined
  const end = Date.parse(spec.renewTime) + (spec.leaseDurationSeconds ?? 0) * 1000
  return end > now ? { place: holder, secondsLeft: Math.ceil((end - now) / 1000) } : undefined
}
