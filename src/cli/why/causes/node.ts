// Why does a pod not run, or not go? Causes between the attached volume and the running (or ended) container.
import type { CauseTable } from './cause.ts'

export const nodeCauses = {
  noNodes: {
    title: 'There is no node',
    sentence: 'no node has joined, so pod {pod} cannot be placed',
    meaning: 'The control plane runs without a node agent (hawser up --bare), or none has registered yet.',
    ends: 'A node registers.',
    hints: [
      ['hawser get nodes', 'see that there is none'],
      ['hawser up', 'start with a node of its own (without --bare)'],
    ],
  },
  noNodeFits: {
    title: 'No node fits the pod',
    sentence: 'pod {pod} fits on no node: {detail}',
    meaning:
      'Placement looks at readiness, taints, selectors, affinity, requested resources, where the volumes of the pod can be reached and how many more a node can take. The message counts the reasons over all nodes.',
    ends: 'A node, a volume or another pod changes so that one fits.',
    hints: [
      ['hawser get nodes -o wide', 'see which nodes there are'],
      ['hawser describe pod/{pod}', 'see what it asks for'],
      ['hawser get pv -o yaml', 'nodeAffinity says where a volume can be reached'],
    ],
  },
  volumesBeingBound: {
    title: 'The pod has a node in mind and waits for its claims',
    sentence: 'a node was chosen for pod {pod}; it is placed when its claims are bound',
    meaning:
      'Claims of delayed classes are bound for the chosen node first. If that takes ten minutes, another node is tried.',
    ends: 'The claims are bound.',
    hints: [['hawser get pvc', 'then ask: hawser why pvc/NAME']],
  },
  noScheduler: {
    title: 'Nobody places the pod',
    sentence: 'pod {pod} has no node, and nothing here places pods of its scheduler',
    meaning: 'Its schedulerName is not ours, or the control plane runs without placement (hawser up --bare).',
    ends: 'A scheduler binds the pod, or it is created with spec.nodeName.',
    hints: [['hawser get pod {pod} -o yaml', 'see spec.schedulerName']],
  },
  schedulingGated: {
    title: 'The pod is held back by a scheduling gate',
    sentence: 'pod {pod} has scheduling gates: {detail}',
    meaning: 'Whoever set the gate removes it when the pod may be placed.',
    ends: 'The gates are removed.',
    hints: [['hawser get pod {pod} -o yaml', 'see spec.schedulingGates']],
  },
  nodeGone: {
    title: 'The node of the pod does not exist',
    sentence: 'pod {pod} belongs to node {node}, which does not exist',
    meaning: 'Pods belong to one node for life. The Node object is gone; nobody acts for the pod.',
    ends: 'A node of that name comes back, or the pod is deleted.',
    hints: [
      ['hawser get nodes', 'see the nodes there are'],
      ['hawser delete pod {pod} --force', 'only if its machine is off for good, or nothing runs there'],
    ],
  },
  nodeNotReady: {
    title: 'The node is not ready',
    sentence: 'node {node} is not ready: {detail}',
    meaning:
      'The agent is stopped, the machine is off, it cannot reach the server, or it says itself that it cannot work. What ran there may still run; nothing else is done there.',
    ends: 'The node reports that it is ready.',
    hints: [
      ['hawser describe node/{node}', 'since when, and why'],
      ['hawser doctor', 'run it on that machine'],
      ['hawser delete pod {pod} --force', 'only if you know that the machine is off'],
    ],
  },
  claimMissing: {
    title: 'The pod names a claim that does not exist',
    sentence: 'pod {pod} uses claim {claim}, which does not exist',
    meaning:
      'The claim was never made, has another name, or lies in another namespace; pods use claims of their own namespace only.',
    ends: 'The claim appears.',
    hints: [
      ['hawser get pvc -A', 'see all claims'],
      ['hawser volume create {claim} --size 1Gi', 'make it'],
    ],
  },
  claimDeleting: {
    title: 'The pod names a claim that is being deleted',
    sentence: 'claim {claim} of pod {pod} is being deleted; a new pod does not get it',
    meaning: 'A claim on its way out is not given to new pods, so that it can go.',
    ends: 'The claim is gone and made anew.',
    hints: [['hawser why pvc/{claim}', 'what its deletion waits for']],
  },
  foreignClaim: {
    title: 'A claim of that name belongs to somebody else',
    sentence:
      'the ephemeral volume of pod {pod} needs claim {claim}, and a claim of that name exists that is not its own',
    meaning: 'Claims of ephemeral volumes are named POD-VOLUME. One made by hand is never taken over.',
    ends: 'The other claim goes, or the pod gets another name.',
    hints: [['hawser describe pvc/{claim}', 'see its owner']],
  },
  modeMismatch: {
    title: 'Block volume mounted, or filesystem volume mapped',
    sentence:
      'pod {pod} uses claim {claim} under the wrong list: volumeMounts are for Filesystem, volumeDevices for Block',
    meaning: 'The volume mode of the claim decides in which list of the container it must stand.',
    ends: 'The pod is corrected.',
    hints: [['hawser get pvc {claim} -o yaml', 'see spec.volumeMode']],
  },
  configMissing: {
    title: 'A ConfigMap or Secret of the pod does not exist',
    sentence: 'pod {pod} needs an object that does not exist: {detail}',
    meaning: 'Volumes from the API are set up when their objects exist; optional ones are left out.',
    ends: 'The object appears.',
    hints: [['hawser get configmaps,secrets', 'see which there are']],
  },
  nodeSilent: {
    title: 'The node says nothing about the pod',
    sentence: 'node {node} counts as ready and has said nothing new about pod {pod} for a while',
    meaning:
      'Everything before is done and the node agent is next. It may have just died, be cut off from the server, or be busy with very many pods; a dead one is noticed after its lease runs out.',
    ends: 'The agent speaks, or is seen to be dead.',
    hints: [
      ['hawser why node/{node}', 'does it still answer?'],
      ['hawser doctor', 'on the node: is the agent alive, does it reach the server?'],
    ],
  },
  volumesUnresolved: {
    title: 'The node cannot find the volumes of the pod',
    sentence: 'node {node} cannot resolve the volumes of pod {pod}',
    meaning: 'Claim, volume or plugin behind a volume of the pod could not be found; the words of the node are shown.',
    ends: 'The missing object appears; it is looked for again by itself.',
    hints: [
      ['hawser events --for pod/{pod}', 'what the node said'],
      ['hawser get pvc,pv', 'what there is'],
    ],
  },
  podListIncomplete: {
    title: 'The node has just started and does not undo anything yet',
    sentence: 'node {node} waits until it knows all its pods before it unmounts anything',
    meaning: 'After a restart a node may find mounts of pods it has not heard of yet. It mounts, but does not unmount.',
    ends: 'All pod sources have spoken.',
    hints: [['hawser get nodes', 'whether the node is ready']],
  },
  devicePathUnread: {
    title: 'The node has just started and asks where the device is',
    sentence: 'node {node} found volume {volume} on disk and reads from the server where its device is',
    meaning: 'Nothing found on disk is undone before the server told what is attached.',
    ends: 'The node reads its own Node object.',
    hints: [['hawser get nodes', 'whether the server is reachable from the node']],
  },
  labelMismatch: {
    title: 'The volume is still mounted with another SELinux label',
    sentence: 'node {node} takes volume {volume} off first: another pod had it with another SELinux label',
    meaning: 'A volume is mounted with one label for all its files; for a pod with another label it is mounted anew.',
    ends: 'The pod that had it has ended, and its volume is unmounted.',
    hints: [['hawser get pods -o wide', 'which pods of the node are going']],
  },
  claimsUnresolved: {
    title: 'Something found on disk may belong to a pod whose claims are not resolved',
    sentence: 'node {node} keeps volume {volume} until it knows which volumes its running pods need',
    meaning:
      'A running pod has a claim that could not be looked up since the restart; what was found may be its volume.',
    ends: 'The claims of the running pods are resolved.',
    hints: [['hawser get pvc -A', 'see which claims are not bound']],
  },
  busy: {
    title: 'Another operation on the volume runs',
    sentence: 'something else is being done to volume {volume} right now',
    meaning: 'One operation at a time per volume, so that none meets a half-done other.',
    ends: 'The running operation ends; each has a deadline.',
    hints: [['hawser get operations', 'which one, and since when']],
  },
  mountRunning: {
    title: 'The volume is being mounted',
    sentence: 'node {node} is mounting volume {volume} for pod {pod} right now',
    meaning:
      'A stage, publish or mount call is under way. Formatting a large disk or changing ownership of many files takes time.',
    ends: 'The call returns; each has a deadline.',
    hints: [['hawser get operations', 'which step, and since when']],
  },
  mountFailed: {
    title: 'Mounting failed',
    sentence: 'node {node} could not mount volume {volume} for pod {pod}; it will be tried again',
    meaning: 'The driver, plugin or kernel said no. Its words are shown.',
    ends: 'A later try succeeds.',
    hints: [
      ['hawser events --for pod/{pod}', 'all answers so far'],
      ['hawser doctor', 'on the node: kernel, tools, sockets'],
    ],
  },
  unmountFailed: {
    title: 'Unmounting failed',
    sentence: 'node {node} could not unmount volume {volume}; it will be tried again',
    meaning: 'The pod stays until its volumes are certainly gone; nobody else gets a volume that may be mounted.',
    ends: 'A later try succeeds.',
    hints: [['hawser doctor', 'on the node: who holds the mount']],
  },
  unmounting: {
    title: 'The volumes of the pod are being unmounted',
    sentence: 'pod {pod} has ended; node {node} is unmounting its volumes',
    meaning: 'Writing back caches to slow storage takes time.',
    ends: 'The unmount returns.',
    hints: [['hawser get operations', 'which step, and since when']],
  },
  podStopping: {
    title: 'The pod is being stopped',
    sentence: 'pod {pod} is being deleted; its containers have their grace period to end',
    meaning: 'Containers get SIGTERM, then the grace period, then SIGKILL. Volumes go afterwards.',
    ends: 'The containers end, at the latest when the grace period is over.',
    hints: [['hawser get pod {pod} -o yaml', 'see deletionGracePeriodSeconds']],
  },
  initRunning: {
    title: 'An init container runs first',
    sentence: 'init container {container} of pod {pod} runs; the others wait until it ends',
    meaning: 'Not a volume problem: init containers run one after the other, each to its end, before the others start.',
    ends: 'The init container ends with code 0.',
    hints: [['hawser logs {pod} -c {container}', 'what it is doing']],
  },
  containerStarting: {
    title: 'The container is being started',
    sentence: 'the volumes of pod {pod} are there; node {node} is starting container {container}',
    meaning:
      'The node sets up what the container sees. If that takes long, a path that it needs does not answer: a hostPath on a dead server, for example. Only this pod waits for it.',
    ends: 'The start succeeds, or is given up and tried again.',
    hints: [
      ['hawser events --for pod/{pod}', 'what the node said'],
      ['hawser doctor', 'on the node: mounts that hang'],
    ],
  },
  containerNotStarted: {
    title: 'The container cannot be started',
    sentence: 'the volumes of pod {pod} are there; its container is not started: {detail}',
    meaning: 'The program does not exist on the node, a mount path or sub-path is refused, or the runtime failed.',
    ends: 'A later try succeeds, or the pod is corrected.',
    hints: [
      ['hawser describe pod/{pod}', 'the state of each container'],
      ['hawser logs {pod} -c {container}', 'what it printed before'],
    ],
  },
  crashLoop: {
    title: 'The container ends again and again',
    sentence: 'the volumes of pod {pod} are there; container {detail}, and is started again with growing pauses',
    meaning:
      'Not a volume problem: the program itself exits, or its liveness probe fails. An init container must end with code 0 before the others start.',
    ends: 'The program stays up, or an init container ends well.',
    hints: [
      ['hawser logs {pod} -c {container}', 'what the program said before it ended'],
      ['hawser events --for pod/{pod}', 'whether a probe ended it'],
    ],
  },
  notReady: {
    title: 'The pod runs and is not ready',
    sentence: 'pod {pod} runs and is not ready: {detail}',
    meaning:
      'Not a volume problem: a startup or readiness probe does not succeed, or a readiness gate is closed. What the probe answered is told by the events.',
    ends: 'The probes succeed.',
    hints: [
      ['hawser events --for pod/{pod}', 'what the probe answered'],
      ['hawser logs {pod} -c {container}', 'what the program says'],
    ],
  },
  podFailed: {
    title: 'The pod has failed',
    sentence: 'pod {pod} has ended with an error: {detail}',
    meaning: 'Its containers ended and are not started again (restartPolicy), or the node refused the pod.',
    ends: 'Nothing; a failed pod stays until it is deleted.',
    hints: [
      ['hawser logs {pod}', 'what it said'],
      ['hawser delete pod {pod}', 'when it was read'],
    ],
  },
  noRuntime: {
    title: 'The node runs no containers',
    sentence: 'the volumes of pod {pod} are mounted; node {node} runs no containers',
    meaning: 'The node was started with --runtime none: it mounts volumes and leaves the rest to others.',
    ends: 'Nothing; this is how the node was started.',
    hints: [['hawser up --runtime process', 'start the node with a runtime']],
  },
  nodeAffinityConflict: {
    title: 'The volume cannot be reached from this node',
    sentence: 'volume {volume} has a node affinity that node {node} does not satisfy',
    meaning:
      'Local and zonal volumes can be used on some nodes only. The pod was put on another one, with spec.nodeName or by another scheduler.',
    ends: 'Nothing; the pod must be created on a fitting node.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see spec.nodeAffinity'],
      ['hawser get nodes -o yaml', 'see which node fits'],
    ],
  },
  singlePodWriter: {
    title: 'Another pod has the volume for itself',
    sentence: 'claim {claim} is ReadWriteOncePod and another pod uses it',
    meaning: 'This access mode allows one pod at a time, on the same node too.',
    ends: 'The other pod ends.',
    hints: [['hawser get pods -o wide', 'see which pod has it']],
  },
  mountOptionsRefused: {
    title: 'The volume type takes no mount options',
    sentence: 'volume {volume} has mount options, and its type does not support any',
    meaning: 'Options are refused rather than ignored.',
    ends: 'The options are removed from the volume or its class.',
    hints: [['hawser get pv {volume} -o yaml', 'see spec.mountOptions']],
  },
  deviceBusy: {
    title: 'The device or mount is still in use',
    sentence: 'a mount or device[ of volume {volume}] is held by another mount or process on node {node}',
    meaning:
      'EBUSY, or mounts that still refer to the device: a process has a file open, or another mount of the same device exists.',
    ends: 'The holder lets it go.',
    hints: [['hawser doctor', 'on the node: stale mounts and who holds them']],
  },
  storageHangs: {
    title: 'The storage does not answer',
    sentence: 'a call[ on volume {volume}] on node {node} hangs; it was given up and will be tried again',
    meaning:
      'NFS server gone, path lost, driver stuck. Hanging calls are killed or fenced off, so that other volumes go on.',
    ends: 'The storage answers again.',
    hints: [
      ['hawser doctor', 'on the node: hung mounts'],
      ['hawser get operations', 'since when'],
    ],
  },
  mountIsStale: {
    title: 'The mount is dead',
    sentence: 'volume {volume} on node {node} answers with a dead mount (stale handle or lost connection)',
    meaning: 'The server behind the mount forgot it or is gone. The mount is cleaned up before the next try.',
    ends: 'The server is back, or the mount is renewed.',
    hints: [['hawser doctor', 'on the node: stale mounts']],
  },
  ioError: {
    title: 'The device reports input/output errors',
    sentence: 'the kernel reports I/O errors[ for volume {volume}] on node {node}',
    meaning: 'A broken disk, a lost path, or a filesystem that shut itself down.',
    ends: 'The device works again.',
    hints: [['dmesg --level=err,warn', 'on the node: what the kernel says']],
  },
  noSpaceOnNode: {
    title: 'No space left',
    sentence: 'there is no space left on node {node}[ for volume {volume}][: {detail}]',
    meaning: 'The filesystem of the node root, or the volume itself, is full (ENOSPC or EDQUOT).',
    ends: 'Space is freed, or the volume is grown.',
    hints: [
      ['df -h', 'on the node: which filesystem is full'],
      ['hawser volume resize {claim} SIZE', 'if it is the volume itself'],
    ],
  },
  permissionDenied: {
    title: 'Permission denied',
    sentence: 'the kernel refuses an operation[ on volume {volume}] on node {node}[: {detail}]',
    meaning:
      'The agent does not run as root, lacks a capability (CAP_SYS_ADMIN to mount), or the storage forbids it (NFS root_squash).',
    ends: 'The rights are given.',
    hints: [['hawser doctor', 'on the node: rights and capabilities']],
  },
  readOnlyStorage: {
    title: 'The storage is read-only',
    sentence:
      'something must be written on node {node}[ for volume {volume}], and the storage is read-only[: {detail}]',
    meaning: 'EROFS: the device, export or snapshot is read-only, or the filesystem went read-only after an error.',
    ends: 'The pod mounts it read-only, or the storage is made writable.',
    hints: [['dmesg --level=err,warn', 'on the node: did the filesystem remount itself read-only?']],
  },
  programMissing: {
    title: 'A program is missing on the node',
    sentence: 'node {node} lacks a program[ that volume {volume} needs]: {detail}',
    meaning: 'mount.nfs, iscsiadm, mkfs and the like come from packages of the distribution.',
    ends: 'The package is installed; the next try finds it.',
    hints: [['hawser doctor', 'on the node: which package has it']],
  },
  ownershipFailed: {
    title: 'The files could not be given to the group of the pod',
    sentence: 'volume {volume} is mounted; setting group ownership for pod {pod} failed',
    meaning:
      'fsGroup asks for a change of group and mode of every file. Storage may refuse it (root_squash), or there are very many files.',
    ends: 'A later try succeeds.',
    hints: [['hawser get pod {pod} -o yaml', 'fsGroupChangePolicy: OnRootMismatch avoids most of the work']],
  },
  pluginMissing: {
    title: 'No plugin takes this volume',
    sentence: 'nothing on node {node} can handle the type of a volume of pod {pod}',
    meaning: 'The volume source is of a type that this program does not have, or two plugins claim it.',
    ends: 'Nothing; use a CSI driver for that storage.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see the sources of its volumes'],
      ['hawser get pv {volume} -o yaml', 'see its source'],
    ],
  },
  secretMissing: {
    title: 'A secret for the storage cannot be read',
    sentence: 'a secret that driver {driver} needs for volume {volume} cannot be read',
    meaning:
      'Class or volume name a secret (per call: provision, publish, stage, …) that does not exist or has the wrong namespace.',
    ends: 'The secret appears.',
    hints: [
      ['hawser get secrets -A', 'see which there are'],
      ['hawser get storageclass {class} -o yaml', 'see which secrets it names'],
    ],
  },
  savedStateBroken: {
    title: 'What the node remembered about the volume cannot be read',
    sentence: 'the record of volume {volume} on the disk of node {node} is missing or damaged',
    meaning: 'Beside each mount lies a file that says what it is. Without it the driver cannot be asked to undo it.',
    ends: 'Nothing, or the orphan cleaner once the mount is gone.',
    hints: [['hawser doctor', 'on the node: orphans, and how to remove them']],
  },
} as const satisfies CauseTable
