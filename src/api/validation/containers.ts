// Are the containers of a pod right? Names, images, ports, variables, resources, probes and privileges; where volumes
// are mounted is in mounts.ts.
import { duplicate, forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { compareQuantities } from '../quantity.ts'
import type {
  Container,
  ContainerPort,
  EnvFromSource,
  EnvVar,
  PodSpec,
  ResourceRequirements,
  SecurityContext,
} from '../generated/types.ts'
import { validateId, validateNonNegativeQuantity } from './common.ts'
import { inRange, isConfigKey, isEnvironmentName, isLabel, isPortName } from './formats.ts'
import { checked } from './metadata.ts'
import { validateDevices, validateMounts } from './mounts.ts'
import type { VolumesByName } from './mounts.ts'
import { validateFieldReference, validateResourceReference } from './references.ts'

const pullPolicies = ['Always', 'IfNotPresent', 'Never']
const messagePolicies = ['File', 'FallbackToLogsOnError']
const restartPolicies = ['Always', 'Never', 'OnFailure']
const protocols = ['SCTP', 'TCP', 'UDP']
const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep']

export function validateContainers(spec: PodSpec, path: string): readonly FieldError[] {
  const volumes: VolumesByName = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]))
  const lists = [
    ['containers', spec.containers ?? []],
    ['initContainers', spec.initContainers ?? []],
    ['ephemeralContainers', spec.ephemeralContainers ?? []],
  ] as const
  const names = new Set<string>()
  const errors: FieldError[] = (spec.containers ?? []).length === 0 ? [required(`${path}.containers`)] : []
  for (const [listName, list] of lists) {
    for (const [index, container] of list.entries()) {
      const at = `${path}.${listName}[${index}]`
      errors.push(...validateContainer(container, volumes, at))
      if (listName === 'initContainers') errors.push(...validateInitProbes(container, at))
      if (container.name && names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name))
      names.add(container.name)
    }
  }
  return errors
}

function validateContainer(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const { name, image = '', imagePullPolicy: pull, terminationMessagePolicy: messages, restartPolicy } = container
  return [
    ...(name ? checked(`${path}.name`, name, isLabel) : [required(`${path}.name`)]),
    ...validateImage(image, `${path}.image`),
    ...(messages && !messagePolicies.includes(messages)
      ? [notSupported(`${path}.terminationMessagePolicy`, messages, messagePolicies)]
      : []),
    ...validatePorts(container.ports ?? [], `${path}.ports`),
    ...(container.env ?? []).flatMap((variable, index) => validateVariable(variable, `${path}.env[${index}]`)),
    ...validateVariableSources(container.envFrom ?? [], `${path}.envFrom`),
    ...validateMounts(container, volumes, `${path}.volumeMounts`),
    ...validateDevices(container, volumes, `${path}.volumeDevices`),
    ...(pull && !pullPolicies.includes(pull) ? [notSupported(`${path}.imagePullPolicy`, pull, pullPolicies)] : []),
    ...validateResources(container.resources, `${path}.resources`),
    ...validatePrivileges(container.securityContext, `${path}.securityContext`),
    ...(restartPolicy === undefined || restartPolicies.includes(restartPolicy)
      ? []
      : [notSupported(`${path}.restartPolicy`, restartPolicy, restartPolicies)]),
    ...(['postStart', 'preStop'] as const).flatMap((hook) =>
      validateHandler(container.lifecycle?.[hook], `${path}.lifecycle.${hook}`),
    ),
    ...probes.flatMap((probe) => validateHandler(container[probe], `${path}.${probe}`)),
  ]
}

function validateImage(image: string, path: string): readonly FieldError[] {
  if (image === '') return [required(path)]
  return image.trim() === image ? [] : [invalid(path, image, 'must not have leading or trailing whitespace')]
}

function validatePorts(ports: readonly ContainerPort[], path: string): readonly FieldError[] {
  const names = new Set<string>()
  const taken = new Set<string>()
  return ports.flatMap((port, index) => {
    const at = `${path}[${index}]`
    const errors: FieldError[] = [...validatePort(port, at)]
    if (port.name && names.has(port.name)) errors.push(duplicate(`${at}.name`, port.name))
    if (port.name) names.add(port.name)
    const host = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`
    if (port.hostPort && taken.has(host)) errors.push(duplicate(`${at}.hostPort`, host))
    if (port.hostPort) taken.add(host)
    return errors
  })
}

function validatePort(port: ContainerPort, path: string): readonly FieldError[] {
  const { name, containerPort, hostPort, protocol } = port
  return [
    ...(name ? checked(`${path}.name`, name, isPortName) : []),
    ...(containerPort === 0 ? [required(`${path}.containerPort`)] : portNumber(containerPort, `${path}.containerPort`)),
    ...(hostPort ? portNumber(hostPort, `${path}.hostPort`) : []),
    ...(protocol ? [] : [required(`${path}.protocol`)]),
    ...(protocol && !protocols.includes(protocol) ? [notSupported(`${path}.protocol`, protocol, protocols)] : []),
  ]
}

function portNumber(port: number, path: string): readonly FieldError[] {
  return port < 1 || port > 65535 ? [invalid(path, port, inRange(1, 65535))] : []
}

const variableFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]

function validateVariable(variable: EnvVar, path: string): readonly FieldError[] {
  const { name, value, valueFrom } = variable
  const errors: FieldError[] = name ? [...checked(`${path}.name`, name, isEnvironmentName)] : [required(`${path}.name`)]
  if (valueFrom === undefined) return errors
  const at = `${path}.valueFrom`
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom
  if (fieldRef) errors.push(...validateFieldReference(fieldRef, variableFields, `${at}.fieldRef`))
  if (resourceFieldRef) {
    errors.push(...validateResourceReference(resourceFieldRef, false, `${at}.resourceFieldRef`))
  }
  if (configMapKeyRef) errors.push(...validateKeyReference(configMapKeyRef, `${at}.configMapKeyRef`))
  if (secretKeyRef) errors.push(...validateKeyReference(secretKeyRef, `${at}.secretKeyRef`))
  const sources = Object.keys(valueFrom).length
  if (sources === 0) {
    const names = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
    errors.push(invalid(at, '', `must specify one of: ${names}`))
  } else if (value) errors.push(invalid(at, '', 'may not be specified when `value` is not empty'))
  else if (sources > 1) errors.push(invalid(at, '', 'may not have more than one field specified at a time'))
  return errors
}

function validateKeyReference(
  reference: { readonly name?: string; readonly key: string },
  path: string,
): readonly FieldError[] {
  const { name, key } = reference
  return [
    ...(name ? [] : [required(`${path}.name`)]),
    ...(key ? checked(`${path}.key`, key, isConfigKey) : [required(`${path}.key`)]),
  ]
}

function validateVariableSources(sources: readonly EnvFromSource[], path: string): readonly FieldError[] {
  return sources.flatMap(({ prefix, configMapRef, secretRef }, index) => {
    const errors: FieldError[] = prefix ? [...checked(`${path}[${index}].prefix`, prefix, isEnvironmentName)] : []
    if (configMapRef && !configMapRef.name) errors.push(required(`${path}[${index}].configMapRef.name`))
    if (secretRef && !secretRef.name) errors.push(required(`${path}[${index}].secretRef.name`))
    // As in Kubernetes: these two are told of the whole list.
    if (!configMapRef && !secretRef) {
      errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'))
    }
    if (configMapRef && secretRef) {
      errors.push(invalid(path, '', 'may not have more than one field specified at a time'))
    }
    return errors
  })
}

function validateResources(resources: ResourceRequirements | undefined, path: string): readonly FieldError[] {
  const { limits = {}, requests = {} } = resources ?? {}
  const amounts = (list: Readonly<Record<string, string>>, at: string) =>
    Object.entries(list).flatMap(([name, value]) => validateNonNegativeQuantity(value, `${at}[${name}]`))
  return [
    ...amounts(limits, `${path}.limits`),
    ...amounts(requests, `${path}.requests`),
    ...Object.entries(requests).flatMap(([name, value]) => {
      const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
      if (limit === undefined || compareQuantities(value, limit) <= 0) return []
      return [invalid(`${path}.requests`, value, `must be less than or equal to ${name} limit of ${limit}`)]
    }),
  ]
}

function validatePrivileges(context: SecurityContext | undefined, path: string): readonly FieldError[] {
  if (context === undefined) return []
  const mounts = ['Default', 'Unmasked']
  const { procMount } = context
  return [
    ...validateId(context.runAsUser, `${path}.runAsUser`),
    ...validateId(context.runAsGroup, `${path}.runAsGroup`),
    ...(procMount === undefined || mounts.includes(procMount)
      ? []
      : [notSupported(`${path}.procMount`, procMount, mounts)]),
    ...(context.allowPrivilegeEscalation === false && context.privileged === true
      ? [invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true')]
      : []),
  ]
}

/** A probe or hook does exactly one thing. */
function validateHandler(handler: object | undefined, path: string): readonly FieldError[] {
  if (handler === undefined) return []
  const [first, ...others] = handlers.filter((name) => Object.hasOwn(handler, name))
  if (first === undefined) return [required(path, 'must specify a handler type')]
  return others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 handler type'))
}

/** A container that ends before the others begin is not asked how it is. */
function validateInitProbes(container: Container, path: string): readonly FieldError[] {
  if (container.restartPolicy === 'Always') return []
  const text = 'may not be set for init containers without restartPolicy=Always'
  return (['lifecycle', ...probes] as const)
    .filter((name) => container[name] !== undefined)
    .map((name) => forbidden(`${path}.${name}`, text))
}
