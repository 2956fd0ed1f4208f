// What does `kubectl explain` say about a kind or a field? Short sentences of our own for what users of volumes meet;
// everything else is described by its name.

export function describeMessage(message: string): string {
  return messageTexts[message] ?? `${sentenceOf(message.split('.')[1] ?? message)}.`
}

export function describeField(message: string, field: string): string {
  return fieldTexts[`${message}.${field}`] ?? commonTexts[field] ?? `${sentenceOf(field)}.`
}

/** `volumeLifecycleModes` → "Volume lifecycle modes" */
function sentenceOf(name: string): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(' ')
    .map((word) => (/^[A-Z][a-z]*$/.test(word) ? word.toLowerCase() : word))
  const text = words.join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const messageTexts: Readonly<Record<string, string>> = {
  'core.PersistentVolume': 'A piece of storage with a life of its own, independent of any pod that uses it.',
  'core.PersistentVolumeClaim': 'A user asks for storage; the claim is bound to a volume that satisfies it.',
  'core.PersistentVolumeSpec': 'What the volume is: its size, its storage and how it may be used.',
  'core.PersistentVolumeClaimSpec': 'What kind of volume is wanted.',
  'core.PersistentVolumeStatus': 'Where the volume is in its life; written by the controllers.',
  'core.PersistentVolumeClaimStatus': 'What the claim has got; written by the controllers.',
  'core.Pod': 'Containers that run together on one node and share volumes.',
  'core.PodSpec': 'What the pod runs, where, and which volumes it uses.',
  'core.Container': 'One program of a pod and what it mounts.',
  'core.Volume': 'A named volume of a pod; exactly one source must be set.',
  'core.VolumeMount': 'Where a volume of the pod appears inside a container.',
  'core.Node': 'A machine that runs pods and mounts their volumes.',
  'core.Namespace': 'A scope for names; deleting it deletes everything inside.',
  'core.ConfigMap': 'Plain configuration that pods can mount.',
  'core.Secret': 'Confidential data that pods can mount.',
  'core.ServiceAccount': 'An identity for the programs in a pod.',
  'core.Event': 'A report about an object: what happened, to what, and how often.',
  'events.Event': 'A report about an object: what happened, to what, and how often.',
  'coordination.Lease': 'A right held for a while and renewed, such as leadership or being alive.',
  'storage.StorageClass': 'A kind of storage that can be asked for, and who makes it.',
  'storage.VolumeAttachment': 'The wish to have a volume attached to a node, and whether it is.',
  'storage.CSIDriver': 'What a CSI driver can do and needs.',
  'storage.CSINode': 'The CSI drivers that run on a node.',
  'storage.CSIStorageCapacity': 'How much storage of a class is left in a part of the cluster.',
  'storage.VolumeAttributesClass': 'Parameters of a volume that may change while it is in use.',
  'snapshot.VolumeSnapshot': 'The wish to keep the content of a volume as it is at one moment.',
  'snapshot.VolumeSnapshotContent': 'A snapshot that exists in the storage system.',
  'snapshot.VolumeSnapshotClass': 'A kind of snapshot, and the driver that takes it.',
  'hawser.Operation': 'One operation on a volume: who did what, when, and how it ended.',
  'meta.ObjectMeta': 'What every object has: its name, labels, owners and versions.',
  'meta.ListMeta': 'What every list has: its version and where to continue.',
  'meta.LabelSelector': 'Selects objects by their labels; all conditions must hold.',
  'meta.OwnerReference': 'An object that this one belongs to and is deleted with.',
  'meta.ManagedFieldsEntry': 'Which fields one manager has set, and how.',
  'meta.DeleteOptions': 'How an object is to be deleted.',
  'meta.Status': 'The answer to a request that returns no object.',
  'meta.Time': 'A time as in RFC 3339, whole seconds.',
  'meta.MicroTime': 'A time as in RFC 3339, with microseconds.',
  'resource.Quantity': 'An amount such as 10Gi or 500m.',
  'intstr.IntOrString': 'A number, or a text such as a name or a percentage.',
}

/** Fields that mean the same wherever they stand. */
const commonTexts: Readonly<Record<string, string>> = {
  metadata: 'The name, labels, owners and versions of the object.',
  spec: 'What is wanted.',
  status: 'What is; written by the system.',
  name: 'The name.',
  namespace: 'The namespace.',
  labels: 'Keys and values to select the object by.',
  annotations: 'Keys and values for tools; never used to select.',
  readOnly: 'Whether writing is refused.',
  fsType: 'The filesystem to mount, such as ext4.',
  conditions: 'What has been observed lately.',
  reason: 'One word for machines.',
  message: 'One sentence for people.',
  phase: 'Where the object is in its life.',
  uid: 'The identity of the object, never reused.',
  parameters: 'Settings that only the driver understands.',
  secretRef: 'The secret that holds the credentials.',
}

const fieldTexts: Readonly<Record<string, string>> = {
  'core.PersistentVolumeClaimSpec.accessModes':
    'How the volume must be mountable: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.',
  'core.PersistentVolumeClaimSpec.resources': 'The least size; it may be raised later if the class allows it.',
  'core.PersistentVolumeClaimSpec.selector': 'Only volumes with these labels are considered.',
  'core.PersistentVolumeClaimSpec.storageClassName':
    'The class of volume; "" asks for a volume without class, nothing for the default class.',
  'core.PersistentVolumeClaimSpec.volumeMode': 'Filesystem (the default) or Block.',
  'core.PersistentVolumeClaimSpec.volumeName': 'The volume that the claim is bound to.',
  'core.PersistentVolumeClaimSpec.dataSource': 'The snapshot or claim whose content the new volume starts with.',
  'core.PersistentVolumeClaimSpec.dataSourceRef': 'Like dataSource, for any kind of object.',
  'core.PersistentVolumeClaimSpec.volumeAttributesClassName':
    'The class of changeable attributes that the volume should have.',
  'core.PersistentVolumeClaimStatus.capacity': 'The size of the bound volume.',
  'core.PersistentVolumeClaimStatus.accessModes': 'The access modes of the bound volume.',
  'core.PersistentVolumeSpec.capacity': 'The size of the volume.',
  'core.PersistentVolumeSpec.accessModes': 'All the ways in which the volume can be mounted.',
  'core.PersistentVolumeSpec.claimRef': 'The claim that the volume is bound to or reserved for.',
  'core.PersistentVolumeSpec.persistentVolumeReclaimPolicy':
    'What happens when the claim is gone: Retain, Delete or Recycle.',
  'core.PersistentVolumeSpec.storageClassName': 'The class this volume belongs to.',
  'core.PersistentVolumeSpec.mountOptions': 'Options for mounting; wrong ones make the mount fail.',
  'core.PersistentVolumeSpec.volumeMode': 'Filesystem (the default) or Block.',
  'core.PersistentVolumeSpec.nodeAffinity': 'The nodes from which the volume can be reached.',
  'core.PersistentVolumeSpec.csi': 'Storage handled by a CSI driver.',
  'core.PersistentVolumeSpec.local': 'A disk or directory of one node.',
  'core.PersistentVolumeSpec.hostPath': 'A directory of the node; for tests on one machine.',
  'core.PersistentVolumeSpec.nfs': 'A directory that a server exports by NFS.',
  'core.CSIPersistentVolumeSource.driver': 'The name of the driver.',
  'core.CSIPersistentVolumeSource.volumeHandle': 'What the driver calls the volume.',
  'core.CSIPersistentVolumeSource.volumeAttributes': 'What the driver needs to know to publish the volume.',
  'core.PodSpec.volumes': 'The volumes that containers of this pod can mount.',
  'core.PodSpec.containers': 'The containers; there must be at least one.',
  'core.PodSpec.initContainers': 'Containers that run one after the other before the others start.',
  'core.PodSpec.nodeName': 'The node that the pod is bound to.',
  'core.Container.volumeMounts': 'Which volumes appear where inside the container.',
  'core.Container.volumeDevices': 'Which block volumes appear as devices inside the container.',
  'core.VolumeMount.mountPath': 'The path inside the container.',
  'core.VolumeMount.subPath': 'A path inside the volume to mount instead of its root.',
  'core.VolumeMount.name': 'The name of a volume of the pod.',
  'storage.StorageClass.provisioner': 'Who makes the volumes of this class.',
  'storage.StorageClass.reclaimPolicy': 'The reclaim policy of the volumes made: Delete (the default) or Retain.',
  'storage.StorageClass.volumeBindingMode': 'Immediate (the default), or WaitForFirstConsumer to wait for a pod.',
  'storage.StorageClass.allowVolumeExpansion': 'Whether claims of this class may grow.',
  'storage.StorageClass.mountOptions': 'The mount options of the volumes made.',
  'storage.StorageClass.allowedTopologies': 'Where volumes of this class may be made.',
  'storage.VolumeAttachmentSpec.attacher': 'The driver that must attach the volume.',
  'storage.VolumeAttachmentSpec.nodeName': 'The node to attach to.',
  'storage.VolumeAttachmentSpec.source': 'The volume to attach.',
  'storage.VolumeAttachmentStatus.attached': 'Whether the driver has attached the volume.',
  'storage.VolumeAttachmentStatus.attachError': 'The last error of attaching.',
  'storage.VolumeAttachmentStatus.detachError': 'The last error of detaching.',
  'storage.CSIDriverSpec.attachRequired':
    'Whether volumes must be attached before they are mounted; the default is true.',
  'storage.CSIDriverSpec.podInfoOnMount': 'Whether the driver is told which pod a volume is mounted for.',
  'storage.CSIDriverSpec.fsGroupPolicy':
    'Whether ownership of files may be changed for a pod: ReadWriteOnceWithFSType, File or None.',
  'storage.CSIDriverSpec.volumeLifecycleModes': 'Persistent, Ephemeral or both.',
  'storage.CSINodeSpec.drivers': 'The drivers that are registered on the node.',
  'snapshot.VolumeSnapshotSpec.source': 'The claim to take, or the existing content to adopt.',
  'hawser.OperationSpec.operation': 'What was done, such as mount or detach.',
  'hawser.OperationStatus.waiting': 'What the operation waits for.',
  'meta.ObjectMeta.finalizers': 'Who must agree before the object disappears.',
  'meta.ObjectMeta.ownerReferences': 'The objects this one belongs to and is deleted with.',
  'meta.ObjectMeta.resourceVersion': 'Changes with every write; send it back to write only if nothing changed.',
  'meta.ObjectMeta.deletionTimestamp': 'When deletion was asked for; the object goes once its finalizers are gone.',
}
