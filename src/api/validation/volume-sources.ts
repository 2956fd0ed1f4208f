// Is a volume source right? The sources that pods and persistent volumes share; what only pods have is in
// pod-volumes.ts.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import { jsonFields } from '../schema/schema.ts'
import type {
  CSIPersistentVolumeSource,
  FCVolumeSource,
  FlexPersistentVolumeSource,
  FlexVolumeSource,
  HostPathVolumeSource,
  ISCSIPersistentVolumeSource,
  ISCSIVolumeSource,
  LocalVolumeSource,
  NFSVolumeSource,
} from '../types.ts'
import { validateDriverName, validateNoBacksteps, validateSecretReference } from './common.ts'
import { inRange } from './formats.ts'

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]

export function validateHostPath(source: HostPathVolumeSource, path: string): readonly FieldError[] {
  if (!source.path) return [required(`${path}.path`)]
  const { type } = source
  return [
    ...validateNoBacksteps(source.path, `${path}.path`),
    ...(type === undefined || hostPathTypes.includes(type) ? [] : [notSupported(`${path}.type`, type, hostPathTypes)]),
  ]
}

export function validateNfs(source: NFSVolumeSource, path: string): readonly FieldError[] {
  return [
    ...present(source.server, `${path}.server`),
    ...present(source.path, `${path}.path`),
    ...(source.path && !source.path.startsWith('/')
      ? [invalid(`${path}.path`, source.path, 'must be an absolute path')]
      : []),
  ]
}

export function validateIscsi(
  source: ISCSIVolumeSource | ISCSIPersistentVolumeSource,
  path: string,
): readonly FieldError[] {
  const { targetPortal, iqn, lun, secretRef, initiatorName } = source
  const chap = source.chapAuthDiscovery === true || source.chapAuthSession === true
  return [
    ...present(targetPortal, `${path}.targetPortal`),
    ...present(iqn, `${path}.iqn`),
    ...(iqn ? validateQualifiedIscsi(iqn, `${path}.iqn`) : []),
    ...logicalUnit(lun, `${path}.lun`),
    ...(chap && secretRef === undefined ? [required(`${path}.secretRef`)] : []),
    ...(secretRef !== undefined && !secretRef.name ? [required(`${path}.secretRef.name`)] : []),
    ...(initiatorName === undefined ? [] : validateQualifiedIscsi(initiatorName, `${path}.initiatorname`)),
  ]
}

export function validateFc(source: FCVolumeSource, path: string): readonly FieldError[] {
  const names = source.targetWWNs ?? []
  const ids = source.wwids ?? []
  if (names.length === 0 && ids.length === 0) {
    return [required(`${path}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both')]
  }
  if (names.length > 0 && ids.length > 0) {
    return [invalid(`${path}.targetWWNs`, names, 'targetWWNs and wwids can not be specified simultaneously')]
  }
  if (names.length === 0) return []
  if (source.lun === undefined) return [required(`${path}.lun`, 'lun is required if targetWWNs is specified')]
  return logicalUnit(source.lun, `${path}.lun`)
}

export function validateLocal(source: LocalVolumeSource, path: string): readonly FieldError[] {
  return source.path ? validateNoBacksteps(source.path, `${path}.path`) : [required(`${path}.path`)]
}

export function validateFlex(
  source: FlexVolumeSource | FlexPersistentVolumeSource,
  path: string,
): readonly FieldError[] {
  const reserved = Object.keys(source.options ?? {}).flatMap((key) => {
    const namespace = `.${key.split('/', 1)[0]?.toLowerCase() ?? ''}`
    const taken = key.includes('/') && (namespace.endsWith('.kubernetes.io') || namespace.endsWith('.k8s.io'))
    return taken ? [invalid(`${path}.options[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved')] : []
  })
  return [...present(source.driver, `${path}.driver`), ...reserved]
}

export function validateCsiVolume(source: CSIPersistentVolumeSource, path: string): readonly FieldError[] {
  const references = [
    'controllerPublishSecretRef',
    'nodeStageSecretRef',
    'nodePublishSecretRef',
    'controllerExpandSecretRef',
    'nodeExpandSecretRef',
  ] as const
  return [
    ...validateDriverName(source.driver, `${path}.driver`),
    ...present(source.volumeHandle, `${path}.volumeHandle`),
    ...references.flatMap((name) => validateSecretReference(source[name], `${path}.${name}`)),
  ]
}

/** For sources that no code of ours mounts: every required field must be there. */
export function validateRequiredFields(source: unknown, message: string, path: string): readonly FieldError[] {
  const values = source as Readonly<Record<string, unknown>> // read by the schema before
  const errors: FieldError[] = []
  for (const [name, field] of jsonFields(message)) {
    if (!field.required) continue
    const value = values[name]
    const empty = value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
    if (empty) errors.push(required(`${path}.${name}`))
  }
  const partition = values['partition']
  if (typeof partition === 'number' && (partition < 0 || partition > 255)) {
    errors.push(invalid(`${path}.partition`, partition, inRange(0, 255)))
  }
  return errors
}

function validateQualifiedIscsi(name: string, path: string): readonly FieldError[] {
  const iqn = /^iqn\.\d{4}-\d{2}\.([a-z0-9.-]+)(:[^,;*&$|\s]+)$/.test(name)
  const eui = /^eui\.[0-9a-fA-F]{16}$/.test(name)
  const naa = /^naa\.([0-9a-fA-F]{16}|[0-9a-fA-F]{32})$/.test(name)
  return iqn || eui || naa ? [] : [invalid(path, name, 'must be valid format')]
}

function logicalUnit(unit: number, path: string): readonly FieldError[] {
  return unit < 0 || unit > 255 ? [invalid(path, unit, inRange(0, 255))] : []
}

function present(value: string | undefined, path: string): readonly FieldError[] {
  return value ? [] : [required(path)]
}
