// `hawser lab …`: what is wrong with a CSI driver? Checks that make, mount and remove volumes, and a report.
import { buildRoutes } from '../../routes.ts'
import { explainCheck } from './explain.ts'
import { ls } from './ls.ts'
import { run } from './run.ts'

export const lab = buildRoutes({
  routes: { run, ls, explain: explainCheck },
  docs: {
    brief: 'Test a CSI driver and report what is wrong with it',
    fullDescription: [
      'Examples:',
      '  sudo hawser lab run',
      '  sudo hawser lab run --driver /run/csi/csi.sock --report lab-report',
      '  hawser lab ls',
      '  hawser lab explain honesty/create-volume/twice',
    ].join('\n'),
  },
})
