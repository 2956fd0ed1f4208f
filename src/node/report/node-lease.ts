// Do we still run this node? Its lease says where its agent is. It is renewed as we last wrote it: when somebody else wrote it
// meanwhile it is read first, and a lease that another agent has taken is left to that one. An agent that was cut off for longer than its
// lease would otherwise take the node back, and both would say what the node does.
import { annotations as wellKnown } from '../../api/annotations.ts'
import type { Lease } from '../../api/generated/types.ts'
import type { NodeName } from '../../api/names.ts'
import { isAlreadyExists, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import { microTimestamp } from '../../clock/clock.ts'
import type { Clock } from '../../clock/clock.ts'

export interface NodeLease {
  /** Throws where another agent runs the node. */
  renew(signal: AbortSignal): Promise<void>
  /** Another agent has the lease: what we say of the node no longer counts. */
  isLost(): boolean
}

export interface NodeLeaseDeps {
  readonly client: Client
  readonly clock: Clock
  readonly node: NodeName
  /** Where this agent runs; undefined where nobody tells agents apart. */
  readonly place?: string | undefined
}

const namespace = 'kube-node-lease'
const leaseSeconds = 40
/** Two jobs of this agent renew it, and people may look at it with an editor. */
const mostTries = 5

export function createNodeLease(deps: NodeLeaseDeps): NodeLease {
  const { client, node, place } = deps
  const ref = { namespace, name: node }
  /** As we wrote or read it last. */
  let known: string | undefined
  let isLost = false

  const readOwn = async (signal: AbortSignal): Promise<string | undefined> => {
    const lease = await getIfExists(client, 'Lease', ref, signal)
    const other = lease?.metadata.annotations?.[wellKnown.agentPlace]
    isLost = place !== undefined && other !== undefined && other !== place
    if (isLost)
      throw new Error(
        `node ${node} is run by another agent, with ${other}: this one (${place}) no longer reports it; stop one of the two`,
      )
    return lease?.metadata.resourceVersion
  }
  return {
    async renew(signal) {
      for (let tries = 1; ; tries++) {
        try {
          known ??= await readOwn(signal)
          const lease = known === undefined ? await create(deps, signal) : await patch(deps, known, signal)
          known = lease.metadata.resourceVersion
          return
        } catch (error) {
          known = undefined
          const isRace = isConflict(error) || isAlreadyExists(error) || isNotFound(error)
          if (!isRace || tries >= mostTries) throw error
        }
      }
    },
    isLost: () => isLost,
  }
}

const marked = ({ place }: NodeLeaseDeps) =>
  place === undefined ? {} : { annotations: { [wellKnown.agentPlace]: place } }

function specOf({ clock, node }: NodeLeaseDeps) {
  return { holderIdentity: node, leaseDurationSeconds: leaseSeconds, renewTime: microTimestamp(clock.now()) }
}

function patch(deps: NodeLeaseDeps, resourceVersion: string, signal: AbortSignal): Promise<Lease> {
  const body = { metadata: { ...marked(deps), resourceVersion }, spec: specOf(deps) }
  return deps.client.patch('Lease', { namespace, name: deps.node }, { type: 'merge', body }, {}, signal)
}

async function create(deps: NodeLeaseDeps, signal: AbortSignal): Promise<Lease> {
  const { client, node } = deps
  const spec = specOf(deps)
  const metadata = { namespace, name: node, ...marked(deps) }
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata,
    spec: { ...spec, acquireTime: spec.renewTime },
  }
  try {
    return await client.create('Lease', lease, {}, signal)
  } catch (error) {
    if (!isNotFound(error)) throw error
    const missing = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }
    await client.create('Namespace', missing, {}, signal)
    return await client.create('Lease', lease, {}, signal)
  }
}
