// Is a pod right, and what of it may change? Policies, names and privileges; its containers are in containers.ts, its
// volumes in pod-volumes.ts, where it may run in pod-placement.ts.
import { forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Container, Pod, PodSecurityContext, PodSpec } from '../generated/types.ts'
import { describeChanges, largestId, validateId } from './common.ts'
import { validateContainers } from './containers.ts'
import { inRange, isIpAddress, isLabel, isSubdomain } from './formats.ts'
import { checked, sameData, unchanged, validateLabels } from './metadata.ts'
import {
  validateAffinity,
  validateGateChange,
  validateGates,
  validateSpread,
  validateTolerationChange,
  validateTolerations,
} from './pod-placement.ts'
import { validatePodVolumes } from './pod-volumes.ts'

const restartPolicies = ['Always', 'OnFailure', 'Never']
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']
const updateText =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

export function validatePod(pod: Pod): readonly FieldError[] {
  const { spec } = pod
  const deadline = spec.activeDeadlineSeconds
  return [
    ...validatePodVolumes(spec.volumes ?? [], pod, 'spec.volumes'),
    ...validateContainers(spec, 'spec'),
    ...validatePolicies(spec),
    ...validateLabels(spec.nodeSelector, 'spec.nodeSelector'),
    ...validateSecurityContext(spec.securityContext, spec, 'spec.securityContext'),
    ...validateAffinity(spec.affinity, 'spec.affinity'),
    ...validateDns(spec),
    ...validateGates(spec, 'spec'),
    ...validateSpread(spec.topologySpreadConstraints ?? [], 'spec.topologySpreadConstraints'),
    ...validateHostNamespaces(spec),
    ...(spec.serviceAccountName ? checked('spec.serviceAccountName', spec.serviceAccountName, isSubdomain) : []),
    ...(spec.nodeName ? checked('spec.nodeName', spec.nodeName, isSubdomain) : []),
    ...(deadline !== undefined && (deadline < 1 || deadline > largestId)
      ? [invalid('spec.activeDeadlineSeconds', deadline, inRange(1, largestId))]
      : []),
    ...(spec.hostname ? checked('spec.hostname', spec.hostname, isLabel) : []),
    ...(spec.subdomain ? checked('spec.subdomain', spec.subdomain, isLabel) : []),
    ...validateTolerations(spec.tolerations ?? [], 'spec.tolerations'),
    ...(spec.hostAliases ?? []).flatMap(({ ip }, index) => checked(`spec.hostAliases[${index}].ip`, ip, isIpAddress)),
    ...validateSystem(spec),
  ]
}

/** What a pod may not bring along: it comes later, by other ways. */
export function validateNewPod({ spec }: Pod): readonly FieldError[] {
  const gated = (spec.schedulingGates ?? []).length > 0 && spec.nodeName
  return [
    ...((spec.ephemeralContainers ?? []).length > 0
      ? [forbidden('spec.ephemeralContainers', 'cannot be set on create')]
      : []),
    ...(gated ? [forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared')] : []),
  ]
}

export function validatePodUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const errors: FieldError[] = []
  for (const name of ['containers', 'initContainers'] as const) {
    const list = next.spec[name] ?? []
    if (list.length !== (previous.spec[name] ?? []).length) {
      errors.push(forbidden(`spec.${name}`, 'pod updates may not add or remove containers'))
      return errors
    }
    for (const [index, { image = '' }] of list.entries()) {
      if (image === '') errors.push(required(`spec.${name}[${index}].image`))
    }
  }
  const deadline = validateDeadlineChange(next.spec, previous.spec)
  if (deadline.length > 0) return [...errors, ...deadline]
  errors.push(...validateTolerationChange(next.spec, previous.spec), ...validateGateChange(next.spec, previous.spec))
  const wanted = withoutAllowedChanges(next.spec, previous.spec)
  if (!sameData(wanted, previous.spec)) {
    errors.push(forbidden('spec', `${updateText}\n${describeChanges(wanted, previous.spec)}`))
  }
  return errors
}

/** How good a pod's service is follows from its spec. */
export function validatePodStatusUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const nominated = next.status?.nominatedNodeName
  return [
    ...unchanged(next.status?.qosClass, previous.status?.qosClass, 'status.qosClass'),
    ...(nominated ? checked('status.nominatedNodeName', nominated, isSubdomain) : []),
    ...(next.status?.podIPs ?? []).flatMap(({ ip = '' }, index) => checked(`status.podIPs[${index}]`, ip, isIpAddress)),
  ]
}

/** A deadline may come, and come nearer. */
function validateDeadlineChange(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const [wanted, before] = [next.activeDeadlineSeconds, previous.activeDeadlineSeconds]
  if (before === undefined || wanted === before) return []
  const path = 'spec.activeDeadlineSeconds'
  if (wanted === undefined) return [invalid(path, null, 'must not update from a positive integer to nil value')]
  return wanted > before ? [invalid(path, wanted, 'must be less than or equal to previous value')] : []
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

function validateDns({ dnsPolicy, dnsConfig }: PodSpec): readonly FieldError[] {
  if (dnsPolicy !== 'None') return []
  const why = 'when `dnsPolicy` is None'
  if (dnsConfig === undefined) return [required('spec.dnsConfig', `must provide \`dnsConfig\` ${why}`)]
  if ((dnsConfig.nameservers ?? []).length > 0) return []
  return [required('spec.dnsConfig.nameservers', `must provide at least one DNS nameserver ${why}`)]
}

function validateSecurityContext(
  context: PodSecurityContext | undefined,
  spec: PodSpec,
  path: string,
): readonly FieldError[] {
  const { fsGroupChangePolicy: policy, seLinuxChangePolicy: relabel } = context ?? {}
  const policies = ['Always', 'OnRootMismatch']
  const relabels = ['MountOption', 'Recursive']
  return [
    ...(['fsGroup', 'runAsUser', 'runAsGroup'] as const).flatMap((name) =>
      validateId(context?.[name], `${path}.${name}`),
    ),
    ...(context?.supplementalGroups ?? []).flatMap((id, index) =>
      validateId(id, `${path}.supplementalGroups[${index}]`),
    ),
    ...(spec.shareProcessNamespace && spec.hostPID
      ? [invalid(`${path}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled')]
      : []),
    ...(policy && !policies.includes(policy) ? [notSupported(`${path}.fsGroupChangePolicy`, policy, policies)] : []),
    ...(relabel && !relabels.includes(relabel) ? [notSupported(`${path}.seLinuxChangePolicy`, relabel, relabels)] : []),
    ...(context?.sysctls ?? []).flatMap(({ name }, index) => validateSysctl(name, `${path}.sysctls[${index}].name`)),
  ]
}

const sysctlForm = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'

function validateSysctl(name: string, path: string): readonly FieldError[] {
  if (!name) return [required(path)]
  if (name.length <= 253 && new RegExp(sysctlForm).test(name)) return []
  return [invalid(path, name, `must have at most 253 characters and match regex ${sysctlForm}`)]
}

function validateHostNamespaces(spec: PodSpec): readonly FieldError[] {
  if (spec.hostUsers !== false) return []
  const why = 'when `hostUsers` is false'
  return [
    ...(spec.hostNetwork ? [forbidden('spec.hostNetwork', why)] : []),
    ...(spec.hostPID ? [forbidden('spec.HostPID', why)] : []),
    ...(spec.hostIPC ? [forbidden('spec.HostIPC', why)] : []),
  ]
}

function validateSystem({ os, securityContext }: PodSpec): readonly FieldError[] {
  const systems = ['linux', 'windows']
  if (os === undefined) return []
  if (!os.name) return [required('spec.os.name')]
  if (!systems.includes(os.name)) return [notSupported('spec.os', os.name, systems)]
  if (os.name === 'linux' || securityContext?.fsGroup === undefined) return []
  return [forbidden('spec.securityContext.fsGroup', 'cannot be set for a windows pod')]
}

function withoutAllowedChanges(next: PodSpec, previous: PodSpec): PodSpec {
  const grace =
    (previous.terminationGracePeriodSeconds ?? 0) < 0 && next.terminationGracePeriodSeconds === 1
      ? previous.terminationGracePeriodSeconds
      : next.terminationGracePeriodSeconds
  const result: Record<string, unknown> = {
    ...next,
    containers: withOldImages(next.containers, previous.containers),
    ...(next.initContainers && {
      initContainers: withOldImages(next.initContainers, previous.initContainers ?? []),
    }),
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
