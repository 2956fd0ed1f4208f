// May this pod or volume be on that node? Node selector terms, plain nodeSelector maps, taints and tolerations.
import { compareIntegers, fulfils } from './selectors.ts'
import type { LabelOperator, Labels } from './selectors.ts'
import type {
  Node,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Taint,
  Toleration,
} from './generated/types.ts'

/** What the terms look at: a node's name and labels. */
export interface NodeFacts {
  readonly name: string
  readonly labels: Labels
}

export function factsOfNode(node: Node): NodeFacts {
  return { name: node.metadata.name, labels: node.metadata.labels ?? {} }
}

/** One term must match; no terms match nothing. */
export function matchesNodeSelector(selector: NodeSelector, node: NodeFacts): boolean {
  return selector.nodeSelectorTerms.some((term) => matchesTerm(term, node))
}

/** All expressions and fields must hold; an empty term matches nothing. */
export function matchesTerm(term: NodeSelectorTerm, node: NodeFacts): boolean {
  const expressions = term.matchExpressions ?? []
  const fields = term.matchFields ?? []
  if (expressions.length + fields.length === 0) return false
  return (
    expressions.every((requirement) => holds(requirement, lookUp(node.labels, requirement.key))) &&
    fields.every((requirement) => holds(requirement, requirement.key === 'metadata.name' ? node.name : undefined))
  )
}

/** The plain `nodeSelector` of a pod: every label must be there with that value. */
export function matchesNodeLabels(wanted: Labels | undefined, labels: Labels): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) => lookUp(labels, key) === value)
}

export function tolerates(tolerations: readonly Toleration[] | undefined, taint: Taint): boolean {
  return (tolerations ?? []).some((toleration) => toleratesTaint(toleration, taint))
}

/** The first taint that keeps a pod with these tolerations away. */
export function untoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
): Taint | undefined {
  return (taints ?? []).find((taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(tolerations, taint))
}

export function toleratesTaint(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false
  if (toleration.key && toleration.key !== taint.key) return false
  const operator = toleration.operator ?? ''
  switch (operator) {
    case 'Exists':
      return true
    case '':
    case 'Equal':
      return Boolean(toleration.key) && (toleration.value ?? '') === (taint.value ?? '')
    case 'Gt':
      return compareIntegers(taint.value, toleration.value, 'gt')
    case 'Lt':
      return compareIntegers(taint.value, toleration.value, 'lt')
    default:
      return operator satisfies never
  }
}

/** The same operators as those of labels, in other words. */
const operators: Readonly<Record<NodeSelectorRequirement['operator'], LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
  Gt: 'gt',
  Lt: 'lt',
}

function holds({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  return fulfils(value, operators[operator], values)
}

function lookUp(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined
}
