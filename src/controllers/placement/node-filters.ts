// May this pod run on this node, volumes aside? Selector, affinity, taints, unschedulable, resource requests: simply.
import { taints } from '../../api/annotations.ts'
import { findCondition } from '../../api/meta.ts'
import {
  factsOfNode,
  matchesNodeLabels,
  matchesNodeSelector,
  tolerates,
  untoleratedTaint,
} from '../../api/node-selector.ts'
import { addAmounts, compareAmounts, parseQuantity } from '../../api/quantity.ts'
import type { Amount } from '../../api/quantity.ts'
import type { Container, Node, Pod } from '../../api/generated/types.ts'
import type { Refusals } from './cluster-view.ts'

export function refusalsOfNode(pod: Pod, node: Node, others: Iterable<Pod>): Refusals {
  return [...unschedulable(pod, node), ...selector(pod, node), ...taint(pod, node), ...resources(pod, node, others)]
}

function unschedulable(pod: Pod, node: Node): Refusals {
  if (node.spec?.unschedulable !== true) return []
  const cordoned = { key: taints.unschedulable, effect: 'NoSchedule' } as const
  return tolerates(pod.spec?.tolerations, cordoned) ? [] : ['node(s) were unschedulable']
}

function selector(pod: Pod, node: Node): Refusals {
  const facts = factsOfNode(node)
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const fits =
    matchesNodeLabels(pod.spec?.nodeSelector, facts.labels) &&
    (required === undefined || matchesNodeSelector(required, facts))
  return fits ? [] : ["node(s) didn't match Pod's node affinity/selector"]
}

function taint(pod: Pod, node: Node): Refusals {
  // Kubernetes' node controller turns "not ready" into a taint; without one we read the condition itself.
  const notReady = isReady(node) ? [] : [{ key: taints.notReady, effect: 'NoSchedule' } as const]
  const found = untoleratedTaint([...(node.spec?.taints ?? []), ...notReady], pod.spec?.tolerations)
  return found === undefined ? [] : [`node(s) had untolerated taint {${found.key}: ${found.value ?? ''}}`]
}

/** A node that has never said that it is ready is not: nobody may be there to run the pod. */
export function isReady(node: Node): boolean {
  return findCondition(node.status?.conditions, 'Ready')?.status === 'True'
}

/** A node that does not say what it has is not limited by what it does not say. */
function resources(pod: Pod, node: Node, others: Iterable<Pod>): Refusals {
  const allocatable = node.status?.allocatable ?? {}
  const placed = [...others]
  const refusals: string[] = []
  const slots = allocatable['pods']
  if (slots !== undefined && BigInt(placed.length) >= parseQuantity(slots).nanos / 1_000_000_000n)
    refusals.push('Too many pods')
  const wanted = requestsOf(pod)
  const used = placed.map(requestsOf)
  for (const [name, amount] of wanted) {
    const limit = allocatable[name]
    const isOrdinary = name === 'cpu' || name === 'memory' || name === 'ephemeral-storage'
    if (limit === undefined && isOrdinary) continue
    const total = used.reduce((sum, each) => addAmounts(sum, each.get(name) ?? zero), amount)
    if (compareAmounts(total, parseQuantity(limit ?? '0')) > 0) refusals.push(`Insufficient ${name}`)
  }
  return refusals
}

const zero = parseQuantity('0')

/** The larger of all containers together and the largest init container; zero requests do not count. */
function requestsOf(pod: Pod): ReadonlyMap<string, Amount> {
  const together = new Map<string, Amount>()
  for (const container of pod.spec?.containers ?? [])
    for (const [name, amount] of containerRequests(container))
      together.set(name, addAmounts(together.get(name) ?? zero, amount))
  for (const container of pod.spec?.initContainers ?? [])
    for (const [name, amount] of containerRequests(container))
      if (compareAmounts(amount, together.get(name) ?? zero) > 0) together.set(name, amount)
  for (const [name, amount] of together) if (amount.nanos === 0n) together.delete(name)
  return together
}

function containerRequests(container: Container): [string, Amount][] {
  const { requests, limits } = container.resources ?? {}
  return Object.entries({ ...limits, ...requests }).map(([name, text]) => [name, parseQuantity(text)])
}
