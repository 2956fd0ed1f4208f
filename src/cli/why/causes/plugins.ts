// Why can a built-in volume type not bring its volume? Paths, network disks, filesystems, objects and tokens of the pod.
import type { CauseTable } from './cause.ts'

export const pluginCauses = {
  pathUnfit: {
    title: 'The path on the node is missing or of another type',
    sentence: 'the path of volume {volume} on node {node} is not there, or not what pod {pod} asks for: {detail}',
    meaning:
      'A hostPath or local volume is a path of the node. Its type (Directory, File, Socket, …) is checked, and only the types that end in OrCreate make what is missing.',
    ends: 'The path appears with the right type; it is looked at again by itself.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see which path it names, and which type'],
      ['hawser events --for pod/{pod}', 'all answers so far'],
    ],
  },
  storageUnreachable: {
    title: 'The node does not reach the disk',
    sentence: 'node {node} cannot log in to the storage of volume {volume}, or its disk does not show up: {detail}',
    meaning:
      'iSCSI and Fibre Channel disks appear after discovery and login. The portal may be down, the target unknown, the login refused, or the kernel has not made the device yet.',
    ends: 'The disk appears at a later try.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see portal, target and logical unit'],
      ['hawser doctor', 'on the node: tools and modules'],
    ],
  },
  wrongFilesystem: {
    title: 'The filesystem on the device is not the expected one',
    sentence: 'the device of volume {volume} holds another filesystem than asked for, or a damaged one: {detail}',
    meaning:
      'A device that holds data is never formatted again, and one with errors that fsck cannot mend is not mounted.',
    ends: 'Nothing; somebody who knows the data decides.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see fsType'],
      ['lsblk --fs', 'on the node: what is on the device'],
    ],
  },
  unformattedReadOnly: {
    title: 'A blank device cannot be mounted read-only',
    sentence: 'the device of volume {volume} holds nothing yet, and pod {pod} wants to read only',
    meaning:
      'A blank device gets its filesystem when it is first mounted for writing. A read-only use never writes, so it never formats.',
    ends: 'A pod uses the volume with writing first.',
    hints: [['hawser get pod {pod} -o yaml', 'see readOnly of the volume']],
  },
  keyMissing: {
    title: 'A ConfigMap or Secret lacks a key',
    sentence: 'pod {pod} names a key that its object does not have: {detail}',
    meaning: 'items of a volume choose keys; a key that is missing stops the volume unless it is optional.',
    ends: 'The key appears in the object.',
    hints: [
      ['hawser get configmaps,secrets -o yaml', 'see which keys there are'],
      ['hawser get pod {pod} -o yaml', 'see which it names'],
    ],
  },
  tokenUnavailable: {
    title: 'No token can be made for the pod',
    sentence: 'the service account of pod {pod} gets no token: {detail}',
    meaning:
      'Projected tokens, and drivers that ask for them, need a service account that exists in the namespace of the pod.',
    ends: 'The service account appears.',
    hints: [
      ['hawser get serviceaccounts', 'see which there are'],
      ['hawser get pod {pod} -o yaml', 'see serviceAccountName'],
    ],
  },
  imageMissing: {
    title: 'The image of the volume is not on the node',
    sentence: 'node {node} does not have the image that a volume of pod {pod} names: {detail}',
    meaning:
      'Nothing here pulls images: an image volume is a directory that somebody unpacked, named to the node with --image-root.',
    ends: 'The image is unpacked on the node, and the node is started with --image-root REFERENCE=DIR.',
    hints: [['hawser get pod {pod} -o yaml', 'see which image it names']],
  },
  volumeSpecInvalid: {
    title: 'The volume asks for something that cannot be',
    sentence: 'a volume of pod {pod} cannot be made as it is written: {detail}',
    meaning:
      'Sizes, media, huge pages, fields of the downward API and mount paths are checked when the volume is made.',
    ends: 'Nothing; the pod is written anew.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see what its volumes ask for'],
      ['hawser delete pod {pod}', 'then apply it with the volume put right'],
    ],
  },
} as const satisfies CauseTable
