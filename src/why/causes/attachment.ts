// Why is a volume not on its node yet, or still on it? Causes between the bound claim and the attached volume.
import type { CauseTable } from './cause.ts'

export const attachmentCauses = {
  inUse: {
    title: 'The volume is still in use on its node',
    sentence: 'node {node} is healthy and still uses volume {volume}; the volume is not detached by force',
    meaning:
      'The node lists the volume in volumesInUse: it is mounted or being unmounted. A healthy node is always waited for.',
    ends: 'The node unmounts the volume after its pods have ended.',
    hints: [
      ['hawser get pods -A -o wide', 'see which pods run on that node'],
      ['hawser why node/{node}', 'see what the node is doing'],
    ],
  },
  inUseOnUnhealthyNode: {
    title: 'The node that uses the volume is not healthy',
    sentence:
      'node {node} is not healthy and last reported volume {volume} in use; the volume is detached by force at the time shown',
    meaning:
      'The node may still be writing. After six minutes the volume is detached by force, as in Kubernetes; at once if the node has the taint node.kubernetes.io/out-of-service.',
    ends: 'The node is healthy again, or the time is over.',
    hints: [
      ['hawser get nodes', 'see how long the node has been not ready'],
      [
        "hawser detach pv/{volume} {node} --force --reason 'machine is off'",
        'only if you know that the machine is off',
      ],
    ],
  },
  forceDetachDisabled: {
    title: 'The node is not healthy, and forced detach is disabled',
    sentence:
      'node {node} is not healthy and last reported volume {volume} in use; forced detach is disabled on this server',
    meaning:
      'The server was started with --disable-force-detach-on-timeout. Somebody must confirm that the machine is off.',
    ends: 'The node is healthy again, or gets the out-of-service taint.',
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
    ends: 'The other node unmounts the volume after its pods have ended, and it is detached.',
    hints: [
      ['hawser get pods -A -o wide', 'which pods use it on the other node'],
      ['hawser get volumeattachment', 'where it is attached'],
    ],
  },
  maybeAttachedElsewhere: {
    title: 'The volume may still be attached to another node',
    sentence:
      'it is unknown whether volume {volume} is still attached to node {holder}; node {node} waits until it is certainly detached',
    meaning:
      'An earlier attach or detach call failed without saying whether it had an effect. Two nodes that write to one volume would destroy data, so the second one waits.',
    ends: 'A detach from the other node succeeds; it is retried automatically.',
    hints: [
      ['hawser get operations', 'the detach and its last error'],
      ['hawser get volumeattachment', 'see where it is attached'],
    ],
  },
  anotherNodeFirst: {
    title: 'Another node gets the volume first',
    sentence:
      'nodes {holder} and {node} both need volume {volume}, which can be attached to one node only; {holder} gets it first',
    meaning: 'Two pods on different nodes use a volume that can be attached to one node.',
    ends: 'The pods on the other node end.',
    hints: [['hawser get pods -A -o wide', 'see both pods']],
  },
  nobodyAttaches: {
    title: 'No controller attaches the volume',
    sentence: 'pod {pod} is on node {node}, but no controller has started to attach its volume',
    meaning:
      'Volumes are attached only to nodes with the annotation volumes.kubernetes.io/controller-managed-attach-detach, which Hawser sets. Or the controllers are not running.',
    ends: 'The node gets the annotation, or the controllers start.',
    hints: [
      ['hawser get node {node} -o yaml', 'see its annotations'],
      ['hawser get operations', 'see whether the controllers do anything at all'],
    ],
  },
  attachRunning: {
    title: 'The volume is being attached',
    sentence: 'volume {volume} is being attached to node {node} right now',
    meaning: 'A ControllerPublishVolume call, or the equivalent of another plugin, is in progress.',
    ends: 'The driver answers.',
    hints: [['hawser get volumeattachment', 'status.attachError has the last error of the driver']],
  },
  attachFailed: {
    title: 'Attaching failed',
    sentence: 'volume {volume} could not be attached to node {node}; it is retried automatically',
    meaning: 'The driver or plugin refused. Its error message is shown.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser events --for pod/{pod}', 'all errors so far'],
      ['hawser get volumeattachment -o yaml', 'status.attachError'],
    ],
  },
  attacherSilent: {
    title: 'No attacher handles this driver',
    sentence: 'there is a VolumeAttachment for volume {volume}, but no attacher of driver {driver} has answered',
    meaning:
      'The driver requires attaching (attachRequired), but neither the built-in attacher nor a sidecar runs for it.',
    ends: 'The driver registers, or its sidecar starts.',
    hints: [
      ['hawser get csinode -o yaml', 'see whether the driver is registered'],
      ['hawser get csidriver {driver} -o yaml', 'see whether attachRequired is intended'],
    ],
  },
  detachFailed: {
    title: 'Detaching failed',
    sentence: 'volume {volume} could not be detached from node {node}; it is retried automatically',
    meaning: 'Until a detach succeeds, the volume may still be attached, and no other node gets it.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser get volumeattachment -o yaml', 'status.detachError'],
      ['hawser detach pv/{volume} {node}', 'try it now, if it is safe'],
    ],
  },
  detaching: {
    title: 'The volume is being detached',
    sentence: 'volume {volume} is being detached from node {node} right now',
    meaning: 'A ControllerUnpublishVolume call, or the equivalent of another plugin, is in progress.',
    ends: 'The driver answers.',
    hints: [['hawser get operations', 'how long it has been running']],
  },
  notAttached: {
    title: 'The node waits for the volume to be attached',
    sentence: 'node {node} waits until volume {volume} is in its status.volumesAttached',
    meaning: 'A node mounts a volume only after the attach/detach controller has reported it as attached.',
    ends: 'The attach succeeds.',
    hints: [
      ['hawser get volumeattachment', 'see the state of the attachment'],
      ['hawser why pv/{volume}', 'see what the attachment waits for'],
    ],
  },
  notReportedInUse: {
    title: 'The node has not reported the volume in use yet',
    sentence:
      'node {node} must report volume {volume} in volumesInUse before it mounts it, and the server has not confirmed that yet',
    meaning:
      'The report comes first, so that nobody detaches a volume that is being mounted. It takes milliseconds unless the server is unreachable.',
    ends: 'The node status is written.',
    hints: [['hawser get nodes', 'see whether the node is ready']],
  },
  attachmentOrphaned: {
    title: 'The attachment names a volume that does not exist',
    sentence: 'a VolumeAttachment for node {node} names volume {volume}, which does not exist',
    meaning:
      'Somebody created the attachment with a wrong name, or the volume object was deleted while it was attached. Without the volume object nothing can be attached or detached.',
    ends: 'The volume object is created again, or the attachment is deleted.',
    hints: [
      ['hawser get pv', 'list the volumes'],
      ['hawser get volumeattachment', 'see which node has it'],
    ],
  },
  attachLimit: {
    title: 'The node cannot attach more volumes',
    sentence: 'the driver reports that node {node} cannot attach another volume',
    meaning: 'Drivers limit how many volumes a node can have attached.',
    ends: 'Another volume is detached from the node, or the pod is scheduled elsewhere.',
    hints: [
      ['hawser get csinode {node} -o yaml', 'allocatable.count is the limit'],
      ['hawser get volumeattachment', 'see what is attached there'],
    ],
  },
  nodeUnknownToDriver: {
    title: 'The driver does not know the node',
    sentence: 'driver {driver} has no node id for node {node}: it is not registered there',
    meaning: 'To attach, the driver needs the node id that it reported on that node (CSINode).',
    ends: 'The driver registers on the node.',
    hints: [['hawser get csinode {node} -o yaml', 'see which drivers it has']],
  },
} as const satisfies CauseTable
