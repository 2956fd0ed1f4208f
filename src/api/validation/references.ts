// Does a reference into the pod itself point to something? Field paths and container resources, as files of a volume and
// as environment variables.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { compareQuantities } from '../quantity.ts'
import type { ObjectFieldSelector, ResourceFieldSelector } from '../generated/types.ts'
import { isQualifiedName } from './formats.ts'

/** Every path of a pod that can be named at all; which of them may be used depends on where. */
const convertible: ReadonlySet<string> = new Set([
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.restartPolicy',
  'spec.schedulerName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.phase',
  'status.podIP',
  'status.podIPs',
])
const resourceNames = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]

export function validateFieldReference(
  reference: ObjectFieldSelector,
  allowed: readonly string[],
  path: string,
): readonly FieldError[] {
  const { apiVersion = 'v1', fieldPath } = reference
  if (!fieldPath) return [required(`${path}.fieldPath`)]
  const unconvertible = (why: string) => [invalid(`${path}.fieldPath`, fieldPath, `error converting fieldPath: ${why}`)]
  if (apiVersion !== 'v1') return unconvertible(`unsupported pod version: ${apiVersion}`)
  const [, owner = '', key] = /^(.*)\['(.*)'\]$/.exec(fieldPath) ?? []
  if (owner === 'metadata.annotations' || owner === 'metadata.labels') {
    const name = owner === 'metadata.annotations' ? (key ?? '').toLowerCase() : (key ?? '')
    return isQualifiedName(name).map((message) => invalid(path, name, message))
  }
  if (owner !== '') return unconvertible(`field label does not support subscript: ${fieldPath}`)
  if (!convertible.has(fieldPath)) return unconvertible(`field label not supported: ${fieldPath}`)
  return allowed.includes(fieldPath) ? [] : [notSupported(`${path}.fieldPath`, fieldPath, allowed)]
}

/** A file names its container; a variable means its own. */
export function validateResourceReference(
  reference: ResourceFieldSelector,
  isFile: boolean,
  path: string,
): readonly FieldError[] {
  const { containerName, resource, divisor } = reference
  const known = resourceNames.includes(resource) || /^(limits|requests)\.hugepages-/.test(resource)
  if (isFile && !containerName) return [required(`${path}.containerName`)]
  if (!resource) return [required(`${path}.resource`)]
  return [
    ...(known ? [] : [notSupported(`${path}.resource`, resource, resourceNames)]),
    ...validateDivisor(resource, divisor, `${path}.divisor`),
  ]
}

const sizes = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

function validateDivisor(resource: string, divisor: string | undefined, path: string): readonly FieldError[] {
  if (divisor === undefined || compareQuantities(divisor, '0') === 0) return []
  if (resource.endsWith('.cpu')) {
    if (divisor === '1m' || divisor === '1') return []
    return [invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")]
  }
  const word = resource.endsWith('.memory')
    ? 'memory'
    : resource.includes('ephemeral')
      ? 'local ephemeral storage'
      : 'hugepages'
  if (sizes.includes(divisor)) return []
  return [invalid(path, resource, `only divisor's values ${sizes.join(', ')} are supported with the ${word} resource`)]
}
