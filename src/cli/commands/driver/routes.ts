// `hawser driver …`: tools for people who run or write CSI drivers.
import { buildRoutes } from '../../routes.ts'
import { check } from './check.ts'
import { ls } from './ls.ts'
import { proxy, trace } from './proxy.ts'
import { rpc } from './rpc.ts'
import { serve } from './serve.ts'

export const driver = buildRoutes({
  routes: { check, ls, rpc, trace, proxy, serve },
  docs: {
    brief: 'List and check CSI drivers, watch or fail their calls, run the built-in one',
    fullDescription: [
      'Examples:',
      '  hawser driver check /run/csi/csi.sock',
      '  hawser driver ls',
      '  hawser driver trace /run/csi/csi.sock --socket /run/csi/traced.sock',
      '  hawser driver rpc /run/csi/csi.sock Node/NodeGetInfo',
    ].join('\n'),
  },
})
