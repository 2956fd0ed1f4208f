// What is allowed but unwise? Kubernetes accepts it and says a word; kubectl prints that word.
import { annotations, labels } from '../annotations.ts'
import { unheldWishes } from '../pod-promises.ts'
import { tryParseQuantity } from '../quantity.ts'
import type {
  CSIDriver,
  CSIStorageCapacity,
  NodeSelectorTerm,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  Pod,
  StorageClass,
  Volume,
} from '../generated/types.ts'

const oldLabels: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  [labels.betaRegion]: 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  [labels.betaZone]: 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
}

/** Sources that nothing mounts any more, and since when. `in` is what the warning calls the field. */
const oldSources: Readonly<Record<string, { readonly text: string; readonly in?: string; readonly podsOnly?: true }>> =
  {
    cephfs: { text: 'deprecated in v1.28, non-functional in v1.31+' },
    flocker: { text: 'deprecated in v1.22, non-functional in v1.25+', podsOnly: true },
    gitRepo: { text: 'deprecated in v1.11, and disabled by default in v1.33+' },
    glusterfs: { text: 'deprecated in v1.25, non-functional in v1.26+' },
    photonPersistentDisk: { text: 'deprecated in v1.11, non-functional in v1.16+' },
    quobyte: { text: 'deprecated in v1.22, non-functional in v1.25+', podsOnly: true },
    rbd: { text: 'deprecated in v1.28, non-functional in v1.31+' },
    scaleIO: { text: 'deprecated in v1.16, non-functional in v1.22+' },
    storageos: { text: 'deprecated in v1.22, non-functional in v1.25+', in: 'storageOS' },
  }

const oldClass = 'deprecated since v1.8; use "storageClassName" attribute instead'
const oldOptions = 'deprecated since v1.31; use "mountOptions" attribute instead'
const optionsAnnotation = 'volume.beta.kubernetes.io/mount-options'

export function claimWarnings({ metadata, spec }: PersistentVolumeClaim): readonly string[] {
  return [...ofAnnotation(metadata.annotations, annotations.betaStorageClass, oldClass), ...ofClaimSpec(spec, 'spec')]
}

function ofClaimSpec(spec: PersistentVolumeClaimSpec, path: string): readonly string[] {
  return (['requests', 'limits'] as const).flatMap((list) =>
    fraction(spec.resources?.[list]?.['storage'], `${path}.resources.${list}[storage]`),
  )
}

export function volumeWarnings({ metadata, spec }: PersistentVolume): readonly string[] {
  const recycled =
    'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.'
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return [
    ...ofAnnotation(metadata.annotations, annotations.betaStorageClass, oldClass),
    ...ofAnnotation(metadata.annotations, optionsAnnotation, oldOptions),
    ...(spec.persistentVolumeReclaimPolicy === 'Recycle' ? [recycled] : []),
    ...terms.flatMap((term, index) => ofTerm(term, `spec.nodeAffinity.required.nodeSelectorTerms[${index}]`)),
    ...ofSources(spec, 'spec', false),
  ]
}

export function storageClassWarnings({ allowedTopologies = [] }: StorageClass): readonly string[] {
  return allowedTopologies.flatMap(({ matchLabelExpressions = [] }, term) =>
    matchLabelExpressions.flatMap(({ key }, index) => {
      const text = oldLabels[key]
      return text === undefined ? [] : [`allowedTopologies[${term}].matchLabelExpressions[${index}].key: ${text}`]
    }),
  )
}

export function capacityWarnings({ nodeTopology }: CSIStorageCapacity): readonly string[] {
  const expressions = nodeTopology?.matchExpressions ?? []
  return [
    ...expressions.flatMap(({ key }, index) => ofLabel(key, `nodeTopology.matchExpressions[${index}].key`)),
    ...Object.keys(nodeTopology?.matchLabels ?? {}).flatMap((key) =>
      oldLabels[key] === undefined ? [] : [`nodeTopology.matchLabels.${key}: ${oldLabels[key]}`],
    ),
  ]
}

export function driverWarnings({ spec }: CSIDriver): readonly string[] {
  if ((spec.tokenRequests ?? []).length === 0 || spec.serviceAccountTokenInSecrets !== undefined) return []
  const advice = 'set to true to prevent possible logging of tokens in volume attributes'
  return [`spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, ${advice}`]
}

export function podWarnings(pod: Pod): readonly string[] {
  const { spec } = pod
  const containers = [
    ...(spec.initContainers ?? []).map((each, index) => [each, `spec.initContainers[${index}]`] as const),
    ...(spec.containers ?? []).map((each, index) => [each, `spec.containers[${index}]`] as const),
  ]
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const at = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  return [
    ...Object.keys(spec.nodeSelector ?? {}).flatMap((key) =>
      oldLabels[key] === undefined ? [] : [`spec.nodeSelector[${key}]: ${oldLabels[key]}`],
    ),
    ...terms.flatMap((term, index) => ofTerm(term, `${at}[${index}]`)),
    ...(spec.volumes ?? []).flatMap((volume, index) => ofPodVolume(volume, `spec.volumes[${index}]`)),
    ...(spec.volumes ?? []).flatMap(overlaps),
    ...(spec.imagePullSecrets ?? []).flatMap(({ name }, index) =>
      name ? [] : [`spec.imagePullSecrets[${index}].name: invalid empty name ""`],
    ),
    ...containers.flatMap(([{ resources }, path]) =>
      ['memory', 'ephemeral-storage'].flatMap((name) => [
        ...fraction(resources?.limits?.[name], `${path}.resources.limits[${name}]`),
        ...fraction(resources?.requests?.[name], `${path}.resources.requests[${name}]`),
      ]),
    ),
    ...unheldWishes(pod),
  ]
}

function ofPodVolume(volume: Volume, path: string): readonly string[] {
  const template = volume.ephemeral?.volumeClaimTemplate?.spec
  return [
    ...ofSources(volume, path, true),
    ...(template === undefined ? [] : ofClaimSpec(template, `${path}.ephemeral.volumeClaimTemplate.spec`)),
  ]
}

/** Files of one volume that take each other's place. */
function overlaps({ name, secret, configMap, downwardAPI, projected }: Volume): readonly string[] {
  const warn = (what: string, items: readonly { readonly path: string }[] = []) => {
    const clashes = items.flatMap(({ path }, index) =>
      items.slice(0, index).flatMap((earlier) => (isWithin(path, earlier.path) ? [[earlier.path, path]] : [])),
    )
    return clashes.map(
      ([first, second]) =>
        `volume ${JSON.stringify(name)} (${what}): overlapping paths: ${JSON.stringify(second)} with ${JSON.stringify(first)}`,
    )
  }
  const empty = (projected?.sources ?? []).filter((source) => Object.keys(source).length === 0)
  return [
    ...warn(`Secret ${JSON.stringify(secret?.secretName ?? '')}`, secret?.items),
    ...warn(`ConfigMap ${JSON.stringify(configMap?.name ?? '')}`, configMap?.items),
    ...warn('DownwardAPI', downwardAPI?.items),
    ...empty.map(() => `volume ${JSON.stringify(name)} (Projected) has no sources provided`),
  ]
}

function isWithin(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}/`) || other.startsWith(`${path}/`)
}

const oldSourceNames = Object.keys(oldSources)

function ofSources(source: object, path: string, inPod: boolean): readonly string[] {
  const warnings: string[] = []
  for (const name of oldSourceNames) {
    if (!Object.hasOwn(source, name)) continue
    const { text, in: field = name, podsOnly } = oldSources[name]!
    if (inPod || !podsOnly) warnings.push(`${path}.${field}: ${text}`)
  }
  return warnings
}

function ofTerm({ matchExpressions = [] }: NodeSelectorTerm, path: string): readonly string[] {
  return matchExpressions.flatMap(({ key }, index) => ofLabel(key, `${path}.matchExpressions[${index}].key`))
}

function ofLabel(key: string, path: string): readonly string[] {
  return oldLabels[key] === undefined ? [] : [`${path}: ${key} is ${oldLabels[key]}`]
}

function ofAnnotation(
  given: Readonly<Record<string, string>> | undefined,
  key: string,
  text: string,
): readonly string[] {
  return given?.[key] === undefined ? [] : [`metadata.annotations[${key}]: ${text}`]
}

/** Bytes come whole. */
function fraction(amount: string | undefined, path: string): readonly string[] {
  const nanos = amount === undefined ? 0n : (tryParseQuantity(amount)?.nanos ?? 0n)
  if (nanos % 1_000_000_000n === 0n) return []
  return [`${path}: fractional byte value ${JSON.stringify(amount)} is invalid, must be an integer`]
}
