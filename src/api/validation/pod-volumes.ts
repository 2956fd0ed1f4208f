// Are the volumes of a pod right? Names, exactly one source each, and what every source demands.
import { duplicate, forbidden, invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { tryParseQuantity } from '../quantity.ts'
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
} from '../generated/types.ts'
import { validateClaimSpec } from './claim.ts'
import { validateDriverName, validateFilePath, validateTokenDuration } from './common.ts'
import { isLabel, isSubdomain } from './formats.ts'
import { sourceNamesIn, validateInTreeSource } from './in-tree-sources.ts'
import { checked, repeated, validateAnnotations, validateLabels } from './metadata.ts'
import { validateFieldReference, validateResourceReference } from './references.ts'
import { validateFc, validateFlex, validateHostPath, validateIscsi, validateNfs } from './volume-sources.ts'

const sourceNames = sourceNamesIn('core.VolumeSource', [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'flexVolume',
  'configMap',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'storageos',
  'projected',
  'scaleIO',
  'csi',
  'ephemeral',
  'image',
])
const fieldPaths = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid']
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
    ...validateSource(volume, first, pod, path),
    ...others.map((name) => forbidden(`${path}.${name}`, 'may not specify more than 1 volume type')),
  ]
}

function validateSource(volume: Volume, name: string, pod: Pod, path: string): readonly FieldError[] {
  const { emptyDir, secret, configMap, downwardAPI, projected, csi, ephemeral } = volume
  const at = `${path}.${name}`
  if (name === 'emptyDir') return validateSizeLimit(emptyDir?.sizeLimit, at)
  if (name === 'hostPath' && volume.hostPath) return validateHostPath(volume.hostPath, at)
  if (name === 'nfs' && volume.nfs) return validateNfs(volume.nfs, at)
  if (name === 'iscsi' && volume.iscsi) return validateIscsi(volume.iscsi, at)
  if (name === 'fc' && volume.fc) return validateFc(volume.fc, at)
  if (name === 'flexVolume' && volume.flexVolume) return validateFlex(volume.flexVolume, at)
  if (name === 'csi' && csi) return validateCsi(csi, at)
  if (name === 'ephemeral' && ephemeral) return validateEphemeral(ephemeral, volume.name, pod, path)
  if (name === 'projected' && projected) return validateProjected(projected, pod, at)
  if (name === 'secret' && secret) {
    return [...present(secret.secretName, `${at}.secretName`), ...validateFiles(secret, at)]
  }
  if (name === 'configMap' && configMap) {
    return [...present(configMap.name, `${at}.name`), ...validateFiles(configMap, at)]
  }
  if (name === 'downwardAPI' && downwardAPI) {
    const { items = [], defaultMode } = downwardAPI
    return [...validateMode(defaultMode, `${at}.defaultMode`), ...validateDownward(items, at)]
  }
  return validateInTreeSource(name, volume[name as keyof VolumeSource], path, false)
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

/** Kubernetes names no index here: every file is told by the path of the list's owner. */
function validateDownward(items: readonly DownwardAPIVolumeFile[], path: string): readonly FieldError[] {
  return items.flatMap((file) => [
    ...(file.path ? validateFilePath(file.path, `${path}.path`) : [required(`${path}.path`)]),
    ...validateFileSource(file, path),
    ...validateMode(file.mode, `${path}.mode`),
  ])
}

function validateFileSource(file: DownwardAPIVolumeFile, path: string): readonly FieldError[] {
  const { fieldRef, resourceFieldRef: resource } = file
  if (fieldRef !== undefined) {
    const both = 'fieldRef and resourceFieldRef can not be specified simultaneously'
    return [
      ...validateFieldReference(fieldRef, fieldPaths, `${path}.fieldRef`),
      ...(resource === undefined ? [] : [invalid(path, 'resource', both)]),
    ]
  }
  if (resource === undefined) return [required(path, 'one of fieldRef and resourceFieldRef is required')]
  return validateResourceReference(resource, true, `${path}.resourceFieldRef`)
}

function validateProjected(source: ProjectedVolumeSource, pod: Pod, path: string): readonly FieldError[] {
  const seen = new Set<string>()
  const conflicts = (files: readonly string[], name: (file: string) => string): readonly FieldError[] =>
    files.flatMap((file) => {
      if (file === '') return []
      if (seen.has(file)) return [invalid(path, name(file), 'conflicting duplicate paths')]
      seen.add(file)
      return []
    })
  return [
    ...validateMode(source.defaultMode, `${path}.defaultMode`),
    ...(source.sources ?? []).flatMap((projection, index) => {
      const at = `${path}.sources[${index}]`
      const several = Object.keys(projection).length > 1
      const { secret, configMap, downwardAPI } = projection
      return [
        ...validateProjection(projection, path, at),
        ...conflicts(pathsOf(secret?.items), () => secret?.name ?? ''),
        ...conflicts(pathsOf(configMap?.items), () => configMap?.name ?? ''),
        ...conflicts(pathsOf(downwardAPI?.items), (file) => file),
        ...(several ? [forbidden(at, 'may not specify more than 1 volume type per source')] : []),
        ...(projection.serviceAccountToken !== undefined && !pod.spec.serviceAccountName
          ? [forbidden(`${at}.serviceAccountToken`, 'must not be specified when serviceAccountName is not set')]
          : []),
      ]
    }),
  ]
}

/** `volume` is the path of the projected volume: that is where Kubernetes says a token's path is missing. */
function validateProjection(projection: VolumeProjection, volume: string, path: string): readonly FieldError[] {
  const { secret, configMap, downwardAPI, serviceAccountToken: token } = projection
  const errors: FieldError[] = []
  for (const [name, source] of [['secret', secret] as const, ['configMap', configMap] as const]) {
    if (source === undefined) continue
    const at = `${path}.${name}`
    errors.push(...present(source.name, `${at}.name`), ...validateItems(source.items ?? [], at))
  }
  if (downwardAPI) errors.push(...validateDownward(downwardAPI.items ?? [], `${path}.downwardAPI`))
  if (token) {
    errors.push(
      ...validateTokenDuration(token.expirationSeconds, `${path}.serviceAccountToken.expirationSeconds`),
      ...(token.path ? validateFilePath(token.path, `${volume}.path`) : [required(`${volume}.path`)]),
    )
  }
  return errors
}

function pathsOf(items: readonly { readonly path: string }[] = []): readonly string[] {
  return items.map(({ path }) => path)
}

function validateCsi(source: CSIVolumeSource, path: string): readonly FieldError[] {
  const secret = source.nodePublishSecretRef
  return [
    ...validateDriverName(source.driver, `${path}.driver`),
    ...(secret === undefined ? [] : present(secret.name, `${path}.nodePublishSecretRef.name`)),
  ]
}

function validateEphemeral(
  source: EphemeralVolumeSource,
  name: string,
  pod: Pod,
  volume: string,
): readonly FieldError[] {
  const template = source.volumeClaimTemplate
  const at = `${volume}.ephemeral.volumeClaimTemplate`
  if (template === undefined) return [required(at)]
  const { labels, annotations } = template.metadata ?? {}
  return [
    ...validateLabels(labels, `${at}.metadata.labels`),
    ...validateAnnotations(annotations, `${at}.metadata.annotations`),
    ...templateMembers
      .filter((member) => Object.hasOwn(template.metadata ?? {}, member))
      // Kubernetes makes this word out of Go's.
      .map((member) => forbidden(`${at}.metadata.${member === 'uid' ? 'uID' : member}`, 'cannot be set')),
    ...validateClaimSpec(template.spec, `${at}.spec`),
    ...validateClaimName(`${pod.metadata.name}-${name}`, name, pod, `${volume}.name`),
  ]
}

/** What a template leaves to whoever makes the claim. */
const templateMembers = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'ownerReferences',
  'finalizers',
  'managedFields',
]

/** The claim will be called like the pod and the volume; when each is right, both together may still be too long. */
function validateClaimName(claim: string, volume: string, pod: Pod, path: string): readonly FieldError[] {
  const { name } = pod.metadata
  // A pod without a name is refused for that alone.
  if (!name || isSubdomain(name).length > 0 || isLabel(volume).length > 0) return []
  return isSubdomain(claim).map((why) => invalid(path, volume, `PVC name ${JSON.stringify(claim)}: ${why}`))
}

function present(value: string | undefined, path: string): readonly FieldError[] {
  return value ? [] : [required(path)]
}
