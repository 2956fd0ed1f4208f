// What does attaching mean for disks that the node connects by itself (iscsi, fc)? The control plane only records which nodes
// may use the volume (ISCSI-5).

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
