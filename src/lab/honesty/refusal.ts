// What is a call that must be refused? What is wrong with it and the status, as data; each becomes a check.
import type { StatusName } from '../../csi/codes.ts'
import type { Check, Needs } from '../check.ts'
import { refused } from '../finding.ts'
import type { Lab } from '../lab.ts'

export interface Refusal {
  readonly id: string
  readonly call: string
  /** Completes "CALL …": "without a name". */
  readonly wrong: string
  readonly statuses: readonly [StatusName, ...StatusName[]]
  readonly needs: Needs
  /** What beside the call is needed is made before; the call itself comes back as a promise in a box. */
  ask(lab: Lab): Promise<{ readonly call: Promise<unknown> }>
}

export const plain =
  (ask: (lab: Lab) => Promise<unknown>): Refusal['ask'] =>
  async (lab) => ({ call: ask(lab) })

const clauses: Readonly<Partial<Record<StatusName, string>>> = {
  INVALID_ARGUMENT: 'a REQUIRED field that is missing or not valid is answered with INVALID_ARGUMENT',
  NOT_FOUND: 'an id that stands for nothing is answered with NOT_FOUND',
  ABORTED: 'a starting_token that is not valid is answered with ABORTED',
}

export function refusalCheck({ id, call, wrong, statuses, needs, ask }: Refusal): Check {
  return {
    id: `honesty/${id}`,
    suite: 'honesty',
    title: `${call} ${wrong} is refused`,
    call,
    says: clauses[statuses[0]] ?? `the answer is ${statuses.join(' or ')}`,
    needs,
    async run(lab) {
      const asked = await ask(lab)
      await refused(`${call} ${wrong}`, asked.call, ...statuses)
    },
  }
}
