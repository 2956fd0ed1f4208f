// Which calls fail, and how? Rules as people write them: `CreateVolume=answer-lost@2`, `Node*=late:5s`, `*=UNAVAILABLE%10`.
import { statusCodes } from './codes.ts'
import type { StatusName } from './codes.ts'
import type { Fault } from './faults.ts'

export interface FaultRule {
  /** Name of a call; `*` stands for any characters. */
  readonly rpc: string
  readonly fault: Fault
  /** Only this call of the name, counted from 1. */
  readonly nth?: number
  /** In a hundred calls, by chance. */
  readonly percent?: number
}

/** The words for each fault, as the help shows them. */
export const faultForms: readonly (readonly [form: string, meaning: string])[] = [
  ['STATUS', 'answer with this status (UNAVAILABLE, ABORTED, …); the driver does not see the call'],
  ['answer-lost', 'the driver works, its answer is lost: the caller gets UNAVAILABLE'],
  ['twice', 'the driver gets the call twice'],
  ['late:DURATION', 'the answer comes later by this (500ms, 30s, 2m)'],
  ['silent', 'the driver works, and no answer ever comes'],
  ['lost', 'the driver does not see the call, and no answer ever comes'],
  ['ignored', 'answer OK with an empty message; the driver does not see the call'],
  ['cut-before', 'the connection is cut; the driver does not see the call'],
  ['cut-after', 'the driver works, then the connection is cut'],
]

const form =
  /^(?<rpc>[A-Za-z*]+)=(?<kind>[A-Za-z_-]+)(?::(?<ms>\d+(?:\.\d+)?)(?<unit>ms|s|m))?(?:@(?<nth>[1-9]\d*)|%(?<percent>\d+(?:\.\d+)?))?$/
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 }

export function faultRuleFrom(text: string, rpcs: readonly string[]): FaultRule {
  const groups = form.exec(text)?.groups
  if (groups === undefined) throw new SyntaxError(`"${text}" is no fault; examples: ${examples}`)
  const { rpc = '', kind = '', ms, unit = '', nth, percent } = groups
  if (!rpcs.some((each) => matches(rpc, each))) {
    throw new SyntaxError(`"${text}": there is no CSI call ${rpc}; calls: ${rpcs.join(', ')}`)
  }
  const fault = faultFrom(kind, ms === undefined ? undefined : Number(ms) * (unitMs[unit] ?? 1))
  if (fault === undefined) {
    throw new SyntaxError(`"${text}": ${kind} is no fault; one of: ${faultForms.map(([each]) => each).join(', ')}`)
  }
  if (Number(percent) > 100) throw new SyntaxError(`"${text}": ${percent} is more than 100 percent`)
  return {
    rpc,
    fault,
    ...(nth === undefined ? {} : { nth: Number(nth) }),
    ...(percent === undefined ? {} : { percent: Number(percent) }),
  }
}

const examples = 'CreateVolume=UNAVAILABLE, NodeStageVolume=late:30s, CreateVolume=answer-lost@1, *=twice%10'

function faultFrom(kind: string, ms: number | undefined): Fault | undefined {
  if (kind === 'late') return ms === undefined ? undefined : { kind: 'late', ms }
  if (ms !== undefined) return undefined
  if (isStatus(kind)) return { kind: 'refused', status: kind }
  switch (kind) {
    case 'answer-lost':
      return { kind: 'answerLost', status: 'UNAVAILABLE' }
    case 'twice':
      return { kind: 'twice' }
    case 'silent':
    case 'lost':
    case 'ignored':
      return { kind }
    case 'cut-before':
      return { kind: 'cut', when: 'before' }
    case 'cut-after':
      return { kind: 'cut', when: 'after' }
    default:
      return undefined
  }
}

function isStatus(text: string): text is StatusName {
  return Object.hasOwn(statusCodes, text)
}

/** The first rule that applies to a call; `chance` is asked (0 to 1) only for rules with percent. */
export function faultFor(
  rules: readonly FaultRule[],
  rpc: string,
  earlier: number,
  chance: () => number,
): Fault | undefined {
  return rules.find(
    (rule) =>
      matches(rule.rpc, rpc) &&
      (rule.nth === undefined || rule.nth === earlier + 1) &&
      (rule.percent === undefined || chance() * 100 < rule.percent),
  )?.fault
}

function matches(pattern: string, rpc: string): boolean {
  const parts = pattern.split('*')
  if (parts.length === 1) return pattern === rpc
  return new RegExp(`^${parts.join('.*')}$`).test(rpc)
}
