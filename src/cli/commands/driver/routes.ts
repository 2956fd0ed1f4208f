// `hawser driver …`: tools for people who run or write CSI drivers.
import { buildRoutes } from '../../routes.ts'
import { check } from './check.ts'
import { rpc } from './rpc.ts'
import { serve } from './serve.ts'

export const driver = buildRoutes({
  routes: { check, rpc, serve },
  docs: {
    brief: 'Check a CSI driver, call it, or run the built-in one',
    fullDescription: [
      'Examples:',
      '  hawser driver check /run/csi/csi.sock',
      '  hawser driver rpc /run/csi/csi.sock Node/NodeGetInfo',
    ].join('\n'),
  },
})
