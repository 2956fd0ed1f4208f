// Does the driver contradict itself before anything is made? The rules of `driver check`, one check each.
import type { Check } from '../check.ts'
import { factRules } from '../driver-report.ts'
import { Finding, must } from '../finding.ts'

/** Calls that only read. Which of them failed is known before the first check. */
const reads: readonly (readonly [rpc: string, id: string, needs: Check['needs']])[] = [
  ['Probe', 'identity/probe', {}],
  ['GetPluginCapabilities', 'identity/capabilities', {}],
  ['ControllerGetCapabilities', 'capabilities/controller', { plugin: ['CONTROLLER_SERVICE'] }],
  ['NodeGetCapabilities', 'capabilities/node', {}],
  ['NodeGetInfo', 'node-info/answers', {}],
  ['ListVolumes', 'list-volumes/answers', { controller: ['LIST_VOLUMES'] }],
  ['GetCapacity', 'get-capacity/answers', { controller: ['GET_CAPACITY'] }],
]

/** Said by the driver before the first check: without these answers the rules about them have nothing to look at. */
const answerOf: Readonly<Record<string, string>> = { 'identity/ready': 'Probe' }

export const factChecks: readonly Check[] = [
  ...reads.map(([rpc, id, needs]): Check => ({
    id: `honesty/${id}`,
    suite: 'honesty',
    title: `${rpc} answers`,
    call: rpc,
    says: `${rpc} is REQUIRED of a plugin that serves it`,
    needs,
    async run({ facts }) {
      const failure = facts.failures[rpc]
      must(failure === undefined, `${rpc} must succeed; the driver answered ${failure}`)
    },
  })),
  ...factRules.map((rule): Check => ({
    id: `honesty/${rule.id}`,
    suite: 'honesty',
    title: rule.title,
    call: rule.call,
    says: rule.says,
    needs: {},
    async run({ facts }) {
      if (facts.failures[answerOf[rule.id] ?? ''] !== undefined) return
      const problem = rule.problem(facts)
      if (problem !== undefined) throw new Finding(problem)
    },
  })),
]
