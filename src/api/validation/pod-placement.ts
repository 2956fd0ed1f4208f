// May a pod ask to be placed like this? Affinity, tolerations, gates and spreading, and what of it may change later.
import { duplicate, forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Affinity, PodSpec, Toleration, TopologySpreadConstraint } from '../generated/types.ts'
import { isQualifiedName } from './formats.ts'
import { checked, repeated } from './metadata.ts'
import { validateNodeSelector, validateNodeSelectorTerm } from './node-selectors.ts'

export function validateAffinity(affinity: Affinity | undefined, path: string): readonly FieldError[] {
  const node = affinity?.nodeAffinity
  const needed = node?.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = node?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const at = `${path}.nodeAffinity`
  return [
    ...(needed ? validateNodeSelector(needed, `${at}.requiredDuringSchedulingIgnoredDuringExecution`) : []),
    ...preferred.flatMap(({ weight, preference }, index) => {
      const here = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
      return [
        ...(weight < 1 || weight > 100 ? [invalid(`${here}.weight`, weight, 'must be in the range 1-100')] : []),
        ...validateNodeSelectorTerm(preference, `${here}.preference`),
      ]
    }),
  ]
}

/** Names of gates and of conditions that must be true before a pod counts as ready. */
export function validateGates(spec: PodSpec, path: string): readonly FieldError[] {
  const gates = (spec.schedulingGates ?? []).map(({ name }) => name)
  const twins = new Set(repeated(gates))
  return [
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      checked(`${path}.readinessGates[${index}].conditionType`, conditionType, isQualifiedName),
    ),
    ...gates.flatMap((name, index) => [
      ...checked(`${path}.schedulingGates[${index}]`, name, isQualifiedName),
      ...(twins.has(index) ? [duplicate(`${path}.schedulingGates[${index}]`, name)] : []),
    ]),
  ]
}

export function validateSpread(constraints: readonly TopologySpreadConstraint[], path: string): readonly FieldError[] {
  const answers = ['DoNotSchedule', 'ScheduleAnyway']
  return constraints.flatMap(({ maxSkew, topologyKey, whenUnsatisfiable }, index) => {
    const at = `${path}[${index}]`
    return [
      ...(maxSkew > 0 ? [] : [invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero')]),
      ...(topologyKey ? [] : [required(`${at}.topologyKey`, 'can not be empty')]),
      ...(answers.includes(whenUnsatisfiable)
        ? []
        : [notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, answers)]),
    ]
  })
}

export function validateTolerations(tolerations: readonly Toleration[], path: string): readonly FieldError[] {
  return tolerations.flatMap((each, index) => validateToleration(each, `${path}[${index}]`))
}

function validateToleration(toleration: Toleration, path: string): readonly FieldError[] {
  const { key, operator, value, effect, tolerationSeconds } = toleration
  const operators = ['Equal', 'Exists']
  const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
  const errors: FieldError[] = []
  if (key) errors.push(...checked(`${path}.key`, key, isQualifiedName))
  else if (operator !== 'Exists') {
    const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    errors.push(invalid(`${path}.operator`, operator ?? '', text))
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    errors.push(invalid(`${path}.effect`, effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set"))
  }
  if (operator === 'Exists' && value) {
    errors.push(invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"))
  }
  if (operator && !operators.includes(operator)) errors.push(notSupported(`${path}.operator`, operator, operators))
  if (effect && !effects.includes(effect)) errors.push(notSupported(`${path}.effect`, effect, effects))
  return errors
}

/** Tolerations may be added, and their seconds changed. */
export function validateTolerationChange(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const text = ({ key, operator, value, effect }: Toleration) => JSON.stringify([key, operator, value, effect])
  const wanted = new Set((next.tolerations ?? []).map(text))
  const kept = (previous.tolerations ?? []).every((old) => wanted.has(text(old)))
  if (kept) return []
  return [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]
}

export function validateGateChange(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const old = new Set((previous.schedulingGates ?? []).map(({ name }) => name))
  const added = (next.schedulingGates ?? []).map(({ name }) => name).filter((name) => !old.has(name))
  if (added.length === 0) return []
  const text = `only deletion is allowed, but found new scheduling gate '${added[0]}'`
  return [forbidden('spec.schedulingGates', text)]
}
