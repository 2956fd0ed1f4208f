// Why has a claim no volume yet, or no longer? Causes between the wish and the bound claim.
import type { CauseTable } from './cause.ts'

export const claimCauses = {
  noVolumeFits: {
    title: 'No volume fits the claim and nothing makes one',
    sentence: 'no available volume fits claim {claim}, and nothing makes one: {detail}',
    meaning:
      'The claim names no class, or one that is only a name on volumes made by hand, so only a volume that already exists can satisfy it. None is available with enough space, the access modes, the volume mode, the labels and the class that the claim wants.',
    ends: 'A volume that fits appears or becomes available.',
    hints: [
      ['hawser get pv', 'see size, modes, class and phase of the volumes there are'],
      ['hawser get storageclass', 'see which classes could make one; a claim cannot change its class, so make it anew'],
    ],
  },
  classMissing: {
    title: 'The storage class does not exist',
    sentence: 'claim {claim} names class {class}, which does not exist',
    meaning:
      'Classes are named by the claim and looked up when a volume must be made. A typing error, or a class deleted since.',
    ends: 'The class appears.',
    hints: [
      ['hawser get storageclass', 'see the names of the classes there are'],
      ['hawser apply -f class.yaml', 'make the class; the claim goes on at once'],
    ],
  },
  noDefaultClass: {
    title: 'The claim names no class and there is no default one',
    sentence: 'claim {claim} names no class, no class is the default, and no volume fits: {detail}',
    meaning:
      'A claim without a class gets the default class when it is created, or later when one appears. Here none carries the annotation storageclass.kubernetes.io/is-default-class.',
    ends: 'A default class appears, or a volume without class that fits.',
    hints: [['hawser get storageclass', 'the default one is marked (default)']],
  },
  firstConsumer: {
    title: 'The claim waits for its first pod',
    sentence: 'class {class} makes volumes only when a pod uses the claim, and no pod does yet',
    meaning:
      'volumeBindingMode WaitForFirstConsumer: the volume is made where the pod will run, so nothing happens before there is a pod. This is no error.',
    ends: 'A pod that uses the claim appears.',
    hints: [
      ['hawser apply -f docs/examples/first.yaml', 'an example of a pod with a claim'],
      ['hawser volume create NAME --size 1Gi --node NODE', 'make a volume now, for a node of your choice'],
    ],
  },
  podUnscheduled: {
    title: 'The claim waits until its pod is placed',
    sentence: 'pods use claim {claim}, but none of them has a node yet',
    meaning:
      'Binding is delayed until a node is chosen for a pod of the claim. The pod itself waits for something else.',
    ends: 'A pod of the claim gets a node.',
    hints: [['hawser get pods', 'then ask: hawser why pod/NAME']],
  },
  placedByHand: {
    title: 'The pod was put on its node past the placement',
    sentence:
      'class {class} delays binding until placement chooses a node, and pod {pod} has its node from spec.nodeName',
    meaning:
      'A claim of a delayed class is bound for the node that placement chose. A pod that names its node itself is never placed, so nobody writes that choice on the claim.',
    ends: 'Nothing. Create the pod without spec.nodeName (a nodeSelector on kubernetes.io/hostname does the same).',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see spec.nodeName'],
      ['hawser get storageclass {class} -o yaml', 'see volumeBindingMode'],
    ],
  },
  askedProvisioner: {
    title: 'The driver was asked for a volume and has not answered',
    sentence: 'driver {driver} was asked to make the volume of claim {claim} and has not answered yet',
    meaning:
      'The request is recorded on the claim. The driver is registered; its CreateVolume call runs or is about to.',
    ends: 'The driver answers, or its call times out and is repeated.',
    hints: [
      ['hawser events --for pvc/{claim}', 'what the driver said before'],
      ['hawser get operations', 'the call, its step and its last error'],
    ],
  },
  provisionerAbsent: {
    title: 'No driver of that name is registered',
    sentence: 'class {class} wants driver {driver}, which no node has registered',
    meaning:
      'The claim asks a provisioner that nobody here runs: its process is down, its socket is not registered, or the class has a typing error.',
    ends: 'A driver of that name registers.',
    hints: [
      ['hawser get csinode -o yaml', 'see which drivers are registered on which node'],
      ['hawser driver check SOCKET', 'ask a driver directly what is wrong with it'],
      ['hawser up --csi-driver {driver}=SOCKET', 'start with this driver'],
    ],
  },
  provisioning: {
    title: 'The volume is being made',
    sentence: 'the volume of claim {claim} is being made right now',
    meaning: 'A call that makes storage is under way.',
    ends: 'The call returns.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  noProvisioner: {
    title: 'The class cannot make volumes',
    sentence: 'class {class} cannot make volumes, and none that exists fits claim {claim}: {detail}',
    meaning:
      'The class has a provisioner that only marks existing volumes (kubernetes.io/no-provisioner) or that this program does not have.',
    ends: 'A volume of this class that fits is created by hand.',
    hints: [
      ['hawser get storageclass {class} -o yaml', 'see its provisioner'],
      ['hawser get pv', 'see whether a volume of this class is available'],
    ],
  },
  provisioningFailed: {
    title: 'Making the volume failed',
    sentence: 'making the volume of claim {claim} failed; it will be tried again',
    meaning:
      'The plugin or driver said no. The error is shown in its own words; the same request is repeated with growing pauses.',
    ends: 'A later try succeeds.',
    hints: [
      ['hawser events --for pvc/{claim}', 'all answers so far'],
      ['hawser get storageclass {class} -o yaml', 'check the parameters it was given'],
    ],
  },
  provisioningDisabled: {
    title: 'Making volumes is switched off',
    sentence: 'dynamic provisioning is switched off in this server',
    meaning: 'The control plane was started without dynamic provisioning; only existing volumes are bound.',
    ends: 'A volume that fits is created by hand, or the server is started with provisioning.',
    hints: [['hawser get pv', 'see which volumes there are']],
  },
  namedVolumeMissing: {
    title: 'The volume named by the claim does not exist',
    sentence: 'claim {claim} names volume {volume}, which does not exist',
    meaning: 'spec.volumeName was written into the claim before the volume was there, or the volume was deleted.',
    ends: 'The volume appears.',
    hints: [['hawser get pv', 'see the names of the volumes']],
  },
  namedVolumeUnfit: {
    title: 'The volume named by the claim does not suit it',
    sentence: 'volume {volume}, named by claim {claim}, does not suit it: it {detail}',
    meaning: 'Naming a volume does not set the checks aside: size, class, volume mode and access modes must still fit.',
    ends: 'Volume or claim are changed so that they fit.',
    hints: [
      ['hawser describe pv/{volume}', 'compare capacity, class, modes'],
      ['hawser describe pvc/{claim}', 'with what the claim wants'],
    ],
  },
  namedVolumeTaken: {
    title: 'The volume named by the claim belongs to another claim',
    sentence: 'volume {volume}, named by claim {claim}, is not free: it {detail}',
    meaning: 'A volume belongs to one claim at a time. It is never taken away.',
    ends: 'The other claim is deleted and the volume becomes available again.',
    hints: [['hawser describe pv/{volume}', 'claimRef says to whom it belongs']],
  },
  volumeLost: {
    title: 'The claim lost its volume',
    sentence: 'claim {claim} was bound and has lost its volume: {detail}',
    meaning:
      'Phase Lost: the PersistentVolume object was deleted under a bound claim. The storage behind it may still exist.',
    ends: 'Only a volume of the same name that points to this very claim; nothing else.',
    hints: [
      ['hawser get pvc {claim} -o yaml', 'keep a copy before you delete anything'],
      ['hawser events --for pvc/{claim}', 'when it happened'],
    ],
  },
  misbound: {
    title: 'Claim and volume disagree',
    sentence: 'claim {claim} points to volume {volume}, and that volume does not point back: it {detail}',
    meaning: 'Somebody edited one side, or two claims of the same name followed each other. Nothing is bound by guess.',
    ends: 'The claimRef of the volume is removed, or gets the uid of this claim; then the two are bound again.',
    hints: [['hawser describe pv/{volume}', 'see claimRef and its uid']],
  },
  volumeBusy: {
    title: 'The volume is being bound to another claim right now',
    sentence: 'the volume that fits claim {claim} is being written for another pair this moment',
    meaning: 'Lasts milliseconds: one pair at a time is written per volume.',
    ends: 'The other write is done.',
    hints: [['hawser why pvc/{claim}', 'ask again']],
  },
  retrying: {
    title: 'Something could not be read or written and is tried again',
    sentence: 'the last look failed; the next one comes by itself',
    meaning: 'A conflict with another writer, or an API error. The loop comes back with growing pauses.',
    ends: 'A later look succeeds.',
    hints: [['hawser events', 'whether others have the same trouble']],
  },
  classForbidsExpansion: {
    title: 'The class does not allow growing',
    sentence: 'claim {claim} asks for more than it has, and class {class} does not allow expansion',
    meaning:
      'allowVolumeExpansion is not true in the class. (The API refuses such a change; the class may have changed since.)',
    ends: 'allowVolumeExpansion: true in the class.',
    hints: [['hawser get storageclass {class} -o yaml', 'see allowVolumeExpansion']],
  },
  askedResizer: {
    title: 'The driver must grow the volume',
    sentence: 'driver {driver} was asked to grow the volume of claim {claim}',
    meaning:
      'The size is raised in two halves: the driver grows the storage, then the node grows the filesystem. The first is under way.',
    ends: 'The driver answers.',
    hints: [
      ['hawser events --for pvc/{claim}', 'what the driver said'],
      ['hawser get operations', 'the call and its last error'],
    ],
  },
  expansionFailed: {
    title: 'Growing the volume failed',
    sentence: 'the driver could not grow the volume of claim {claim}',
    meaning:
      'The storage said no. If it can never work (infeasible), a smaller request that is still above the present size is accepted.',
    ends: 'A later try succeeds, or the request is lowered to something feasible.',
    hints: [
      ['hawser describe pvc/{claim}', 'requested, allocated and present size, and the conditions'],
      ['hawser volume resize {claim} SIZE', 'ask for another size'],
    ],
  },
  attributesClassMissing: {
    title: 'The class of volume attributes does not exist',
    sentence: 'claim {claim} wants the attributes of class {class}, which does not exist',
    meaning:
      'volumeAttributesClassName names a class that was never made or has another name. The volume keeps what it has.',
    ends: 'The class appears, or the claim names another one.',
    hints: [['hawser get volumeattributesclass', 'see which there are']],
  },
  attributesClassForeign: {
    title: 'The class of volume attributes is for another driver',
    sentence: 'claim {claim} wants the attributes of class {class}, which is for driver {detail}, not {driver}',
    meaning: 'Attributes mean something to one driver only. The volume keeps what it has.',
    ends: 'The claim names a class of its own driver.',
    hints: [['hawser get volumeattributesclass -o yaml', 'see the driver of each']],
  },
  modifying: {
    title: 'The attributes of the volume are being changed',
    sentence: 'driver {driver} was asked to give the volume of claim {claim} the attributes of class {class}',
    meaning: 'ControllerModifyVolume is under way, or about to be.',
    ends: 'The driver answers.',
    hints: [['hawser events --for pvc/{claim}', 'what the driver said']],
  },
  modifyFailed: {
    title: 'Changing the attributes of the volume failed',
    sentence: 'the volume of claim {claim} could not be given the attributes of class {class}',
    meaning: 'The driver said no; its words are shown. The volume keeps what it has.',
    ends: 'A later try succeeds, or the claim names another class.',
    hints: [
      ['hawser events --for pvc/{claim}', 'all answers so far'],
      ['hawser get volumeattributesclass {class} -o yaml', 'see its parameters'],
    ],
  },
  claimNotMade: {
    title: 'The claim of an ephemeral volume is not made yet',
    sentence: 'claim {claim}, which belongs to an ephemeral volume of pod {pod}, has not been made',
    meaning:
      'The claim of a generic ephemeral volume is made from the template in the pod. The server may have refused it (a quota, a template that is not valid), or nothing here makes such claims.',
    ends: 'The claim is made; it is tried again by itself.',
    hints: [
      ['hawser events --for pod/{pod}', 'what the server answered'],
      ['hawser get pod {pod} -o yaml', 'see the template'],
    ],
  },
  growsOnlyUnused: {
    title: 'The driver grows a volume only while no pod uses it',
    sentence: 'claim {claim} grows when no pod uses it: driver {driver} grows only volumes that are not in use',
    meaning: 'Some drivers cannot grow a volume under a running pod (offline expansion). The request is kept.',
    ends: 'The last pod of the claim ends; growing goes on by itself.',
    hints: [
      ['hawser describe pvc/{claim}', 'see which pods use it'],
      ['hawser get pods -o wide', 'then end them: hawser delete pod NAME'],
    ],
  },
  nodeMustExpand: {
    title: 'The filesystem grows when a pod uses the volume',
    sentence: 'the storage of claim {claim} has grown; its filesystem grows on the node when a pod uses it',
    meaning: 'Condition FileSystemResizePending: the second half of an expansion happens where the volume is mounted.',
    ends: 'A pod mounts the volume, or the node of a running pod grows it.',
    hints: [['hawser run --claim {claim}:/data -- df -h /data', 'mount it once']],
  },
  claimProtected: {
    title: 'The claim is kept because pods use it',
    sentence: 'claim {claim} is being deleted, and is kept for the pods that use it: {detail}',
    meaning:
      'The finalizer kubernetes.io/pvc-protection keeps a claim as long as a pod that names it was placed on a node, also one that has ended. The data is safe meanwhile.',
    ends: 'The last pod that names it is deleted.',
    hints: [
      ['hawser get pods', 'see which pods run'],
      ['hawser delete pod {pod}', 'when it has ended or is no longer needed'],
    ],
  },
  claimIsSource: {
    title: 'The claim is kept while a copy of it is made',
    sentence: 'claim {claim} is being deleted, and is kept while {detail}',
    meaning: 'A clone or a snapshot of the claim is under way; its source stays until it is complete.',
    ends: 'The copy is complete, or given up.',
    hints: [
      ['hawser get pvc,volumesnapshot', 'see which copy is not ready'],
      ['hawser events --for pvc/{claim}', 'what was said about it'],
    ],
  },
  finalizersHold: {
    title: 'The object is kept by a finalizer',
    sentence: 'it is being deleted; these finalizers hold it: {detail}',
    meaning:
      'Whoever set a finalizer promised to clean something up first and removes the finalizer afterwards. Removing it by hand leaks what it guards.',
    ends: 'The owner of the finalizer removes it.',
    hints: [
      ['hawser get operations', 'what its owner is doing'],
      ['hawser events', 'what its owner said'],
    ],
  },
} as const satisfies CauseTable
