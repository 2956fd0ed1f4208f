// Is a source right whose only rule is that some fields are not empty? Most are clouds and storage systems that Kubernetes once had
// inside: pods and persistent volumes may still name them.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { AzureDiskVolumeSource, QuobyteVolumeSource, StorageOSVolumeSource } from '../generated/types.ts'
import { jsonFields } from '../schema/schema.ts'
import { validateDescendingPath } from './common.ts'
import { inRange, isLabel } from './formats.ts'
import { checked } from './metadata.ts'

type Values = Readonly<Record<string, unknown>>

/** What must be there, in the order Kubernetes asks. A source that Kubernetes does not have says it in its message. */
const requiredFields: Readonly<Record<string, readonly string[]>> = {
  awsElasticBlockStore: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  cephfs: ['monitors'],
  cinder: ['volumeID'],
  gcePersistentDisk: ['pdName'],
  gitRepo: ['repository'],
  glusterfs: ['endpoints', 'path'],
  image: ['reference'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  rbd: ['monitors', 'image'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  // These have rules of their own below.
  flocker: [],
  quobyte: [],
  storageos: [],
  vsphereVolume: ['volumePath'],
  persistentVolumeClaim: ['claimName'],
}

/** `path` is where the sources stand; `inVolume` tells a persistent volume's source (its secrets need a namespace). */
export function validateInTreeSource(
  name: string,
  source: unknown,
  path: string,
  inVolume: boolean,
): readonly FieldError[] {
  // Kubernetes calls this one differently in its errors.
  const at = `${path}.${name === 'gcePersistentDisk' ? 'persistentDisk' : name}`
  const values = source as Values // read by the schema before
  const missing = (requiredFields[name] ?? requiredByMessage(name, inVolume)).filter((field) => isEmpty(values[field]))
  return [...missing.map((field) => required(`${at}.${field}`)), ...furtherRules(name, values, at, inVolume)]
}

/**
 * The names of all sources in pods or in persistent volumes: those of Kubernetes in the order in which it looks at them (the first
 * counts, every further one is refused), then those that only we have.
 */
export function sourceNamesIn(message: SourcesMessage, kubernetesOrder: readonly string[]): readonly string[] {
  return [...new Set([...kubernetesOrder, ...jsonFields(message).keys()])]
}

type SourcesMessage = 'core.VolumeSource' | 'core.PersistentVolumeSource'

function requiredByMessage(name: string, inVolume: boolean): readonly string[] {
  const sources: SourcesMessage = inVolume ? 'core.PersistentVolumeSource' : 'core.VolumeSource'
  const fields = [...jsonFields(jsonFields(sources).get(name)?.type ?? '').values()]
  return fields.filter((field) => field.required === true).map((field) => field.name)
}

function furtherRules(name: string, values: Values, path: string, inVolume: boolean): readonly FieldError[] {
  switch (name) {
    case 'awsElasticBlockStore':
    case 'gcePersistentDisk':
      return validatePartition(values['partition'], `${path}.partition`)
    case 'azureDisk':
      return validateAzureDisk(values as unknown as AzureDiskVolumeSource, path) // named by its field
    case 'azureFile':
      return values['secretNamespace'] === '' ? [required(`${path}.secretNamespace`)] : []
    case 'cinder':
      return validateSecret(values['secretRef'], `${path}.secretRef`, inVolume)
    case 'gitRepo':
      return validateDescendingPath(String(values['directory'] ?? ''), `${path}.directory`)
    case 'glusterfs':
      return validateEndpointsNamespace(values['endpointsNamespace'], `${path}.endpointsNamespace`)
    case 'image':
      return validatePullPolicy(values['pullPolicy'], `${path}.pullPolicy`)
    case 'quobyte':
      return validateQuobyte(values as unknown as QuobyteVolumeSource, path) // named by its field
    case 'storageos':
      return validateStorageOs(values as unknown as StorageOSVolumeSource, path, inVolume) // named by its field
    default:
      return []
  }
}

function validatePartition(partition: unknown, path: string): readonly FieldError[] {
  const wrong = typeof partition === 'number' && (partition < 0 || partition > 255)
  return wrong ? [invalid(path, partition, inRange(1, 255))] : []
}

const cachingModes = ['None', 'ReadOnly', 'ReadWrite']
const diskKinds = ['Dedicated', 'Managed', 'Shared']
const managedDisk = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}'
const blobDisk = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd'

function validateAzureDisk(disk: AzureDiskVolumeSource, path: string): readonly FieldError[] {
  const { cachingMode, kind, diskURI = '' } = disk
  const [prefix, form] = kind === 'Managed' ? ['/subscriptions/', managedDisk] : ['https://', blobDisk]
  const misplaced = kind !== undefined && !diskURI.startsWith(prefix)
  return [
    ...(cachingMode === undefined || cachingModes.includes(cachingMode)
      ? []
      : [notSupported(`${path}.cachingMode`, cachingMode, cachingModes)]),
    ...(kind === undefined || diskKinds.includes(kind) ? [] : [notSupported(`${path}.kind`, kind, diskKinds)]),
    ...(misplaced ? [notSupported(`${path}.diskURI`, diskURI, [form])] : []),
  ]
}

function validateEndpointsNamespace(namespace: unknown, path: string): readonly FieldError[] {
  if (typeof namespace !== 'string') return []
  if (namespace !== '') return checked(path, namespace, isLabel)
  return [invalid(path, '', 'if the endpointnamespace is set, it must be a valid namespace name')]
}

function validatePullPolicy(policy: unknown, path: string): readonly FieldError[] {
  const policies = ['Always', 'IfNotPresent', 'Never']
  return typeof policy !== 'string' || policies.includes(policy) ? [] : [notSupported(path, policy, policies)]
}

const pairs = 'must be a host:port pair or multiple pairs separated by commas'

function validateQuobyte(source: QuobyteVolumeSource, path: string): readonly FieldError[] {
  const { registry, volume, tenant = '' } = source
  const noVolume = volume ? [] : [required(`${path}.volume`)]
  if (!registry) return [required(`${path}.registry`, pairs), ...noVolume]
  if (tenant.length >= 65) {
    return [required(`${path}.tenant`, 'must be a UUID and may not exceed a length of 64 characters'), ...noVolume]
  }
  const wrong = registry.split(',').filter((pair) => !/^([^:[\]]*|\[[^[\]]*\]):[^:]*$/.test(pair))
  return [...wrong.map(() => invalid(`${path}.registry`, registry, pairs)), ...noVolume]
}

function validateStorageOs(source: StorageOSVolumeSource, path: string, inVolume: boolean): readonly FieldError[] {
  const { volumeName, volumeNamespace } = source
  return [
    ...(volumeName ? checked(`${path}.volumeName`, volumeName, isLabel) : [required(`${path}.volumeName`)]),
    ...(volumeNamespace ? checked(`${path}.volumeNamespace`, volumeNamespace, isLabel) : []),
    ...validateSecret(source.secretRef, `${path}.secretRef`, inVolume),
  ]
}

function validateSecret(secret: unknown, path: string, inVolume: boolean): readonly FieldError[] {
  if (secret === undefined) return []
  const { name, namespace } = secret as Values // read by the schema before
  return [
    ...(name ? [] : [required(`${path}.name`)]),
    ...(namespace || !inVolume ? [] : [required(`${path}.namespace`)]),
  ]
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}
