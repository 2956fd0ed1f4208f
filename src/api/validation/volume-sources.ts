// Is a volume source right? The sources that pods and persistent volumes share; what only pods have is in
// pod-volumes.ts.
import { invalid, notSupported, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
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
} from '../generated/types.ts'
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
    ...(!source.path.startsWith('/') ? [invalid(`${path}.path`, source.path, 'must be an absolute path')] : []),
  ]
}

export function validateIscsi(
  source: ISCSIVolumeSource | ISCSIPersistentVolumeSource,
  path: string,
  inVolume = false,
): readonly FieldError[] {
  const { targetPortal, iqn, lun, secretRef, initiatorName } = source
  const chap = source.chapAuthDiscovery === true || source.chapAuthSession === true
  return [
    ...present(targetPortal, `${path}.targetPortal`),
    ...present(iqn, `${path}.iqn`),
    ...(iqn ? validateQualifiedIscsi(iqn, `${path}.iqn`, inVolume) : []),
    ...logicalUnit(lun, `${path}.lun`),
    ...(chap && secretRef === undefined ? [required(`${path}.secretRef`)] : []),
    ...(inVolume && secretRef !== undefined && !secretRef.name ? [required(`${path}.secretRef.name`)] : []),
    ...(initiatorName === undefined ? [] : validateQualifiedIscsi(initiatorName, `${path}.initiatorname`, inVolume)),
  ]
}

export function validateFc(source: FCVolumeSource, path: string): readonly FieldError[] {
  const names = source.targetWWNs ?? []
  const ids = source.wwids ?? []
  const at = `${path}.targetWWNs`
  if (names.length === 0) {
    return ids.length === 0 ? [required(at, 'must specify either targetWWNs or wwids, but not both')] : []
  }
  const lun = `${path}.lun`
  return [
    ...(ids.length > 0 ? [invalid(at, names, 'targetWWNs and wwids can not be specified simultaneously')] : []),
    ...(source.lun === undefined
      ? [required(lun, 'lun is required if targetWWNs is specified')]
      : logicalUnit(source.lun, lun)),
  ]
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
    const taken = namespace.endsWith('.kubernetes.io') || namespace.endsWith('.k8s.io')
    return taken ? [invalid(`${path}.options[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved')] : []
  })
  return [...present(source.driver, `${path}.driver`), ...reserved]
}

export function validateCsiVolume(source: CSIPersistentVolumeSource, path: string): readonly FieldError[] {
  // Kubernetes does not look at the reference for staging.
  const references = [
    'controllerPublishSecretRef',
    'controllerExpandSecretRef',
    'nodePublishSecretRef',
    'nodeExpandSecretRef',
  ] as const
  return [
    ...validateDriverName(source.driver, `${path}.driver`),
    ...present(source.volumeHandle, `${path}.volumeHandle`),
    ...references.flatMap((name) => validateSecretReference(source[name], `${path}.${name}`)),
  ]
}

/** Kubernetes looks only as far as this: what follows the prefix, and no closer at the letters. */
const iscsiNames: Readonly<Record<string, RegExp>> = {
  iqn: /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9-.]+)(:[^,;*&$|\s]+)$/,
  eui: /^eui.[a-zA-Z0-9]{16}$/,
  naa: /^naa.[a-zA-Z0-9]{32}$/,
}

function validateQualifiedIscsi(name: string, path: string, inVolume: boolean): readonly FieldError[] {
  const form = iscsiNames[name.slice(0, 3)]
  if (form?.test(name)) return []
  const hint = form === undefined && !inVolume ? ' starting with iqn, eui, or naa' : ''
  return [invalid(path, name, `must be valid format${hint}`)]
}

function logicalUnit(unit: number, path: string): readonly FieldError[] {
  return unit < 0 || unit > 255 ? [invalid(path, unit, inRange(0, 255))] : []
}

function present(value: string | undefined, path: string): readonly FieldError[] {
  return value ? [] : [required(path)]
}
