// Is a node selector well formed? Terms, expressions and fields, as volumes and pods write them.
import { forbidden, invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from '../generated/types.ts'
import { isLabelValue, isQualifiedName, isSubdomain } from './formats.ts'
import { checked } from './metadata.ts'

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
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length > 0) return []
      return [required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      if (values.length === 0) return []
      return [forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    case 'Gt':
    case 'Lt':
      if (values.length === 1) return []
      return [required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      // What a client sent may be no word of the list.
      return [invalid(`${path}.operator`, operator satisfies never, 'not a valid selector operator')]
  }
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
