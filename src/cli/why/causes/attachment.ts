// Why is a volume not on its node yet, or still on it? Causes between the bound claim and the attached volume.
import type { CauseTable } from './cause.ts'

export const attachmentCauses = {
  inUse: {
    title: 'The volume is still in use on its node',
    sentence: 'node {node} is healthy and still uses volume {volume}; it is never taken by force',
    meaning:
      'The node reports the volume in volumesInUse: it is mounted, or being unmounted. A healthy node is always waited for.',
    ends: 'The node unmounts it, which follows the end of its pods.',
    hints: [
      ['hawser get pods -A -o wide', 'which pods run on that node'],
      ['hawser why node/{node}', 'what the node is doing'],
    ],
  },
  inUseOnUnhealthyNode: {
    title: 'The node that had the volume does not answer',
    sentence:
      'node {node} is not healthy and last reported volume {volume} in use; it is taken by force at the time shown',
    meaning:
      'The node may still be writing. After six minutes without health the volume is detached by force, as Kubernetes does; at once if the node carries the taint node.kubernetes.io/out-of-service.',
    ends: 'The node comes back, or the time runs out.',
    hints: [
      ['hawser get nodes', 'see since when the node is not ready'],
      [
        "hawser detach pv/{volume} {node} --force --reason 'machine is off'",
        'only if you know that the machine is off',
      ],
    ],
  },
  forceDetachDisabled: {
    title: 'The node does not answer and force is switched off',
    sentence: 'node {node} is not healthy and last reported volume {volume} in use; forced detach is switched off here',
    meaning:
      'The server runs with forced detach disabled: safety before availability. Somebody must say that the machine is off.',
    ends: 'The node comes back, or is marked out of service.',
    hints: [
      [
        "hawser detach pv/{volume} {node} --force --reason 'machine is off'",
        'only if you know that the machine is off',
      ],
    ],
  },
  attachedElsewhere: {
    title: 'The volume is attached to another node',
    sentence: 'volume {volume} is attached to node {holder} and may be on one node only; node {node} waits',
    meaning: 'ReadWriteOnce and ReadWriteOncePod volumes go to one node at a time (Multi-Attach error).',
    ends: 'The other node lets it go, which follows the end of its pods.',
    hints: [
      ['hawser get pods -A -o wide', 'which pods use it on the other node'],
      ['hawser get volumeattachment', 'where it is attached'],
    ],
  },
  maybeAttachedElsewhere: {
    title: 'The volume may still be attached to another node',
    sentence:
      'an earlier attach or detach of volume {volume} on node {holder} ended in doubt; node {node} waits until that is certain',
    meaning: 'A call failed in a way that leaves its effect open. Two writers are worse than a wait.',
    ends: 'A detach from the other node succeeds; it is tried by itself.',
    hints: [
      ['hawser get operations', 'the detach and its last error'],
      ['hawser get volumeattachment', 'what the driver says'],
    ],
  },
  anotherNodeFirst: {
    title: 'Another node asked for the volume first',
    sentence: 'nodes {holder} and {node} both want volume {volume}, which may be on one only; {holder} is served first',
    meaning: 'Two pods on different nodes use a single-node volume.',
    ends: 'The pods on the other node end.',
    hints: [['hawser get pods -A -o wide', 'see both pods']],
  },
  nobodyAttaches: {
    title: 'Nobody attaches the volume',
    sentence: 'pod {pod} is on node {node}, and nobody has begun to attach its volume there',
    meaning:
      'The control plane attaches only for nodes that carry the annotation volumes.kubernetes.io/controller-managed-attach-detach; hawser agents set it. Or the controllers do not run.',
    ends: 'The node gets the annotation, or the controllers start.',
    hints: [
      ['hawser get node {node} -o yaml', 'see its annotations'],
      ['hawser get operations', 'do the controllers say anything at all?'],
    ],
  },
  attachRunning: {
    title: 'The volume is being attached',
    sentence: 'volume {volume} is being attached to node {node} right now',
    meaning: 'A ControllerPublishVolume call or its equivalent is under way.',
    ends: 'The driver answers.',
    hints: [['hawser get volumeattachment', 'status.attachError has the last word of the driver']],
  },
  attachFailed: {
    title: 'Attaching failed',
    sentence: 'volume {volume} could not be attached to node {node}; it will be tried again',
    meaning: 'The driver or plugin said no. Its words are shown.',
    ends: 'A later try succeeds.',
    hints: [
      ['hawser events --for pod/{pod}', 'all answers so far'],
      ['hawser get volumeattachment -o yaml', 'status.attachError'],
    ],
  },
  attacherSilent: {
    title: 'Nobody attaches volumes of this driver',
    sentence: 'a VolumeAttachment for volume {volume} exists, and no attacher of driver {driver} has answered',
    meaning: 'The driver wants volumes attached, but neither our own attacher runs for it nor a sidecar.',
    ends: 'The driver registers, or its sidecar starts.',
    hints: [
      ['hawser get csinode -o yaml', 'whether the driver is registered'],
      ['hawser get csidriver {driver} -o yaml', 'whether attachRequired is meant'],
    ],
  },
  detachFailed: {
    title: 'Detaching failed',
    sentence: 'volume {volume} could not be detached from node {node}; it will be tried again',
    meaning: 'Until a detach succeeds the volume counts as possibly attached, and no other node gets it.',
    ends: 'A later try succeeds.',
    hints: [
      ['hawser get volumeattachment -o yaml', 'status.detachError'],
      ['hawser detach pv/{volume} {node}', 'try now, if that is safe'],
    ],
  },
  detaching: {
    title: 'The volume is being detached',
    sentence: 'volume {volume} is being detached from node {node} right now',
    meaning: 'A ControllerUnpublishVolume call or its equivalent is under way.',
    ends: 'The driver answers.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  notAttached: {
    title: 'The node waits for the control plane to attach',
    sentence: 'node {node} has seen the pod and waits until volume {volume} appears in its volumesAttached',
    meaning: 'The node mounts only what the control plane says is attached.',
    ends: 'The attach succeeds.',
    hints: [
      ['hawser get volumeattachment', 'how far the attach has got'],
      ['hawser why pv/{volume}', 'what the attach waits for'],
    ],
  },
  notReportedInUse: {
    title: 'The node has not reported the volume in use yet',
    sentence:
      'node {node} must write volume {volume} into volumesInUse before it mounts, and the server has not confirmed it',
    meaning:
      'The report comes first so that nobody detaches a volume that is being mounted. Takes milliseconds unless the server is unreachable.',
    ends: 'The node status is written.',
    hints: [['hawser get nodes', 'whether the node is ready']],
  },
  attachmentOrphaned: {
    title: 'The attachment names a volume that does not exist',
    sentence: 'a VolumeAttachment for node {node} names volume {volume}, and there is no such volume',
    meaning:
      'Somebody made the attachment by hand with a wrong name, or the volume object was deleted while it was attached. Nobody can attach or detach what is not described.',
    ends: 'The volume object comes back, or the attachment is deleted.',
    hints: [
      ['hawser get pv', 'see the names of the volumes'],
      ['hawser get volumeattachment', 'see which node has it'],
    ],
  },
  attachLimit: {
    title: 'The node can take no more volumes',
    sentence: 'the driver says that node {node} has no room for another volume',
    meaning: 'Drivers limit how many volumes a node can have attached.',
    ends: 'Another volume leaves the node, or the pod is placed elsewhere.',
    hints: [
      ['hawser get csinode {node} -o yaml', 'allocatable.count is the limit'],
      ['hawser get volumeattachment', 'what is attached there'],
    ],
  },
  nodeUnknownToDriver: {
    title: 'The driver does not know the node',
    sentence: 'driver {driver} has no id for node {node}: it is not registered there',
    meaning: 'Attaching needs the node id that the driver announced on that node (CSINode).',
    ends: 'The driver registers on the node.',
    hints: [['hawser get csinode {node} -o yaml', 'see which drivers it has']],
  },
} as const satisfies CauseTable
