// What does attaching mean for disks that a node fetches by itself? Nothing but the permission (ISCSI-5, FC): the control
// plane marks the volume attached, so that it knows which nodes may use it.

import type { Attacher, ClusterPlugin } from '../../volume/plugin.ts'

const attacher: Attacher = {
  attach: async () => '',
  detach: async () => undefined,
  verify: async ({ specs }) => specs.map(() => true),
}

export const formalAttacher: ClusterPlugin = {
  attacher: () => attacher,
  attacherByName: () => attacher,
}
