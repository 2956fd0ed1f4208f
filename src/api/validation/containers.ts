// Are the containers of a pod right? Names, images, ports, variables, resources, and where volumes are mounted.
import { duplicate, forbidden, invalid, missing, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { compareQuantities } from '../quantity.ts'
import type {
  Container,
  ContainerPort,
  EnvVar,
  PodSpec,
  ResourceRequirements,
  Volume,
  VolumeDevice,
  VolumeMount,
} from '../types.ts'
import { validateBasicQuantity, validateDescendingPath } from './common.ts'
import { inRange, isEnvironmentName, isLabel, isPortName } from './formats.ts'
import { checked, repeated } from './metadata.ts'

const pullPolicies = ['Always', 'IfNotPresent', 'Never']
const messagePolicies = ['FallbackToLogsOnError', 'File']
const protocols = ['SCTP', 'TCP', 'UDP']
const propagations = ['Bidirectional', 'HostToContainer', 'None']
const recursions = ['Disabled', 'Enabled', 'IfPossible']

type VolumesByName = ReadonlyMap<string, Volume>

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
      if (container.name && names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name))
      names.add(container.name)
    }
  }
  return errors
}

function validateContainer(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const { name, image = '', imagePullPolicy: pull, terminationMessagePolicy: messages } = container
  return [
    ...(name ? checked(`${path}.name`, name, isLabel) : [required(`${path}.name`)]),
    ...validateImage(image, `${path}.image`),
    ...(pull && !pullPolicies.includes(pull) ? [notSupported(`${path}.imagePullPolicy`, pull, pullPolicies)] : []),
    ...(messages && !messagePolicies.includes(messages)
      ? [notSupported(`${path}.terminationMessagePolicy`, messages, messagePolicies)]
      : []),
    ...(container.ports ?? []).flatMap((port, index) => validatePort(port, `${path}.ports[${index}]`)),
    ...(container.env ?? []).flatMap((variable, index) => validateVariable(variable, `${path}.env[${index}]`)),
    ...validateMounts(container, volumes, `${path}.volumeMounts`),
    ...validateDevices(container, volumes, `${path}.volumeDevices`),
    ...validateResources(container.resources, `${path}.resources`),
  ]
}

function validateImage(image: string, path: string): readonly FieldError[] {
  if (image === '') return [required(path)]
  return image.trim() === image ? [] : [invalid(path, image, 'must not have leading or trailing whitespace')]
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

function validateVariable(variable: EnvVar, path: string): readonly FieldError[] {
  const { name, value, valueFrom } = variable
  const sources = Object.keys(valueFrom ?? {}).length
  const errors: FieldError[] = name ? [...checked(`${path}.name`, name, isEnvironmentName)] : [required(`${path}.name`)]
  if (valueFrom === undefined) return errors
  const at = `${path}.valueFrom`
  if (value) errors.push(invalid(at, '', 'may not be specified when `value` is not empty'))
  else if (sources === 0) {
    errors.push(
      invalid(at, '', 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'),
    )
  } else if (sources > 1) errors.push(invalid(at, '', 'may not have more than one field specified at a time'))
  const { configMapKeyRef, secretKeyRef } = valueFrom
  if (configMapKeyRef && !configMapKeyRef.name) errors.push(required(`${at}.configMapKeyRef.name`))
  if (configMapKeyRef && !configMapKeyRef.key) errors.push(required(`${at}.configMapKeyRef.key`))
  if (secretKeyRef && !secretKeyRef.name) errors.push(required(`${at}.secretKeyRef.name`))
  if (secretKeyRef && !secretKeyRef.key) errors.push(required(`${at}.secretKeyRef.key`))
  return errors
}

function validateMounts(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const mounts = container.volumeMounts ?? []
  const devices = new Set((container.volumeDevices ?? []).map(({ devicePath }) => devicePath))
  const deviceNames = new Set((container.volumeDevices ?? []).map(({ name }) => name))
  const twins = new Set(repeated(mounts.map(({ mountPath }) => mountPath)))
  return mounts.flatMap((mount, index) => {
    const at = `${path}[${index}]`
    const twin = twins.has(index)
    return [
      ...validateVolumeName(mount.name, volumes, at),
      ...(mount.mountPath ? [] : [required(`${at}.mountPath`)]),
      ...(twin ? [invalid(`${at}.mountPath`, mount.mountPath, 'must be unique')] : []),
      ...(devices.has(mount.mountPath)
        ? [invalid(`${at}.mountPath`, mount.mountPath, 'must not already exist in volumeDevices')]
        : []),
      ...(deviceNames.has(mount.name)
        ? [invalid(`${at}.name`, mount.name, 'must not already exist in volumeDevices')]
        : []),
      ...validateSubPaths(mount, at),
      ...validatePropagation(mount, container, at),
      ...validateRecursion(mount, at),
    ]
  })
}

function validateVolumeName(name: string, volumes: VolumesByName, path: string): readonly FieldError[] {
  if (!name) return [required(`${path}.name`)]
  return volumes.has(name) ? [] : [missing(`${path}.name`, name)]
}

function validateSubPaths({ subPath, subPathExpr }: VolumeMount, path: string): readonly FieldError[] {
  return [
    ...(subPath ? validateDescendingPath(subPath, `${path}.subPath`) : []),
    ...(subPath && subPathExpr
      ? [invalid(`${path}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive')]
      : []),
    ...(subPathExpr ? validateDescendingPath(subPathExpr, `${path}.subPathExpr`) : []),
  ]
}

function validatePropagation(mount: VolumeMount, container: Container, path: string): readonly FieldError[] {
  const { mountPropagation: propagation } = mount
  if (propagation === undefined) return []
  if (!propagations.includes(propagation)) return [notSupported(`${path}.mountPropagation`, propagation, propagations)]
  if (propagation !== 'Bidirectional' || container.securityContext?.privileged === true) return []
  const text = 'Bidirectional mount propagation is available only to privileged containers'
  return [forbidden(`${path}.mountPropagation`, text)]
}

function validateRecursion(mount: VolumeMount, path: string): readonly FieldError[] {
  const { recursiveReadOnly: recursion, readOnly, mountPropagation: propagation } = mount
  const field = `${path}.recursiveReadOnly`
  if (recursion === undefined || recursion === 'Disabled') return []
  if (!recursions.includes(recursion)) return [notSupported(field, recursion, recursions)]
  return [
    ...(readOnly === true ? [] : [forbidden(field, 'may only be specified when readOnly is true')]),
    ...(propagation === undefined || propagation === 'None'
      ? []
      : [forbidden(field, 'may only be specified when mountPropagation is None or not specified')]),
  ]
}

function validateDevices(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const devices = container.volumeDevices ?? []
  const pathTwins = new Set(repeated(devices.map(({ devicePath }) => devicePath)))
  const nameTwins = new Set(repeated(devices.map(({ name }) => name)))
  const mounted = new Set((container.volumeMounts ?? []).map(({ mountPath }) => mountPath))
  return devices.flatMap((device, index) => {
    const at = `${path}[${index}]`
    return [
      ...validateVolumeName(device.name, volumes, at),
      ...validateBlockSource(device, volumes, at),
      ...validateDevicePath(device.devicePath, `${at}.devicePath`),
      ...(pathTwins.has(index) ? [invalid(`${at}.devicePath`, device.devicePath, 'must be unique')] : []),
      ...(nameTwins.has(index) ? [invalid(`${at}.name`, device.name, 'must be unique')] : []),
      ...(mounted.has(device.devicePath)
        ? [invalid(`${at}.devicePath`, device.devicePath, 'must not already exist as a path in volumeMounts')]
        : []),
    ]
  })
}

function validateBlockSource(device: VolumeDevice, volumes: VolumesByName, path: string): readonly FieldError[] {
  const volume = volumes.get(device.name)
  if (volume === undefined || volume.persistentVolumeClaim || volume.ephemeral) return []
  const text = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  return [invalid(`${path}.name`, device.name, text)]
}

function validateDevicePath(devicePath: string, path: string): readonly FieldError[] {
  if (!devicePath) return [required(path)]
  if (!devicePath.split('/').includes('..')) return []
  return [invalid(path, devicePath, "can not contain backsteps ('..')")]
}

function validateResources(resources: ResourceRequirements | undefined, path: string): readonly FieldError[] {
  const { limits = {}, requests = {} } = resources ?? {}
  return [
    ...Object.entries(limits).flatMap(([name, value]) => validateBasicQuantity(value, `${path}.limits[${name}]`)),
    ...Object.entries(requests).flatMap(([name, value]) => validateBasicQuantity(value, `${path}.requests[${name}]`)),
    ...Object.entries(requests).flatMap(([name, value]) => {
      const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
      if (limit === undefined || compareQuantities(value, limit) <= 0) return []
      return [invalid(`${path}.requests`, value, `must be less than or equal to ${name} limit of ${limit}`)]
    }),
  ]
}
