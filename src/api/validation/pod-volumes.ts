// Are the volumes of a pod right? Names, exactly one source each, and what every source demands.
import { duplicate, forbidden, invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { tryParseQuantity } from '../quantity.ts'
import { jsonFields } from '../schema/schema.ts'
import type {
  CSIVolumeSource,
  DownwardAPIVolumeFile,
  EphemeralVolumeSource,
  KeyToPath,
  Pod,
  ProjectedVolumeSource,
  Volume,
  VolumeProjection,
  VolumeSource,
} from '../types.ts'
import { validateClaimSpec } from './claim.ts'
import { validateDriverName, validateFilePath } from './common.ts'
import { isLabel, isQualifiedName, isSubdomain } from './formats.ts'
import { checked, repeated, validateAnnotations, validateLabels } from './metadata.ts'
import { validateTokenDuration } from './storage-kinds.ts'
import {
  validateFc,
  validateFlex,
  validateHostPath,
  validateIscsi,
  validateNfs,
  validateRequiredFields,
} from './volume-sources.ts'

/** Kubernetes looks at the sources in this order: the first counts, every further one is refused. */
const firstSources = ['emptyDir', 'hostPath', 'gitRepo']
const sourceNames: readonly string[] = [
  ...firstSources,
  ...[...jsonFields('core.VolumeSource').keys()].filter((name) => !firstSources.includes(name)),
]
const fieldPaths = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid']
const resourceNames = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]
const modeText = 'must be a number between 0 and 0777 (octal), both inclusive'

export function validatePodVolumes(volumes: readonly Volume[], pod: Pod, path: string): readonly FieldError[] {
  const twins = new Set(repeated(volumes.map(({ name }) => name)))
  return volumes.flatMap((volume, index) => {
    const at = `${path}[${index}]`
    return [
      ...validateSources(volume, pod, at),
      ...(volume.name ? checked(`${at}.name`, volume.name, isLabel) : [required(`${at}.name`)]),
      ...(volume.name && twins.has(index) ? [duplicate(`${at}.name`, volume.name)] : []),
    ]
  })
}

function validateSources(volume: Volume, pod: Pod, path: string): readonly FieldError[] {
  const given = sourceNames.filter((name) => Object.hasOwn(volume, name))
  const [first, ...others] = given
  if (first === undefined) return [required(path, 'must specify a volume type')]
  return [
    ...validateSource(volume, first, pod, `${path}.${first}`),
    ...others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 volume type')),
  ]
}

function validateSource(volume: Volume, name: string, pod: Pod, path: string): readonly FieldError[] {
  const { emptyDir, secret, configMap, downwardAPI, projected, csi, ephemeral } = volume
  if (name === 'emptyDir') return validateSizeLimit(emptyDir?.sizeLimit, path)
  if (name === 'hostPath' && volume.hostPath) return validateHostPath(volume.hostPath, path)
  if (name === 'nfs' && volume.nfs) return validateNfs(volume.nfs, path)
  if (name === 'iscsi' && volume.iscsi) return validateIscsi(volume.iscsi, path)
  if (name === 'fc' && volume.fc) return validateFc(volume.fc, path)
  if (name === 'flexVolume' && volume.flexVolume) return validateFlex(volume.flexVolume, path)
  if (name === 'csi' && csi) return validateCsi(csi, path)
  if (name === 'ephemeral' && ephemeral) return validateEphemeral(ephemeral, volume.name, pod, path)
  if (name === 'projected' && projected) return validateProjected(projected, path)
  if (name === 'secret' && secret) {
    return [...present(secret.secretName, `${path}.secretName`), ...validateFiles(secret, path)]
  }
  if (name === 'configMap' && configMap) {
    return [...present(configMap.name, `${path}.name`), ...validateFiles(configMap, path)]
  }
  if (name === 'downwardAPI' && downwardAPI) {
    const { items = [], defaultMode } = downwardAPI
    return [...validateMode(defaultMode, `${path}.defaultMode`), ...validateDownward(items, path)]
  }
  const field = jsonFields('core.VolumeSource').get(name)
  return field === undefined ? [] : validateRequiredFields(volume[name as keyof VolumeSource], field.type, path)
}

function validateSizeLimit(limit: string | undefined, path: string): readonly FieldError[] {
  const negative = limit !== undefined && (tryParseQuantity(limit)?.nanos ?? 0n) < 0n
  return negative ? [forbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')] : []
}

function validateFiles(
  source: { readonly items?: readonly KeyToPath[]; readonly defaultMode?: number },
  path: string,
): readonly FieldError[] {
  return [...validateMode(source.defaultMode, `${path}.defaultMode`), ...validateItems(source.items ?? [], path)]
}

function validateItems(items: readonly KeyToPath[], path: string): readonly FieldError[] {
  return items.flatMap((item, index) => {
    const at = `${path}.items[${index}]`
    return [
      ...present(item.key, `${at}.key`),
      ...(item.path ? validateFilePath(item.path, `${at}.path`) : [required(`${at}.path`)]),
      ...validateMode(item.mode, `${at}.mode`),
    ]
  })
}

function validateMode(mode: number | undefined, path: string): readonly FieldError[] {
  return mode !== undefined && (mode < 0 || mode > 0o777) ? [invalid(path, mode, modeText)] : []
}

function validateDownward(items: readonly DownwardAPIVolumeFile[], path: string): readonly FieldError[] {
  return items.flatMap((file, index) => {
    const at = `${path}.items[${index}]`
    return [
      ...(file.path ? validateFilePath(file.path, `${at}.path`) : [required(`${at}.path`)]),
      ...validateFileSource(file, at),
      ...validateMode(file.mode, `${at}.mode`),
    ]
  })
}

function validateFileSource(file: DownwardAPIVolumeFile, path: string): readonly FieldError[] {
  const { fieldRef, resourceFieldRef: resource } = file
  if (fieldRef !== undefined) {
    const both = 'fieldRef and resourceFieldRef can not be specified simultaneously'
    return [
      ...validateFieldPath(fieldRef.fieldPath, `${path}.fieldRef.fieldPath`),
      ...(resource === undefined ? [] : [invalid(path, 'resource', both)]),
    ]
  }
  if (resource === undefined) return [required(path, 'one of fieldRef and resourceFieldRef is required')]
  const at = `${path}.resourceFieldRef`
  const known = resourceNames.includes(resource.resource) || /^(limits|requests)\.hugepages-/.test(resource.resource)
  return [
    ...present(resource.containerName, `${at}.containerName`),
    ...present(resource.resource, `${at}.resource`),
    ...(resource.resource && !known ? [notSupported(`${at}.resource`, resource.resource, resourceNames)] : []),
  ]
}

function validateFieldPath(fieldPath: string, path: string): readonly FieldError[] {
  if (!fieldPath) return [required(path)]
  const [, owner, key] = /^(metadata\.(?:annotations|labels))\['(.*)'\]$/.exec(fieldPath) ?? []
  if (owner !== undefined && key !== undefined) {
    return isQualifiedName(owner === 'metadata.annotations' ? key.toLowerCase() : key).map((message) =>
      invalid(path, key, message),
    )
  }
  return fieldPaths.includes(fieldPath) ? [] : [notSupported(path, fieldPath, fieldPaths)]
}

function validateProjected(source: ProjectedVolumeSource, path: string): readonly FieldError[] {
  const seen = new Set<string>()
  return [
    ...validateMode(source.defaultMode, `${path}.defaultMode`),
    ...(source.sources ?? []).flatMap((projection, index) => {
      const at = `${path}.sources[${index}]`
      const [first, ...others] = Object.keys(projection)
      const conflicts = pathsOf(projection).filter((file) => file !== '' && seen.has(file))
      for (const file of pathsOf(projection)) seen.add(file)
      return [
        ...(first === undefined ? [required(at, 'must specify a volume type')] : validateProjection(projection, at)),
        ...others.map((name) => forbidden(`${at}.${name}`, 'may not specify more than 1 volume type')),
        ...conflicts.map((file) => invalid(`${at}.${first}`, file, 'conflicting duplicate paths')),
      ]
    }),
  ]
}

function validateProjection(projection: VolumeProjection, path: string): readonly FieldError[] {
  const { secret, configMap, downwardAPI, serviceAccountToken: token } = projection
  if (secret) {
    return [...present(secret.name, `${path}.secret.name`), ...validateItems(secret.items ?? [], `${path}.secret`)]
  }
  if (configMap) {
    const at = `${path}.configMap`
    return [...present(configMap.name, `${at}.name`), ...validateItems(configMap.items ?? [], at)]
  }
  if (downwardAPI) return validateDownward(downwardAPI.items ?? [], `${path}.downwardAPI`)
  if (token) {
    const at = `${path}.serviceAccountToken`
    return [
      ...validateTokenDuration(token.expirationSeconds, `${at}.expirationSeconds`),
      ...(token.path ? validateFilePath(token.path, `${at}.path`) : [required(`${at}.path`)]),
    ]
  }
  return []
}

function pathsOf(projection: VolumeProjection): readonly string[] {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle } = projection
  const items = [...(secret?.items ?? []), ...(configMap?.items ?? []), ...(downwardAPI?.items ?? [])]
  return [...items.map(({ path }) => path), serviceAccountToken?.path ?? '', clusterTrustBundle?.path ?? '']
}

function validateCsi(source: CSIVolumeSource, path: string): readonly FieldError[] {
  const secret = source.nodePublishSecretRef
  return [
    ...validateDriverName(source.driver, `${path}.driver`),
    ...(secret === undefined ? [] : present(secret.name, `${path}.nodePublishSecretRef.name`)),
  ]
}

function validateEphemeral(source: EphemeralVolumeSource, name: string, pod: Pod, path: string): readonly FieldError[] {
  const template = source.volumeClaimTemplate
  const at = `${path}.volumeClaimTemplate`
  if (template === undefined) return [required(at)]
  const { labels, annotations, ...others } = template.metadata ?? {}
  const claimName = `${pod.metadata.name}-${name}`
  return [
    ...validateLabels(labels, `${at}.metadata.labels`),
    ...validateAnnotations(annotations, `${at}.metadata.annotations`),
    ...Object.keys(others).map((field) => forbidden(`${at}.metadata.${field}`, 'cannot be set')),
    ...validateClaimSpec(template.spec, `${at}.spec`),
    ...(pod.metadata.name &&
    isSubdomain(claimName).length > 0 &&
    isSubdomain(pod.metadata.name).length === 0 &&
    isLabel(name).length === 0
      ? [
          invalid(
            'spec.volumes.name',
            name,
            `PVC name ${JSON.stringify(claimName)}: ${isSubdomain(claimName).join(', ')}`,
          ),
        ]
      : []),
  ]
}

function present(value: string | undefined, path: string): readonly FieldError[] {
  return value ? [] : [required(path)]
}
