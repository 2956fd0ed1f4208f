// What does the server fill in inside a volume source? The same for pods and persistent volumes.
import type {
  AzureDiskVolumeSource,
  DownwardAPIVolumeFile,
  HostPathVolumeSource,
  PersistentVolumeSource,
  VolumeProjection,
  VolumeSource,
} from '../generated/types.ts'

/** 0644, as Kubernetes writes it. */
const fileMode = 420

/** Sources that pods and persistent volumes share. */
export function defaultVolumeSource<T extends PersistentVolumeSource | VolumeSource>(source: T): T {
  const { hostPath, iscsi, rbd, azureDisk, scaleIO } = source
  return {
    ...source,
    ...(hostPath && { hostPath: defaultHostPath(hostPath) }),
    ...(iscsi && { iscsi: { ...iscsi, iscsiInterface: iscsi.iscsiInterface || 'default' } }),
    ...(rbd && {
      rbd: { ...rbd, pool: rbd.pool || 'rbd', user: rbd.user || 'admin', keyring: rbd.keyring || '/etc/ceph/keyring' },
    }),
    ...(azureDisk && { azureDisk: defaultAzureDisk(azureDisk) }),
    ...(scaleIO && {
      scaleIO: {
        ...scaleIO,
        storageMode: scaleIO.storageMode || 'ThinProvisioned',
        fsType: scaleIO.fsType || 'xfs',
      },
    }),
  }
}

/** Sources that only pods have. */
export function defaultPodSource<T extends VolumeSource>(volume: T): T {
  const { secret, configMap, downwardAPI, projected, image } = volume
  return {
    ...volume,
    ...(secret && { secret: { defaultMode: fileMode, ...secret } }),
    ...(configMap && { configMap: { defaultMode: fileMode, ...configMap } }),
    ...(downwardAPI && {
      downwardAPI: {
        defaultMode: fileMode,
        ...downwardAPI,
        ...(downwardAPI.items && { items: downwardAPI.items.map(defaultFile) }),
      },
    }),
    ...(projected && {
      projected: {
        defaultMode: fileMode,
        ...projected,
        ...(projected.sources && { sources: projected.sources.map(defaultProjection) }),
      },
    }),
    ...(image && { image: { pullPolicy: pullPolicyOf(image.reference ?? ''), ...image } }),
  }
}

/** An image without a tag, or tagged latest, is asked for every time. */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image === '' || image.includes('@')) return 'IfNotPresent'
  const name = image.slice(image.lastIndexOf('/') + 1)
  const colon = name.indexOf(':')
  return colon < 0 || name.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent'
}

function defaultHostPath(hostPath: HostPathVolumeSource): HostPathVolumeSource {
  return { type: '', ...hostPath }
}

function defaultAzureDisk(disk: AzureDiskVolumeSource): AzureDiskVolumeSource {
  return { cachingMode: 'ReadWrite', kind: 'Shared', fsType: 'ext4', readOnly: false, ...disk }
}

function defaultFile(file: DownwardAPIVolumeFile): DownwardAPIVolumeFile {
  const { fieldRef, resourceFieldRef } = file
  return {
    ...file,
    ...(fieldRef && { fieldRef: { ...fieldRef, apiVersion: fieldRef.apiVersion || 'v1' } }),
    ...(resourceFieldRef && { resourceFieldRef: { divisor: '0', ...resourceFieldRef } }),
  }
}

function defaultProjection(source: VolumeProjection): VolumeProjection {
  const { downwardAPI, serviceAccountToken } = source
  return {
    ...source,
    ...(downwardAPI?.items && { downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(defaultFile) } }),
    ...(serviceAccountToken && { serviceAccountToken: { expirationSeconds: 3600, ...serviceAccountToken } }),
  }
}
