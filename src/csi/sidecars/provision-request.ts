// What is asked of the driver for a claim, and what becomes of its answer? The CreateVolume request and the
// PersistentVolume, both built from the same order (SIDE-8, SIDE-18, SIDE-19).
import { refused } from '../../volume/effect.ts'
import { annotations, finalizers } from '../../api/annotations.ts'
import { annotation } from '../../api/meta.ts'
import { bytesOfQuantity, quantityOfBytes } from '../../api/quantity.ts'
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import { idProblem, mapProblem, topologyProblem } from '../answers.ts'
import type { CreateVolumeRequest, DriverVolume } from '../controller.ts'
import type { Capability, Strings } from '../values.ts'
import { controllerAccessMode } from '../values.ts'
import { readSecret } from './job.ts'
import type { JobDeps } from './job.ts'
import { resolveSecret, splitParameters } from './parameters.ts'
import type { SecretUse, SplitParameters } from './parameters.ts'
import { affinityOf } from './topology.ts'
import type { Requirements } from './topology.ts'

/** Everything one claim's volume depends on; kept until the driver has answered, so that retries are identical. */
export interface Order {
  readonly claim: PersistentVolumeClaim
  readonly storageClass: StorageClass
  readonly volumeName: string
  readonly selectedNode: string | undefined
  readonly parameters: SplitParameters
  readonly request: CreateVolumeRequest
}

export interface OrderOptions {
  /** Tell the driver the names of claim and volume, too (SIDE-11). */
  readonly extraMetadata: boolean
  readonly defaultFsType: string
  /** WART-22: written into the attributes of every volume unless empty. */
  readonly identity: string
}

export const volumeNameFor = (claim: PersistentVolumeClaim) => `pvc-${claim.metadata.uid}`

export function selectedNodeOf(claim: PersistentVolumeClaim): string | undefined {
  const name = annotation(claim, annotations.selectedNode) ?? annotation(claim, annotations.alphaSelectedNode)
  return name === '' ? undefined : name
}

export async function writeOrder(
  deps: JobDeps,
  facts: {
    readonly claim: PersistentVolumeClaim
    readonly storageClass: StorageClass
    readonly source: CreateVolumeRequest['source']
    readonly requirements: Requirements | undefined
  },
  options: OrderOptions,
  signal: AbortSignal,
): Promise<Order> {
  const { claim, storageClass, source, requirements } = facts
  const volumeName = volumeNameFor(claim)
  const parameters = splitParameters(storageClass.parameters)
  const secretRef = resolveSecret(parameters.secrets.provisioner, { volumeName, claim })
  const mutableParameters = await mutable(deps, claim, signal)
  const request: CreateVolumeRequest = {
    name: volumeName,
    requiredBytes: bytesOfQuantity(claim.spec?.resources?.requests?.['storage'] ?? '0'),
    capabilities: capabilitiesFor(deps, claim, storageClass, fsTypeOf(parameters, claim, options)),
    parameters: { ...parameters.driver, ...(options.extraMetadata ? metadataParameters(claim, volumeName) : {}) },
    // An order is written before the driver is asked: nothing was tried.
    secrets: await readSecret(deps.client, secretRef, signal, 'untried'),
    ...(mutableParameters && { mutableParameters }),
    ...(source && { source }),
    ...(requirements && { topology: requirements }),
  }
  return { claim, storageClass, volumeName, selectedNode: selectedNodeOf(claim), parameters, request }
}

/** SIDE-18: what must not be kept. */
export function answerProblem({ request }: Order, volume: DriverVolume): string | undefined {
  if (volume.capacityBytes !== 0n && volume.capacityBytes < request.requiredBytes) {
    return `created volume capacity ${volume.capacityBytes} less than requested capacity ${request.requiredBytes}`
  }
  if (request.source && !volume.source) return 'volume content source missing'
  return (
    idProblem('volume id', volume.volumeId) ??
    mapProblem('volume context', volume.context) ??
    topologyProblem(volume.topology)
  )
}

export function volumeObject(
  order: Order,
  volume: DriverVolume,
  driver: string,
  options: OrderOptions,
): PersistentVolume {
  const { claim, storageClass, parameters, volumeName, request } = order
  const secret = (use: SecretUse) => resolveSecret(parameters.secrets[use], { volumeName, claim })
  const refs = {
    controllerPublishSecretRef: secret('controllerPublish'),
    nodeStageSecretRef: secret('nodeStage'),
    nodePublishSecretRef: secret('nodePublish'),
    controllerExpandSecretRef: secret('controllerExpand'),
    nodeExpandSecretRef: secret('nodeExpand'),
  }
  const block = claim.spec?.volumeMode === 'Block'
  const fsType = fsTypeOf(parameters, claim, options)
  const affinity = affinityOf(volume.topology)
  const attributes: Strings = {
    ...(options.identity === '' ? {} : { [annotations.csiProvisionerIdentity]: options.identity }),
    ...volume.context,
  }
  const capacity = volume.capacityBytes === 0n ? request.requiredBytes : volume.capacityBytes
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeName,
      annotations: { [annotations.provisionedBy]: storageClass.provisioner, ...secretAnnotations(secret) },
      finalizers: [finalizers.externalProvisioner],
    },
    spec: {
      capacity: { storage: quantityOfBytes(capacity) },
      accessModes: claim.spec?.accessModes ?? [],
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      storageClassName: storageClass.metadata.name,
      volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
      csi: {
        driver,
        volumeHandle: volume.volumeId,
        ...(block || fsType === '' ? {} : { fsType }),
        volumeAttributes: attributes,
        ...Object.fromEntries(Object.entries(refs).filter(([, ref]) => ref !== undefined)),
      },
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        name: claim.metadata.name,
        ...(claim.metadata.namespace !== undefined && { namespace: claim.metadata.namespace }),
        ...(claim.metadata.uid !== undefined && { uid: claim.metadata.uid }),
        ...(claim.metadata.resourceVersion !== undefined && { resourceVersion: claim.metadata.resourceVersion }),
      },
      ...(storageClass.mountOptions &&
        storageClass.mountOptions.length > 0 && { mountOptions: storageClass.mountOptions }),
      ...(affinity && { nodeAffinity: affinity }),
      ...(claim.spec?.volumeAttributesClassName && { volumeAttributesClassName: claim.spec.volumeAttributesClassName }),
    },
  }
}

function secretAnnotations(
  secret: (use: SecretUse) => { readonly name?: string; readonly namespace?: string } | undefined,
) {
  const deletion = secret('provisioner')
  const modify = secret('controllerModify')
  return {
    [annotations.deletionSecretName]: deletion?.name ?? '',
    [annotations.deletionSecretNamespace]: deletion?.namespace ?? '',
    ...(modify && {
      [annotations.modifySecretName]: modify.name ?? '',
      [annotations.modifySecretNamespace]: modify.namespace ?? '',
    }),
  }
}

/** SIDE-8: one capability per access mode of the claim, each with the mode chosen from that mode alone. */
function capabilitiesFor(
  deps: JobDeps,
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  fsType: string,
): readonly Capability[] {
  const multiWriter = deps.controller.has('SINGLE_NODE_MULTI_WRITER')
  return (claim.spec?.accessModes ?? []).map((mode) => ({
    mode: controllerAccessMode([mode], multiWriter),
    access:
      claim.spec?.volumeMode === 'Block'
        ? { kind: 'block' as const }
        : { kind: 'mount' as const, fsType, mountFlags: storageClass.mountOptions ?? [] },
  }))
}

function fsTypeOf(parameters: SplitParameters, claim: PersistentVolumeClaim, options: OrderOptions): string {
  return claim.spec?.volumeMode === 'Block' ? '' : (parameters.fsType ?? options.defaultFsType)
}

async function mutable(deps: JobDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<Strings | undefined> {
  const name = claim.spec?.volumeAttributesClassName
  if (!name) return undefined
  if (!deps.controller.has('MODIFY_VOLUME'))
    throw refused('NotSupported', `driver ${deps.driver.name} has no volume attributes classes`, 'none')
  const attributes = await deps.client.get('VolumeAttributesClass', { name }, signal)
  if (attributes.driverName !== deps.driver.name) {
    throw refused(
      'ClassForeign',
      `VolumeAttributesClass ${name} is for driver ${attributes.driverName}, not ${deps.driver.name}`,
      'none',
    )
  }
  return attributes.parameters ?? {}
}

function metadataParameters(claim: PersistentVolumeClaim, volumeName: string): Strings {
  return {
    'csi.storage.k8s.io/pvc/name': claim.metadata.name,
    'csi.storage.k8s.io/pvc/namespace': claim.metadata.namespace ?? '',
    'csi.storage.k8s.io/pv/name': volumeName,
  }
}
