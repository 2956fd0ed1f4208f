// Why has a claim no volume yet, or no longer? Causes between creating a claim and binding it.
import type { CauseTable } from './cause.ts'

export const claimCauses = {
  noVolumeFits: {
    title: 'No volume fits the claim, and none can be provisioned',
    sentence: 'no available volume fits claim {claim}, and its class cannot provision one: {detail}',
    meaning:
      'The claim has no class, or its class has no provisioner. So only an existing volume can be bound. None of them is available with the size, access modes, volume mode, labels and class that the claim requests.',
    ends: 'A volume that fits is created or becomes available.',
    hints: [
      ['hawser get pv', 'list the volumes with size, modes, class and phase'],
      [
        'hawser get storageclass',
        'list the classes; a claim cannot change its class, so delete it and create it again with another class',
      ],
    ],
  },
  classMissing: {
    title: 'The storage class does not exist',
    sentence: 'claim {claim} names class {class}, which does not exist',
    meaning:
      'The claim names its class. The class is looked up when a volume must be provisioned. The name has a typo, or the class was deleted.',
    ends: 'The class is created.',
    hints: [
      ['hawser get storageclass', 'list the classes'],
      ['hawser apply -f class.yaml', 'create the class; the claim continues at once'],
    ],
  },
  noDefaultClass: {
    title: 'The claim has no class, and there is no default class',
    sentence: 'claim {claim} has no class, there is no default class, and no volume fits: {detail}',
    meaning:
      'A claim without a class gets the default class when it is created, or as soon as there is one. No class has the annotation storageclass.kubernetes.io/is-default-class.',
    ends: 'A default class is created, or a volume without a class that fits.',
    hints: [['hawser get storageclass', 'the default one is marked (default)']],
  },
  firstConsumer: {
    title: 'The claim waits for its first pod',
    sentence: 'class {class} provisions a volume when the first pod uses the claim, and no pod uses it yet',
    meaning:
      'The class has volumeBindingMode WaitForFirstConsumer: the volume is provisioned for the node of the pod. Until there is a pod, the claim stays Pending. This is not an error.',
    ends: 'A pod that uses the claim is created.',
    hints: [
      ['hawser apply -f docs/examples/first.yaml', 'an example of a pod with a claim'],
      ['hawser volume create NAME --size 1Gi --node NODE', 'provision a volume now, for a node that you choose'],
    ],
  },
  podUnscheduled: {
    title: 'The claim waits until its pod is scheduled',
    sentence: 'pods use claim {claim}, but none of them is scheduled to a node yet',
    meaning: 'The claim is bound when one of its pods has a node. The pod itself waits for something else.',
    ends: 'A pod of the claim is scheduled.',
    hints: [['hawser get pods', 'then ask: hawser why pod/NAME']],
  },
  placedByHand: {
    title: 'The pod bypasses the scheduler',
    sentence: 'class {class} binds claims when the scheduler chooses a node, but pod {pod} sets spec.nodeName',
    meaning:
      'With WaitForFirstConsumer the scheduler writes the chosen node on the claim. A pod that sets spec.nodeName is never scheduled. Hawser binds its claims to that node all the same, but not with --strict-scheduling, with --bare, or for a pod with another schedulerName: then nobody writes the node.',
    ends: 'Start the server without --strict-scheduling, or create the pod without spec.nodeName; use a nodeSelector on kubernetes.io/hostname instead.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see spec.nodeName'],
      ['hawser get storageclass {class} -o yaml', 'see volumeBindingMode'],
    ],
  },
  askedProvisioner: {
    title: 'The driver has not answered the request for a volume',
    sentence: 'driver {driver} was asked to provision the volume of claim {claim} and has not answered yet',
    meaning:
      'The driver is registered and the request is recorded on the claim. The CreateVolume call is running or about to start.',
    ends: 'The driver answers, or the call times out and is retried.',
    hints: [
      ['hawser events --for pvc/{claim}', 'earlier answers of the driver'],
      ['hawser get operations', 'the call, its step and its last error'],
    ],
  },
  provisionerAbsent: {
    title: 'The driver of the class is not registered',
    sentence: 'class {class} uses driver {driver}, which is not registered on any node',
    meaning: 'The driver is not running, its socket is not registered, or its name in the class has a typo.',
    ends: 'A driver with that name registers.',
    hints: [
      ['hawser get csinode -o yaml', 'see which drivers are registered on which node'],
      ['hawser driver check {socket}', 'check a driver directly'],
      ['hawser up --csi-driver {driver}=SOCKET', 'start with this driver'],
    ],
  },
  nodeFull: {
    title: 'The chosen node has no room for the volume',
    sentence: 'node {node} has no room for the volume of claim {claim}[: {detail}]',
    meaning:
      'The claim was created for this node (flag `--node`), and the driver there refuses the size (RESOURCE_EXHAUSTED). The claim stays with the node, because no pod makes the scheduler choose another. It is retried automatically, with longer and longer pauses.',
    ends: 'Space is freed on the node; or the claim is deleted and created again, smaller or for another node.',
    hints: [
      ['hawser delete pvc {claim}', 'then create it again, smaller or with another --node'],
      ['hawser volume ls -A', 'the volumes and what they use'],
      ['hawser get csistoragecapacities -A', 'free space by node, as reported by the driver'],
    ],
  },
  noRoomToGrow: {
    title: 'The storage has no room to expand the volume',
    sentence: 'driver {driver} has no room to expand the volume of claim {claim} to {size}[: {detail}]',
    meaning:
      'The driver refuses the new size (RESOURCE_EXHAUSTED). The volume keeps its present size and stays usable. The expansion is retried automatically.',
    ends: 'Space is freed. With this answer the driver leaves open whether it works on it, so the size cannot be taken back before.',
    hints: [
      ['hawser volume ls -A', 'the volumes and what they use'],
      ['hawser get csistoragecapacities -A', 'free space as reported by the driver'],
    ],
  },
  provisioning: {
    title: 'The volume is being provisioned',
    sentence: 'the volume of claim {claim} is being provisioned right now',
    meaning: 'A call that creates storage is in progress.',
    ends: 'The call returns.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  noProvisioner: {
    title: 'The class cannot provision volumes',
    sentence: 'class {class} cannot provision volumes, and no existing volume fits claim {claim}: {detail}',
    meaning:
      'The provisioner of the class is kubernetes.io/no-provisioner, or one that Hawser does not have. So only existing volumes can be bound.',
    ends: 'An administrator creates a volume of this class that fits.',
    hints: [
      ['hawser get storageclass {class} -o yaml', 'see its provisioner'],
      ['hawser get pv', 'see whether a volume of this class is available'],
    ],
  },
  provisioningFailed: {
    title: 'Provisioning the volume failed',
    sentence: 'provisioning the volume of claim {claim} failed; it is retried automatically',
    meaning: 'The plugin or driver refused. Its error message is shown. The same request is retried with back-off.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser events --for pvc/{claim}', 'all errors so far'],
      ['hawser get storageclass {class} -o yaml', 'check the parameters of the class'],
    ],
  },
  provisioningDisabled: {
    title: 'Dynamic provisioning is disabled',
    sentence: 'dynamic provisioning is disabled on this server',
    meaning: 'The server runs without dynamic provisioning; only existing volumes are bound.',
    ends: 'An administrator creates a volume that fits, or starts the server with provisioning.',
    hints: [['hawser get pv', 'list the volumes']],
  },
  namedVolumeMissing: {
    title: 'The volume named by the claim does not exist',
    sentence: 'claim {claim} names volume {volume}, which does not exist',
    meaning: 'spec.volumeName of the claim names a volume that was never created, or was deleted.',
    ends: 'The volume is created.',
    hints: [['hawser get pv', 'list the volumes']],
  },
  namedVolumeUnfit: {
    title: 'The volume named by the claim does not fit',
    sentence: 'volume {volume}, named by claim {claim}, does not fit: it {detail}',
    meaning: 'Size, class, volume mode and access modes must fit even if the claim names its volume.',
    ends: 'The volume or the claim is changed so that they fit.',
    hints: [
      ['hawser describe pv/{volume}', 'compare capacity, class and modes'],
      ['hawser describe pvc/{claim}', 'with what the claim requests'],
    ],
  },
  namedVolumeTaken: {
    title: 'The volume named by the claim belongs to another claim',
    sentence: 'volume {volume}, named by claim {claim}, is not available: it {detail}',
    meaning: 'A volume is bound to one claim at a time and is never taken away from it.',
    ends: 'The other claim is deleted and the volume becomes available again.',
    hints: [['hawser describe pv/{volume}', 'claimRef names the claim that has it']],
  },
  volumeLost: {
    title: 'The claim lost its volume',
    sentence: 'claim {claim} was bound, but its volume is lost: {detail}',
    meaning:
      'The claim is in phase Lost: its PersistentVolume object was deleted while it was bound. The storage itself may still exist.',
    ends: 'Only a volume with the same name whose claimRef names this claim.',
    hints: [
      ['hawser get pvc {claim} -o yaml', 'keep a copy before you delete anything'],
      ['hawser events --for pvc/{claim}', 'when it happened'],
    ],
  },
  misbound: {
    title: 'Claim and volume do not refer to each other',
    sentence: 'claim {claim} names volume {volume}, but that volume does not refer to the claim: it {detail}',
    meaning:
      'Somebody edited one of the two objects, or the claim was deleted and created again under the same name. Hawser does not guess which one is right.',
    ends: 'The claimRef of the volume is removed, or gets the uid of this claim. Then the two are bound again.',
    hints: [['hawser describe pv/{volume}', 'see claimRef and its uid']],
  },
  volumeBusy: {
    title: 'The volume is being bound to another claim',
    sentence: 'the volume that fits claim {claim} is being bound to another claim at this moment',
    meaning: 'A volume is written for one claim at a time. This takes milliseconds.',
    ends: 'The other write finishes.',
    hints: [['hawser why pvc/{claim}', 'ask again']],
  },
  retrying: {
    title: 'Reading or writing an object failed and is retried',
    sentence: 'the last attempt failed; the next one starts automatically',
    meaning:
      'Another writer changed the object at the same time, or the API returned an error. The work is retried with back-off.',
    ends: 'A later attempt succeeds.',
    hints: [['hawser events', 'see whether other objects have the same problem']],
  },
  classForbidsExpansion: {
    title: 'The class does not allow expansion',
    sentence: 'claim {claim} requests more than it has, and class {class} does not allow expansion',
    meaning:
      'allowVolumeExpansion is not true in the class. (The API refuses such a request; the class may have changed later.)',
    ends: 'Set allowVolumeExpansion: true in the class.',
    hints: [['hawser get storageclass {class} -o yaml', 'see allowVolumeExpansion']],
  },
  askedResizer: {
    title: 'The driver must expand the volume',
    sentence: 'driver {driver} was asked to expand the volume of claim {claim}[; {detail}]',
    meaning:
      'Expansion has two parts: the driver expands the storage, then the node expands the filesystem. The first part is in progress.',
    ends: 'The driver answers.',
    hints: [
      ['hawser events --for pvc/{claim}', 'the answers of the driver'],
      ['hawser get operations', 'the call and its last error'],
    ],
  },
  expansionFailed: {
    title: 'Expanding the volume failed',
    sentence: 'the driver could not expand the volume of claim {claim}',
    meaning:
      'The driver refused. If it reports the size as infeasible, you can request a smaller size that is still above the current one.',
    ends: 'A retry succeeds, or a smaller size is requested.',
    hints: [
      ['hawser describe pvc/{claim}', 'see requested, allocated and current size, and the conditions'],
      ['hawser volume resize {claim} SIZE', 'request another size'],
    ],
  },
  attributesClassMissing: {
    title: 'The VolumeAttributesClass does not exist',
    sentence: 'claim {claim} names VolumeAttributesClass {class}, which does not exist',
    meaning: 'The class was never created or has another name. The volume keeps its current attributes.',
    ends: 'The class is created, or the claim names another one.',
    hints: [['hawser get volumeattributesclass', 'list those that exist']],
  },
  attributesClassForeign: {
    title: 'The VolumeAttributesClass is for another driver',
    sentence: 'claim {claim} names VolumeAttributesClass {class}, which is for driver {detail}, not {driver}',
    meaning: 'The attributes of a class are for one driver only. The volume keeps its current attributes.',
    ends: 'The claim names a class of its own driver.',
    hints: [['hawser get volumeattributesclass -o yaml', 'see the driver of each']],
  },
  modifying: {
    title: 'The attributes of the volume are being changed',
    sentence: 'driver {driver} was asked to set the attributes of class {class} on the volume of claim {claim}',
    meaning: 'A ControllerModifyVolume call is running or about to start.',
    ends: 'The driver answers.',
    hints: [['hawser events --for pvc/{claim}', 'see the answers of the driver']],
  },
  modifyFailed: {
    title: 'Changing the attributes of the volume failed',
    sentence: 'setting the attributes of class {class} on the volume of claim {claim} failed',
    meaning: 'The driver refused; its error message is shown. The volume keeps its current attributes.',
    ends: 'A retry succeeds, or the claim names another class.',
    hints: [
      ['hawser events --for pvc/{claim}', 'all errors so far'],
      ['hawser get volumeattributesclass {class} -o yaml', 'see its parameters'],
    ],
  },
  claimNotMade: {
    title: 'The claim of an ephemeral volume does not exist yet',
    sentence: 'claim {claim} for an ephemeral volume of pod {pod} has not been created',
    meaning:
      'The claim is created from the template in the pod. The server may have refused it (a quota, an invalid template), or the controller that creates such claims is not running.',
    ends: 'The claim is created; this is retried automatically.',
    hints: [
      ['hawser events --for pod/{pod}', 'what the server answered'],
      ['hawser get pod {pod} -o yaml', 'see the template'],
    ],
  },
  growsOnlyUnused: {
    title: 'The driver expands a volume only while no pod uses it',
    sentence: 'claim {claim} is expanded when no pod uses it: driver {driver} supports offline expansion only',
    meaning: 'Some drivers cannot expand a volume that a pod uses. The request is kept.',
    ends: 'The last pod of the claim ends; expansion then continues automatically.',
    hints: [
      ['hawser describe pvc/{claim}', 'see which pods use it'],
      ['hawser get pods -o wide', 'then delete them: hawser delete pod NAME'],
    ],
  },
  growsAtNextMount: {
    title: 'The filesystem cannot be expanded while it is mounted',
    sentence:
      'node {node} cannot expand the filesystem of claim {claim} while pod {pod} uses it[: {detail}]; it is expanded when the volume is mounted next',
    meaning:
      'The storage was expanded, and the driver refuses to expand the filesystem while it is mounted (FAILED_PRECONDITION). ext4 is like that where the node lacks the capability CAP_SYS_RESOURCE, as in some containers and virtual machines. Nothing more is tried while pods use the volume; they keep the present size.',
    ends: 'All pods of the claim on this node end and one starts again: the filesystem is expanded before it is mounted.',
    hints: [
      ['hawser delete pod {pod}', 'then create it again: it starts with the new size'],
      ['hawser doctor', 'on the node: does it have the capability?'],
    ],
  },
  nodeMustExpand: {
    title: 'The filesystem is expanded when a pod uses the volume',
    sentence:
      'the storage of claim {claim} was expanded; the node expands the filesystem when a pod uses the volume[ ({detail})]',
    meaning:
      'Condition FileSystemResizePending: the second part of an expansion happens on the node where the volume is mounted.',
    ends: 'A pod mounts the volume, or the node of a running pod expands it.',
    hints: [['hawser run --claim {claim}:/data -- df -h /data', 'mount it once']],
  },
  claimProtected: {
    title: 'The claim is not deleted because pods use it',
    sentence: 'claim {claim} is being deleted, but pods still use it: {detail}',
    meaning:
      'The finalizer kubernetes.io/pvc-protection keeps a claim while a scheduled pod names it, even a pod that has ended. The data is safe until then.',
    ends: 'The last pod that names the claim is deleted.',
    hints: [
      ['hawser get pods', 'list the pods'],
      ['hawser delete pod {pod}', 'if the pod has ended or is no longer needed'],
    ],
  },
  claimIsSource: {
    title: 'The claim is not deleted while a copy of it is being made',
    sentence: 'claim {claim} is being deleted, but is kept while {detail}',
    meaning: 'A clone or a snapshot of the claim is in progress. The source stays until it is complete.',
    ends: 'The copy is complete or was given up.',
    hints: [
      ['hawser get pvc,volumesnapshot', 'see which copy is not ready'],
      ['hawser events --for pvc/{claim}', 'what happened to it'],
    ],
  },
  finalizersHold: {
    title: 'A finalizer keeps the object',
    sentence: 'the object is being deleted, but these finalizers keep it: {detail}',
    meaning:
      'The owner of a finalizer cleans something up first and then removes the finalizer. Removing it by hand leaves behind what should be cleaned up.',
    ends: 'The owner of the finalizer removes it.',
    hints: [
      ['hawser get operations', 'what its owner is doing'],
      ['hawser events', 'events of its owner'],
    ],
  },
} as const satisfies CauseTable
