// Why is a pod not scheduled, not started, not ready or not gone? Causes that lie with the pod itself, its node or its containers.
import type { CauseTable } from './cause.ts'

export const podCauses = {
  noNodes: {
    title: 'There are no nodes',
    sentence: 'there is no node, so pod {pod} cannot be scheduled',
    meaning: 'The control plane runs without a node agent (hawser up --bare), or none has registered yet.',
    ends: 'A node registers.',
    hints: [
      ['hawser get nodes', 'list the nodes'],
      ['hawser up', 'start the server with a node (without --bare)'],
    ],
  },
  noNodeFits: {
    title: 'No node fits the pod',
    sentence: 'pod {pod} does not fit on any node: {detail}',
    meaning:
      'The scheduler checks readiness, taints, selectors, affinity, resource requests, from which nodes the volumes can be reached, and volume limits. The message counts the reasons over all nodes.',
    ends: 'A node, a volume or another pod changes so that one fits.',
    hints: [
      ['hawser get nodes -o wide', 'list the nodes'],
      ['hawser describe pod/{pod}', 'see what it requests'],
      ['hawser get pv -o yaml', 'nodeAffinity says where a volume can be reached'],
    ],
  },
  volumesBeingBound: {
    title: 'The pod waits for its claims to be bound',
    sentence: 'a node was chosen for pod {pod}; the pod is scheduled when its claims are bound',
    meaning:
      'Claims with WaitForFirstConsumer are bound for the chosen node first. After ten minutes another node is tried.',
    ends: 'The claims are bound.',
    hints: [['hawser get pvc', 'then ask: hawser why pvc/NAME']],
  },
  noScheduler: {
    title: 'No scheduler handles the pod',
    sentence: 'pod {pod} has no node, and its scheduler is not running here',
    meaning: 'The pod names another scheduler (spec.schedulerName), or the server runs without one (hawser up --bare).',
    ends: 'A scheduler binds the pod, or it is created with spec.nodeName.',
    hints: [['hawser get pod {pod} -o yaml', 'see spec.schedulerName']],
  },
  schedulingGated: {
    title: 'The pod has scheduling gates',
    sentence: 'pod {pod} has scheduling gates: {detail}',
    meaning: 'Whoever set the gate removes it when the pod may be scheduled.',
    ends: 'The gates are removed.',
    hints: [['hawser get pod {pod} -o yaml', 'see spec.schedulingGates']],
  },
  nodeGone: {
    title: 'The node of the pod does not exist',
    sentence: 'pod {pod} is bound to node {node}, which does not exist',
    meaning: 'A pod stays on its node for its whole life. The Node object was deleted, so no agent acts for the pod.',
    ends: 'A node with that name registers again, or the pod is deleted.',
    hints: [
      ['hawser get nodes', 'list the nodes'],
      ['hawser delete pod {pod} --force', 'only if the machine is off for good, or nothing of the pod runs there'],
    ],
  },
  nodeNotReady: {
    title: 'The node is not ready',
    sentence: 'node {node} is not ready: {detail}',
    meaning:
      'The agent is stopped, the machine is off, it cannot reach the server, or it reports a problem itself. Containers that ran there may still run; nothing new happens there.',
    ends: 'The node reports that it is ready.',
    hints: [
      ['hawser describe node/{node}', 'see how long, and why'],
      ['hawser doctor', 'run it on that machine'],
      ['hawser delete pod {pod} --force', 'only if you know that the machine is off'],
    ],
  },
  claimMissing: {
    title: 'The pod names a claim that does not exist',
    sentence: 'pod {pod} uses claim {claim}, which does not exist',
    meaning:
      'The claim was never created, has another name, or is in another namespace. Pods use claims of their own namespace only.',
    ends: 'The claim is created.',
    hints: [
      ['hawser get pvc -A', 'list all claims'],
      ['hawser volume create {claim} --size 1Gi', 'create it'],
    ],
  },
  claimDeleting: {
    title: 'The pod uses a claim that is being deleted',
    sentence: 'claim {claim} of pod {pod} is being deleted; new pods cannot use it',
    meaning: 'A claim that is being deleted is not given to new pods. Otherwise it could never be deleted.',
    ends: 'The claim is deleted and created again.',
    hints: [['hawser why pvc/{claim}', 'what its deletion waits for']],
  },
  foreignClaim: {
    title: 'The claim of an ephemeral volume belongs to somebody else',
    sentence:
      'the ephemeral volume of pod {pod} needs claim {claim}, but a claim with that name exists and does not belong to the pod',
    meaning:
      'The claim of an ephemeral volume is named POD-VOLUME. An existing claim with that name is not taken over.',
    ends: 'The other claim is deleted, or the pod gets another name.',
    hints: [['hawser describe pvc/{claim}', 'see its owner']],
  },
  modeMismatch: {
    title: 'The volume mode does not match the pod',
    sentence:
      'pod {pod} uses claim {claim} in the wrong list: volumeMounts are for Filesystem, volumeDevices for Block',
    meaning: 'The volume mode of the claim decides which list of the container must name it.',
    ends: 'The pod is corrected.',
    hints: [['hawser get pvc {claim} -o yaml', 'see spec.volumeMode']],
  },
  configMissing: {
    title: 'A ConfigMap or Secret does not exist',
    sentence: 'pod {pod} needs an object that does not exist: {detail}',
    meaning: 'A volume from a ConfigMap or Secret is mounted when the object exists. Optional objects may be missing.',
    ends: 'The object is created.',
    hints: [['hawser get configmaps,secrets', 'list those that exist']],
  },
  podStopping: {
    title: 'The pod is being stopped',
    sentence: 'pod {pod} is being deleted; its containers have their grace period to stop',
    meaning: 'Containers get SIGTERM, and SIGKILL after the grace period. Then the volumes are unmounted.',
    ends: 'The containers stop, at the latest after the grace period.',
    hints: [['hawser get pod {pod} -o yaml', 'see deletionGracePeriodSeconds']],
  },
  initRunning: {
    title: 'An init container runs first',
    sentence: 'init container {container} of pod {pod} is running; the other containers wait for it',
    meaning: 'This is not a volume problem. Init containers run one after the other before the other containers start.',
    ends: 'The init container exits with code 0.',
    hints: [['hawser logs {pod} -c {container}', 'see what it is doing']],
  },
  containerStarting: {
    title: 'The container is being started',
    sentence: 'the volumes of pod {pod} are mounted; node {node} is starting container {container}',
    meaning:
      'The node prepares the mounts of the container. If that takes long, a path that it needs does not answer, for example a hostPath on a dead NFS server. Other pods are not affected.',
    ends: 'The start succeeds, or times out and is retried.',
    hints: [
      ['hawser events --for pod/{pod}', 'see what the node reported'],
      ['hawser doctor', 'on the node: mounts that hang'],
    ],
  },
  containerNotStarted: {
    title: 'The container cannot be started',
    sentence: 'the volumes of pod {pod} are mounted, but its container is not started: {detail}',
    meaning: 'The program does not exist on the node, a mount path or subPath was refused, or the runtime failed.',
    ends: 'A retry succeeds, or the pod is corrected.',
    hints: [
      ['hawser describe pod/{pod}', 'see the state of each container'],
      ['hawser logs {pod} -c {container}', 'see what it printed'],
    ],
  },
  subPathLeaves: {
    title: 'A subPath leads out of its volume',
    sentence:
      'container {container} of pod {pod} asks for a subPath that leads out of its volume, so it is not started',
    meaning:
      "A part of the subPath is a symbolic link to a place outside of the volume. Following it would give the container files of the node. Somebody who can write to the volume made the link, perhaps an earlier container. The node's paths are in its log, not here.",
    ends: 'The link is removed, or the pod asks for another subPath. It is tried again automatically.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see subPath of each volumeMount'],
      ['hawser delete pod {pod}', 'then create it with another subPath'],
    ],
  },
  noCommand: {
    title: 'The container has no command',
    sentence:
      'container {container} of pod {pod} names no command, and the program of image {image} is unknown on node {node}',
    meaning:
      'Pods run as processes: images are not pulled, so nobody knows what an image would run. A container without a command needs a mapping from its image to a program. Args alone are run as a command unless they begin with an option.',
    ends: 'The pod is created again with a command, or the node is started with --image-entrypoint IMAGE=PATH.',
    hints: [
      ['hawser delete pod {pod}', 'then create it again with a command'],
      [
        'hawser up --image-entrypoint {image}=PATH',
        'or start the node with the program of the image (also: hawser agent)',
      ],
    ],
  },
  crashLoop: {
    title: 'The container exits again and again',
    sentence: 'the volumes of pod {pod} are mounted, but container {detail}; it is restarted with back-off',
    meaning:
      'This is not a volume problem. The program exits, or its liveness probe fails. An init container must exit with code 0 before the other containers start.',
    ends: 'The program keeps running, or the init container succeeds.',
    hints: [
      ['hawser logs {pod} -c {container}', 'see what the program printed'],
      ['hawser events --for pod/{pod}', 'see whether a probe failed'],
    ],
  },
  notReady: {
    title: 'The pod is running but not ready',
    sentence: 'pod {pod} is running but not ready: {detail}',
    meaning:
      'This is not a volume problem. A startup or readiness probe fails, or a readiness gate is not open. The events show what the probe returned.',
    ends: 'The probes succeed.',
    hints: [
      ['hawser events --for pod/{pod}', 'see what the probe returned'],
      ['hawser logs {pod} -c {container}', 'see what the program printed'],
    ],
  },
  podFailed: {
    title: 'The pod has failed',
    sentence: 'pod {pod} has failed: {detail}',
    meaning: 'Its containers have ended and are not restarted (restartPolicy), or the node rejected the pod.',
    ends: 'Nothing. A failed pod stays until it is deleted.',
    hints: [
      ['hawser logs {pod}', 'see what it printed'],
      ['hawser delete pod {pod}', 'delete it when you have read its logs'],
    ],
  },
  noRuntime: {
    title: 'The node does not run containers',
    sentence: 'the volumes of pod {pod} are mounted, but node {node} does not run containers',
    meaning: 'The node was started with --runtime none: it only mounts volumes.',
    ends: 'Nothing. This is how the node was started.',
    hints: [['hawser up --runtime process', 'start the node with a runtime']],
  },
} as const satisfies CauseTable
