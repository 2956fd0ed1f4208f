// Is a node selector well formed? Terms, expressions and fields, as volumes and pods write them.
import { invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from '../generated/types.ts'
import { isLabelValue, isQualifiedName, isSubdomain } from './formats.ts'
import { checked, selectorOperator } from './metadata.ts'

export function validateNodeSelector(selector: NodeSelector, path: string): readonly FieldError[] {
  const terms = selector.nodeSelectorTerms ?? []
  if (terms.length === 0) return [required(`${path}.nodeSelectorTerms`, 'must have at least one node selector term')]
  return terms.flatMap((term, index) => validateNodeSelectorTerm(term, `${path}.nodeSelectorTerms[${index}]`))
}

export function validateNodeSelectorTerm(term: NodeSelectorTerm, path: string): readonly FieldError[] {
  return [
    ...(term.matchExpressions ?? []).flatMap((each, index) =>
      validateExpression(each, `${path}.matchExpressions[${index}]`),
    ),
    ...(term.matchFields ?? []).flatMap((each, index) => validateField(each, `${path}.matchFields[${index}]`)),
  ]
}

function validateExpression(requirement: NodeSelectorRequirement, path: string): readonly FieldError[] {
  return [
    ...validateOperator(requirement, path),
    ...checked(`${path}.key`, requirement.key, isQualifiedName),
    ...(requirement.values ?? []).flatMap((value, index) => checked(`${path}.values[${index}]`, value, isLabelValue)),
  ]
}

function validateOperator({ operator, values = [] }: NodeSelectorRequirement, path: string): readonly FieldError[] {
  if (operator !== 'Gt' && operator !== 'Lt') return selectorOperator(operator, values, path)
  if (values.length === 1) return []
  return [required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
}

function validateField({ key, operator, values = [] }: NodeSelectorRequirement, path: string): readonly FieldError[] {
  const errors: FieldError[] = []
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'))
  } else if (values.length !== 1) {
    const text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    errors.push(required(`${path}.values`, text))
  }
  if (key !== 'metadata.name') return [...errors, invalid(`${path}.key`, key, 'not a valid field selector key')]
  return [...errors, ...values.flatMap((value, index) => checked(`${path}.values[${index}]`, value, isSubdomain))]
}
