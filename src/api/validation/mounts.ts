// Are the mounts and devices of a container right? Each names a volume of the pod, no two share a place, and a volume is
// either mounted or a device.
import { forbidden, invalid, missing, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Container, Volume, VolumeDevice, VolumeMount } from '../generated/types.ts'
import { validateDescendingPath } from './common.ts'
import { repeated } from './metadata.ts'

const propagations = ['Bidirectional', 'HostToContainer', 'None']
const reservedName = '.hawser'
const recursions = ['Disabled', 'Enabled', 'IfPossible']

export type VolumesByName = ReadonlyMap<string, Volume>

export function validateMounts(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const mounts = container.volumeMounts ?? []
  const devices = container.volumeDevices ?? []
  const twins = new Set(repeated(mounts.map(({ mountPath }) => mountPath)))
  return mounts.flatMap((mount, index) => {
    const at = `${path}[${index}]`
    const { name, mountPath } = mount
    return [
      ...validateVolumeName(name, volumes, at),
      ...(mountPath ? [] : [required(`${at}.mountPath`)]),
      ...validateNotReserved(mountPath, `${at}.mountPath`),
      ...(twins.has(index) ? [invalid(`${at}.mountPath`, mountPath, 'must be unique')] : []),
      ...(devices.some((device) => device.name === name)
        ? [invalid(`${at}.name`, name, 'must not already exist in volumeDevices')]
        : []),
      ...(devices.some(({ devicePath }) => devicePath === mountPath)
        ? [invalid(`${at}.mountPath`, mountPath, 'must not already exist as a path in volumeDevices')]
        : []),
      ...validateSubPaths(mount, path, at),
      ...validatePropagation(mount, container, path),
      ...validateRecursion(mount, path),
    ]
  })
}

export function validateDevices(container: Container, volumes: VolumesByName, path: string): readonly FieldError[] {
  const devices = container.volumeDevices ?? []
  const mounts = container.volumeMounts ?? []
  const pathTwins = new Set(repeated(devices.map(({ devicePath }) => devicePath)))
  const nameTwins = new Set(repeated(devices.map(({ name }) => name)))
  return devices.flatMap((device, index) => {
    const at = `${path}[${index}]`
    const { name, devicePath } = device
    return [
      ...(name ? [] : [required(`${at}.name`)]),
      ...(name && nameTwins.has(index) ? [invalid(`${at}.name`, name, 'must be unique')] : []),
      ...validateBlockSource(device, volumes, at),
      ...(devicePath ? [] : [required(`${at}.devicePath`)]),
      ...validateNotReserved(devicePath, `${at}.devicePath`),
      ...(pathTwins.has(index) ? [invalid(`${at}.devicePath`, devicePath, 'must be unique')] : []),
      ...(devicePath?.split('/').includes('..')
        ? [invalid(`${at}.devicePath`, devicePath, "can not contain backsteps ('..')")]
        : []),
      ...(mounts.some((mount) => mount.name === name)
        ? [invalid(`${at}.name`, name, 'must not already exist in volumeMounts')]
        : []),
      ...(mounts.some(({ mountPath }) => mountPath === devicePath)
        ? [invalid(`${at}.devicePath`, devicePath, 'must not already exist as a path in volumeMounts')]
        : []),
    ]
  })
}

/** While a container is set up, the machine's own root is at this name: nothing of a pod may be there. */
function validateNotReserved(path: string | undefined, at: string): readonly FieldError[] {
  const places: string[] = []
  for (const name of (path ?? '').split('/')) {
    if (name === '..') places.pop()
    else if (name !== '' && name !== '.') places.push(name)
  }
  return places[0] === reservedName ? [invalid(at, path, `must not be /${reservedName} or below it`)] : []
}

function validateVolumeName(name: string, volumes: VolumesByName, path: string): readonly FieldError[] {
  return [...(name ? [] : [required(`${path}.name`)]), ...(volumes.has(name) ? [] : [missing(`${path}.name`, name)])]
}

/** Kubernetes tells most of what is wrong with one mount by the path of the list, without an index. */
function validateSubPaths({ subPath, subPathExpr }: VolumeMount, list: string, path: string): readonly FieldError[] {
  return [
    ...(subPath ? validateDescendingPath(subPath, `${list}.subPath`) : []),
    ...(subPath && subPathExpr
      ? [invalid(`${path}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive')]
      : []),
    ...(subPathExpr ? validateDescendingPath(subPathExpr, `${list}.subPathExpr`) : []),
  ]
}

function validatePropagation(mount: VolumeMount, container: Container, list: string): readonly FieldError[] {
  const { mountPropagation: propagation } = mount
  if (propagation === undefined) return []
  if (!propagations.includes(propagation)) return [notSupported(`${list}.mountPropagation`, propagation, propagations)]
  if (propagation !== 'Bidirectional' || container.securityContext?.privileged === true) return []
  const text = 'Bidirectional mount propagation is available only to privileged containers'
  return [forbidden(`${list}.mountPropagation`, text)]
}

function validateRecursion(mount: VolumeMount, list: string): readonly FieldError[] {
  const { recursiveReadOnly: recursion, readOnly, mountPropagation: propagation } = mount
  const field = `${list}.recursiveReadOnly`
  if (recursion === undefined || recursion === 'Disabled') return []
  if (!recursions.includes(recursion)) return [notSupported(field, recursion, recursions)]
  return [
    ...(readOnly === true ? [] : [forbidden(field, 'may only be specified when readOnly is true')]),
    ...(propagation === undefined || propagation === 'None'
      ? []
      : [forbidden(field, 'may only be specified when mountPropagation is None or not specified')]),
  ]
}

function validateBlockSource(device: VolumeDevice, volumes: VolumesByName, path: string): readonly FieldError[] {
  const volume = volumes.get(device.name)
  if (volume === undefined) return [missing(`${path}.name`, device.name)]
  if (volume.persistentVolumeClaim || volume.ephemeral) return []
  const text = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  return [invalid(`${path}.name`, device.name, text)]
}
