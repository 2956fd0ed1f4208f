// Which empty values mean something? A plain field that is empty is the same as an absent one and is not stored;
// a field that is a pointer in Go keeps its empty value (`storageClassName: ""`, `attachRequired: false`).

export function keepsEmpty(message: string, field: string): boolean {
  return pointers.get(message)?.has(field) === true
}

const flags: Readonly<Record<string, string>> = {
  'authentication.TokenRequestSpec': 'expirationSeconds',
  'coordination.LeaseSpec': 'holderIdentity leaseDurationSeconds leaseTransitions strategy preferredHolder',
  'core.AppArmorProfile': 'localhostProfile',
  'core.AzureDiskVolumeSource': 'cachingMode fsType readOnly kind',
  'core.AzureFilePersistentVolumeSource': 'secretNamespace',
  'core.CSIVolumeSource': 'readOnly fsType',
  'core.ClusterTrustBundleProjection': 'name signerName optional',
  'core.ConfigMap': 'immutable',
  'core.ConfigMapEnvSource': 'optional',
  'core.ConfigMapKeySelector': 'optional',
  'core.ConfigMapProjection': 'optional',
  'core.ConfigMapVolumeSource': 'defaultMode optional',
  'core.Container': 'restartPolicy',
  'core.ContainerStatus': 'started stopSignal',
  'core.DownwardAPIVolumeFile': 'mode',
  'core.DownwardAPIVolumeSource': 'defaultMode',
  'core.EphemeralContainerCommon': 'restartPolicy',
  'core.FCVolumeSource': 'lun',
  'core.FileKeySelector': 'optional',
  'core.GRPCAction': 'service',
  'core.GlusterfsPersistentVolumeSource': 'endpointsNamespace',
  'core.HostPathVolumeSource': 'type',
  'core.ISCSIPersistentVolumeSource': 'initiatorName',
  'core.ISCSIVolumeSource': 'initiatorName',
  'core.KeyToPath': 'mode',
  'core.Lifecycle': 'stopSignal',
  'core.LocalVolumeSource': 'fsType',
  'core.NodeFeatures': 'supplementalGroupsPolicy',
  'core.NodeRuntimeHandlerFeatures': 'recursiveReadOnlyMounts userNamespaces',
  'core.NodeSwapStatus': 'capacity',
  'core.PersistentVolumeClaimSpec': 'storageClassName volumeMode volumeAttributesClassName',
  'core.PersistentVolumeClaimStatus': 'currentVolumeAttributesClassName',
  // An empty capacity is refused anyway; kept, the refusal can show it.
  'core.PersistentVolumeSpec': 'capacity volumeMode volumeAttributesClassName',
  'core.PodCertificateProjection': 'maxExpirationSeconds',
  'core.PodDNSConfigOption': 'value',
  'core.PodResourceClaim': 'resourceClaimName resourceClaimTemplateName',
  'core.PodResourceClaimStatus': 'resourceClaimName',
  'core.PodSecurityContext':
    'runAsUser runAsNonRoot fsGroup runAsGroup fsGroupChangePolicy supplementalGroupsPolicy seLinuxChangePolicy',
  'core.PodSpec':
    'terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken priority shareProcessNamespace ' +
    'runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers hostnameOverride',
  'core.Probe': 'terminationGracePeriodSeconds',
  'core.ProjectedVolumeSource': 'defaultMode',
  'core.SeccompProfile': 'localhostProfile',
  'core.Secret': 'immutable',
  'core.SecretEnvSource': 'optional',
  'core.SecretKeySelector': 'optional',
  'core.SecretProjection': 'optional',
  'core.SecretVolumeSource': 'defaultMode optional',
  'core.SecurityContext':
    'privileged runAsUser runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation runAsGroup procMount',
  'core.ServiceAccount': 'automountServiceAccountToken',
  'core.ServiceAccountTokenProjection': 'expirationSeconds',
  'core.Toleration': 'tolerationSeconds',
  'core.TopologySpreadConstraint': 'minDomains nodeAffinityPolicy nodeTaintsPolicy',
  'core.TypedLocalObjectReference': 'apiGroup',
  'core.TypedObjectReference': 'apiGroup namespace',
  'core.VolumeMount': 'mountPropagation recursiveReadOnly',
  'core.VolumeMountStatus': 'recursiveReadOnly',
  'core.WindowsSecurityContextOptions': 'gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess',
  'meta.DeleteOptions':
    'gracePeriodSeconds orphanDependents propagationPolicy ignoreStoreReadErrorWithClusterBreakingPotential',
  'meta.ListMeta': 'remainingItemCount',
  'meta.ObjectMeta': 'deletionGracePeriodSeconds',
  'meta.OwnerReference': 'controller blockOwnerDeletion',
  'meta.Preconditions': 'uid resourceVersion',
  'storage.CSIDriverSpec':
    'attachRequired podInfoOnMount storageCapacity fsGroupPolicy requiresRepublish seLinuxMount ' +
    'nodeAllocatableUpdatePeriodSeconds serviceAccountTokenInSecrets',
  'storage.StorageClass': 'reclaimPolicy allowVolumeExpansion volumeBindingMode',
  'storage.TokenRequest': 'expirationSeconds',
  'storage.VolumeAttachmentSource': 'persistentVolumeName',
  'storage.VolumeError': 'errorCode',
  'storage.VolumeNodeResources': 'count',
}

const pointers: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(flags).map(([message, fields]) => [message, new Set(fields.split(' '))]),
)
