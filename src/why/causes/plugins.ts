// Why can a built-in volume type not bring its volume? Paths, network disks, filesystems, objects and tokens of the pod.
import type { CauseTable } from './cause.ts'

export const pluginCauses = {
  pathUnfit: {
    title: 'The path on the node is missing or has the wrong type',
    sentence: 'the path of volume {volume} on node {node} does not exist, or is not what pod {pod} requires: {detail}',
    meaning:
      'A hostPath or local volume is a path on the node. Its type (Directory, File, Socket, …) is checked. Only the types that end in OrCreate create a missing path.',
    ends: 'The path exists with the right type; it is checked again automatically.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see the path and its type'],
      ['hawser events --for pod/{pod}', 'all errors so far'],
    ],
  },
  storageUnreachable: {
    title: 'The node cannot reach the disk',
    sentence: 'node {node} cannot log in to the storage of volume {volume}, or its disk does not appear: {detail}',
    meaning:
      'iSCSI and Fibre Channel disks appear after discovery and login. The portal may be down, the target unknown, the login refused, or the kernel has not created the device yet.',
    ends: 'A later attempt finds the disk.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see portal, target and logical unit'],
      ['hawser doctor', 'on the node: tools and modules'],
    ],
  },
  wrongFilesystem: {
    title: 'The filesystem on the device is not the expected one',
    sentence: 'the device of volume {volume} has another filesystem than requested, or a damaged one: {detail}',
    meaning:
      'A device that contains data is never formatted. A filesystem with errors that fsck cannot repair is not mounted.',
    ends: 'Nothing. Somebody who knows the data must decide.',
    hints: [
      ['hawser get pv {volume} -o yaml', 'see fsType'],
      ['lsblk --fs', 'on the node: see what is on the device'],
    ],
  },
  unformattedReadOnly: {
    title: 'An empty device cannot be mounted read-only',
    sentence: 'the device of volume {volume} is not formatted yet, and pod {pod} mounts it read-only',
    meaning: 'An empty device is formatted when it is first mounted for writing. A read-only mount never formats.',
    ends: 'A pod mounts the volume for writing first.',
    hints: [['hawser get pod {pod} -o yaml', 'see readOnly of the volume']],
  },
  keyMissing: {
    title: 'A ConfigMap or Secret does not have a key',
    sentence: 'pod {pod} names a key that the object does not have: {detail}',
    meaning: 'The items of a volume choose keys. A missing key stops the volume unless it is optional.',
    ends: 'The key is added to the object.',
    hints: [
      ['hawser get configmaps,secrets -o yaml', 'see the keys'],
      ['hawser get pod {pod} -o yaml', 'see which keys it names'],
    ],
  },
  tokenUnavailable: {
    title: 'No token can be created for the pod',
    sentence: 'no token can be created for the service account of pod {pod}: {detail}',
    meaning: 'Projected tokens, and drivers that request tokens, need a service account in the namespace of the pod.',
    ends: 'The service account is created.',
    hints: [
      ['hawser get serviceaccounts', 'list those that exist'],
      ['hawser get pod {pod} -o yaml', 'see serviceAccountName'],
    ],
  },
  imageMissing: {
    title: 'The image of the volume is not on the node',
    sentence: 'node {node} does not have the image that a volume of pod {pod} names: {detail}',
    meaning:
      'Images are not pulled. An image volume is a directory with the unpacked image, which --image-root names to the node.',
    ends: 'The image is unpacked on the node, and the node is started with --image-root REFERENCE=DIR.',
    hints: [['hawser get pod {pod} -o yaml', 'see which image it names']],
  },
  volumeSpecInvalid: {
    title: 'The volume is not valid',
    sentence: 'a volume of pod {pod} cannot be set up as specified: {detail}',
    meaning: 'Sizes, media, huge pages, downward API fields and mount paths are checked when the volume is set up.',
    ends: 'Nothing. Correct the pod and create it again.',
    hints: [
      ['hawser get pod {pod} -o yaml', 'see its volumes'],
      ['hawser delete pod {pod}', 'then apply it with the corrected volume'],
    ],
  },
} as const satisfies CauseTable
