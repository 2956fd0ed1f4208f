// Why is an attached volume not mounted in its pod, or still mounted? Causes that lie with the work of the node.
import type { CauseTable } from './cause.ts'

export const nodeCauses = {
  nodeSilent: {
    title: 'The node has not reported anything about the pod',
    sentence: 'node {node} is ready, but has reported nothing new about pod {pod} for a while',
    meaning:
      'The next step is the agent of the node. It may have just stopped, lost its connection, or be busy with many pods. A stopped agent is noticed when its lease expires.',
    ends: 'The agent reports something, or its lease expires.',
    hints: [
      ['hawser why node/{node}', 'see whether it is still ready'],
      ['hawser doctor', 'on the node: check that the agent runs and reaches the server'],
    ],
  },
  volumesUnresolved: {
    title: 'The node cannot find the volumes of the pod',
    sentence: 'node {node} cannot resolve the volumes of pod {pod}',
    meaning: 'A claim, a volume or a plugin for a volume of the pod was not found. The message of the node is shown.',
    ends: 'The missing object is created; the node looks for it again automatically.',
    hints: [
      ['hawser events --for pod/{pod}', 'see what the node reported'],
      ['hawser get pvc,pv', 'list claims and volumes'],
    ],
  },
  podListIncomplete: {
    title: 'The node has just started and unmounts nothing yet',
    sentence: 'node {node} unmounts nothing until it knows all its pods',
    meaning:
      'After a restart a node may find mounts of pods that it has not heard of yet. It mounts volumes, but does not unmount any.',
    ends: 'All pod sources have answered.',
    hints: [['hawser get nodes', 'see whether the node is ready']],
  },
  devicePathUnread: {
    title: 'The node has just started and reads which devices are attached',
    sentence: 'node {node} found volume {volume} on disk and reads from the server where its device is',
    meaning: 'After a restart nothing is unmounted until the node has read which volumes are attached.',
    ends: 'The node reads its own Node object.',
    hints: [['hawser get nodes', 'see whether the node reaches the server']],
  },
  labelMismatch: {
    title: 'The volume is still mounted with another SELinux label',
    sentence: 'node {node} unmounts volume {volume} first: another pod used it with another SELinux label',
    meaning:
      'A volume is mounted with one label for all its files. For a pod with another label it must be mounted again.',
    ends: 'The other pod has ended, and the volume is unmounted.',
    hints: [['hawser get pods -o wide', 'see which pods on the node are being deleted']],
  },
  claimsUnresolved: {
    title: 'A volume found on disk may belong to a running pod',
    sentence: 'node {node} keeps volume {volume} mounted until it knows which volumes its running pods need',
    meaning:
      'Since the restart of the node, a claim of a running pod could not be looked up. The volume found on disk may be the one it uses.',
    ends: 'The claims of the running pods are resolved.',
    hints: [['hawser get pvc -A', 'see which claims are not bound']],
  },
  busy: {
    title: 'Another operation on the volume is running',
    sentence: 'another operation on volume {volume} is running',
    meaning: 'One operation runs at a time for each volume.',
    ends: 'The running operation ends; each has a deadline.',
    hints: [['hawser get operations', 'see which one, and since when']],
  },
  workHangs: {
    title: 'Work on the volume takes long',
    sentence:
      'node {node} has been working[ on volume {volume}][ for pod {pod}] since the time shown[, in step {call}]',
    meaning:
      'A mount, unmount or other call to the kernel or a program has not returned for more than ten seconds. Formatting a large disk or changing the owner of many files takes time; storage that is out of reach does not answer at all.',
    ends: 'The work ends; each operation has a deadline, after which it is repeated.',
    hints: [
      ['hawser get operations', 'see which step, and since when'],
      ['hawser doctor', 'on the node: mounts that hang'],
    ],
  },
  mountRunning: {
    title: 'The volume is being mounted',
    sentence: 'node {node} is mounting volume {volume} for pod {pod} right now',
    meaning:
      'A stage, publish or mount call is in progress. Formatting a large disk or changing the owner of many files takes time.',
    ends: 'The call returns; each has a deadline.',
    hints: [['hawser get operations', 'see which step, and since when']],
  },
  mountFailed: {
    title: 'Mounting failed',
    sentence: 'node {node} could not mount volume {volume} for pod {pod}; it is retried automatically',
    meaning: 'The driver, plugin or kernel refused. Its error message is shown.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser events --for pod/{pod}', 'all errors so far'],
      ['hawser doctor', 'on the node: kernel, tools, sockets'],
    ],
  },
  unmountFailed: {
    title: 'Unmounting failed',
    sentence: 'node {node} could not unmount volume {volume}; it is retried automatically',
    meaning:
      'The pod stays until its volumes are certainly unmounted. Nobody else gets a volume that may still be mounted.',
    ends: 'A retry succeeds.',
    hints: [['hawser doctor', 'on the node: see which process uses the mount']],
  },
  unmounting: {
    title: 'The volumes of the pod are being unmounted',
    sentence: 'pod {pod} has ended; node {node} is unmounting its volumes',
    meaning: 'Writing cached data to slow storage takes time.',
    ends: 'The unmount returns.',
    hints: [['hawser get operations', 'see which step, and since when']],
  },
  nodeAffinityConflict: {
    title: 'The volume cannot be reached from this node',
    sentence: 'volume {volume} has a node affinity that node {node} does not satisfy',
    meaning:
      'Local and zonal volumes can be used on some nodes only. The pod was assigned to another node with spec.nodeName or by another scheduler.',
    ends: 'Nothing. Create the pod on a node that fits.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see spec.nodeAffinity'],
      ['hawser get nodes -o yaml', 'see which node fits'],
    ],
  },
  singlePodWriter: {
    title: 'Another pod uses the volume exclusively',
    sentence: 'claim {claim} is ReadWriteOncePod, and another pod uses it[: {holder}]',
    meaning: 'This access mode allows one pod at a time, even on the same node.',
    ends: 'The other pod ends.',
    hints: [
      ['hawser get pods -o wide', 'see which pod uses it'],
      ['hawser delete pod {holder}', 'if the other pod is no longer needed'],
    ],
  },
  mountOptionsRefused: {
    title: 'The volume type does not support mount options',
    sentence: 'volume {volume} has mount options, but its type does not support them',
    meaning: 'Mount options are refused rather than ignored.',
    ends: 'The options are removed from the volume or its class.',
    hints: [['hawser get pv {volume} -o yaml', 'see spec.mountOptions']],
  },
  deviceBusy: {
    title: 'The device or mount is still in use',
    sentence: 'a mount or device[ of volume {volume}] is used by another mount or process on node {node}',
    meaning: 'EBUSY: a process has a file open, or another mount of the same device exists.',
    ends: 'The process or the other mount is gone.',
    hints: [['hawser doctor', 'on the node: see stale mounts and which processes use them']],
  },
  storageHangs: {
    title: 'The storage does not answer',
    sentence: 'a call[ for volume {volume}] on node {node} hangs; it was abandoned and is retried automatically',
    meaning:
      'The NFS server is down, the path to the disk is lost, or the driver is stuck. Hanging calls are killed or isolated, so that other volumes are not affected.',
    ends: 'The storage answers again.',
    hints: [
      ['hawser doctor', 'on the node: hung mounts'],
      ['hawser get operations', 'see since when'],
    ],
  },
  mountIsStale: {
    title: 'The mount is stale',
    sentence: 'the mount of volume {volume} on node {node} is stale (stale file handle or lost connection)',
    meaning:
      'The server behind the mount is gone or has forgotten it. The mount is cleaned up before the next attempt.',
    ends: 'The server is back, or the volume is mounted again.',
    hints: [['hawser doctor', 'on the node: stale mounts']],
  },
  ioError: {
    title: 'The device reports I/O errors',
    sentence: 'the kernel reports I/O errors[ for volume {volume}] on node {node}',
    meaning: 'A broken disk, a lost path to it, or a filesystem that shut itself down.',
    ends: 'The device works again.',
    hints: [['dmesg --level=err,warn', 'on the node: see what the kernel reports']],
  },
  diskPressure: {
    title: 'A disk of the node is low on space',
    sentence: 'a disk of node {node} is low on space: {detail}',
    meaning:
      'The disk below the node root or below the images of the built-in driver has little left. What runs goes on. When it is full, writers of thin volumes wait and no volume is made.',
    ends: 'Space is freed there, or the disk is enlarged. The node looks every ten seconds.',
    hints: [
      ['df -h', 'on the node: see which filesystem is full'],
      ['hawser volume ls', 'volumes that nobody needs can be deleted'],
      ['hawser doctor', 'on the node: leftovers that take space'],
    ],
  },
  noSpaceOnNode: {
    title: 'No space left',
    sentence: 'there is no space left on node {node}[ for volume {volume}][: {detail}]',
    meaning: 'The filesystem of the node root, or the volume itself, is full (ENOSPC or EDQUOT).',
    ends: 'Free some space, or expand the volume.',
    hints: [
      ['df -h', 'on the node: see which filesystem is full'],
      ['hawser volume resize {claim} SIZE', 'if it is the volume itself'],
    ],
  },
  permissionDenied: {
    title: 'Permission denied',
    sentence: 'the kernel refuses an operation[ on volume {volume}] on node {node}[: {detail}]',
    meaning:
      'The agent does not run as root, lacks a capability (CAP_SYS_ADMIN to mount), or the storage forbids it (NFS root_squash).',
    ends: 'The agent gets the permission.',
    hints: [['hawser doctor', 'on the node: rights and capabilities']],
  },
  readOnlyStorage: {
    title: 'The storage is read-only',
    sentence: 'node {node} must write[ to volume {volume}], but the storage is read-only[: {detail}]',
    meaning: 'EROFS: the device, export or snapshot is read-only, or the filesystem became read-only after an error.',
    ends: 'The pod mounts the volume read-only, or the storage becomes writable.',
    hints: [['dmesg --level=err,warn', 'on the node: see whether the filesystem was remounted read-only']],
  },
  programMissing: {
    title: 'A program is missing on the node',
    sentence: 'node {node} lacks a program[ that volume {volume} needs]: {detail}',
    meaning: 'mount.nfs, iscsiadm, mkfs and similar programs come from packages of the distribution.',
    ends: 'The package is installed; the next attempt finds it.',
    hints: [['hawser doctor', 'on the node: see which package has it']],
  },
  ownershipFailed: {
    title: 'Setting the group of the files failed',
    sentence: 'volume {volume} is mounted, but setting group ownership for pod {pod} failed',
    meaning:
      'fsGroup changes group and mode of every file. The storage may forbid it (root_squash), or there are very many files.',
    ends: 'A retry succeeds.',
    hints: [['hawser get pod {pod} -o yaml', 'fsGroupChangePolicy: OnRootMismatch avoids most of the work']],
  },
  pluginMissing: {
    title: 'No plugin supports this volume',
    sentence: 'no plugin on node {node} supports a volume of pod {pod}',
    meaning: 'Hawser does not have this volume type, or two plugins claim it.',
    ends: 'Nothing. Use a CSI driver for that storage.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see the sources of its volumes'],
      ['hawser get pv {volume} -o yaml', 'see its source'],
    ],
  },
  secretMissing: {
    title: 'A secret for the storage cannot be read',
    sentence: 'a secret that driver {driver} needs[ for volume {volume}] cannot be read',
    meaning: 'The class or the volume names a secret that does not exist or is in another namespace.',
    ends: 'The secret is created.',
    hints: [
      ['hawser get secrets -A', 'list those that exist'],
      ['hawser get storageclass {class} -o yaml', 'see which secrets it names'],
    ],
  },
  savedStateBroken: {
    title: 'The saved data of a mounted volume cannot be read',
    sentence: 'the file that describes volume {volume} on node {node} is missing or damaged',
    meaning:
      'Each mounted volume has a file beside it that describes it. Without that file the driver cannot be asked to unmount it.',
    ends: 'Nothing, or the cleanup of orphans once the mount is gone.',
    hints: [['hawser doctor', 'on the node: orphans, and how to remove them']],
  },
} as const satisfies CauseTable
