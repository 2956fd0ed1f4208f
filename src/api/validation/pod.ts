// Is a pod right, and what of it may change? Policies, containers and volumes; containers are in containers.ts, volumes
// in pod-volumes.ts.
import { forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Affinity, Container, Pod, PodSecurityContext, PodSpec, Toleration } from '../types.ts'
import { describeChanges } from './common.ts'
import { validateContainers } from './containers.ts'
import { inRange, isQualifiedName, isSubdomain } from './formats.ts'
import { checked, nonNegative, sameData, validateLabels } from './metadata.ts'
import { validateNodeSelector, validateNodeSelectorTerm } from './node-selectors.ts'
import { validatePodVolumes } from './pod-volumes.ts'

const restartPolicies = ['Always', 'Never', 'OnFailure']
const dnsPolicies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']
const largestId = 2 ** 31 - 1
const updateText =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

export function validatePod(pod: Pod): readonly FieldError[] {
  const { spec } = pod
  const deadline = spec.activeDeadlineSeconds
  return [
    ...validatePodVolumes(spec.volumes ?? [], pod, 'spec.volumes'),
    ...validateContainers(spec, 'spec'),
    ...validatePolicies(spec),
    ...validateSecurityContext(spec.securityContext, 'spec.securityContext'),
    ...validateLabels(spec.nodeSelector, 'spec.nodeSelector'),
    ...validateAffinity(spec.affinity, 'spec.affinity'),
    ...(spec.tolerations ?? []).flatMap((each, index) => validateToleration(each, `spec.tolerations[${index}]`)),
    ...(spec.nodeName ? checked('spec.nodeName', spec.nodeName, isSubdomain) : []),
    ...(spec.serviceAccountName ? checked('spec.serviceAccountName', spec.serviceAccountName, isSubdomain) : []),
    ...(deadline !== undefined && (deadline < 1 || deadline > largestId)
      ? [invalid('spec.activeDeadlineSeconds', deadline, inRange(1, largestId))]
      : []),
    ...nonNegative(spec.terminationGracePeriodSeconds, 'spec.terminationGracePeriodSeconds'),
  ]
}

export function validatePodUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const errors: FieldError[] = []
  for (const name of ['containers', 'initContainers'] as const) {
    if ((next.spec[name] ?? []).length !== (previous.spec[name] ?? []).length) {
      errors.push(forbidden(`spec.${name}`, 'pod updates may not add or remove containers'))
    }
  }
  if (errors.length > 0) return errors
  errors.push(...validateTolerationChange(next.spec, previous.spec), ...validateGateChange(next.spec, previous.spec))
  const wanted = withoutAllowedChanges(next.spec, previous.spec)
  if (!sameData(wanted, previous.spec)) {
    errors.push(forbidden('spec', `${updateText}\n${describeChanges(wanted, previous.spec)}`))
  }
  return errors
}

function validatePolicies(spec: PodSpec): readonly FieldError[] {
  const { restartPolicy: restart, dnsPolicy: dns } = spec
  return [
    ...(restart ? [] : [required('spec.restartPolicy')]),
    ...(restart && !restartPolicies.includes(restart)
      ? [notSupported('spec.restartPolicy', restart, restartPolicies)]
      : []),
    ...(dns ? [] : [required('spec.dnsPolicy')]),
    ...(dns && !dnsPolicies.includes(dns) ? [notSupported('spec.dnsPolicy', dns, dnsPolicies)] : []),
  ]
}

function validateSecurityContext(context: PodSecurityContext | undefined, path: string): readonly FieldError[] {
  if (context === undefined) return []
  const { fsGroupChangePolicy: policy } = context
  const policies = ['Always', 'OnRootMismatch']
  return [
    ...(['fsGroup', 'runAsUser', 'runAsGroup'] as const).flatMap((name) =>
      validateId(context[name], `${path}.${name}`),
    ),
    ...(context.supplementalGroups ?? []).flatMap((id, index) =>
      validateId(id, `${path}.supplementalGroups[${index}]`),
    ),
    ...(policy && !policies.includes(policy) ? [notSupported(`${path}.fsGroupChangePolicy`, policy, policies)] : []),
  ]
}

export function validateId(id: number | undefined, path: string): readonly FieldError[] {
  return id !== undefined && (id < 0 || id > largestId) ? [invalid(path, id, inRange(0, largestId))] : []
}

function validateAffinity(affinity: Affinity | undefined, path: string): readonly FieldError[] {
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
function validateTolerationChange(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const text = ({ key, operator, value, effect }: Toleration) => JSON.stringify([key, operator, value, effect])
  const wanted = new Set((next.tolerations ?? []).map(text))
  const kept = (previous.tolerations ?? []).every((old) => wanted.has(text(old)))
  if (kept) return []
  return [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]
}

function validateGateChange(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const old = new Set((previous.schedulingGates ?? []).map(({ name }) => name))
  const added = (next.schedulingGates ?? []).map(({ name }) => name).filter((name) => !old.has(name))
  if (added.length === 0) return []
  const text = `only deletion is allowed, but found new scheduling gate '${added[0]}'`
  return [forbidden('spec.schedulingGates', text)]
}

function withoutAllowedChanges(next: PodSpec, previous: PodSpec): PodSpec {
  const grace =
    (previous.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1
      ? previous.terminationGracePeriodSeconds
      : next.terminationGracePeriodSeconds
  const result: Record<string, unknown> = {
    ...next,
    containers: withOldImages(next.containers, previous.containers),
    initContainers: withOldImages(next.initContainers ?? [], previous.initContainers ?? []),
    terminationGracePeriodSeconds: grace,
  }
  for (const name of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates'] as const) {
    if (previous[name] === undefined) delete result[name]
    else result[name] = previous[name]
  }
  return result as unknown as PodSpec // the members of next
}

function withOldImages(next: readonly Container[], previous: readonly Container[]): readonly Container[] {
  return next.map((container, index) => {
    const image = previous[index]?.image
    return image === undefined ? container : { ...container, image }
  })
}
