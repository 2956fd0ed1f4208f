// How is an explanation read aloud? The cause first, then the chain, then what helps; healthy things tell their history.
import { kinds } from '../api/kinds.ts'
import { statusCodes } from '../csi/codes.ts'
import type { Context } from './context.ts'
import type { Style } from './output.ts'
import { duration, paint } from './output.ts'
import type { ExplainedBlock, ExplainedStep, Explanation } from '../why/explain.ts'
import type { WaitingObject } from '../why/list-waiting.ts'

export function printExplanation(context: Context, explanation: Explanation, now: number): void {
  const lines = [headline(context, explanation), ...blockLines(context, explanation.blocked, now), '']
  lines.push(...explanation.steps.map((step) => stepLine(context, step, explanation.steps, explanation.blocked, now)))
  if (explanation.also.length > 0) {
    lines.push('', 'Also waiting:')
    for (const other of explanation.also.slice(0, 10)) lines.push(`  ${other.sentence}`)
    if (explanation.also.length > 10) lines.push(`  … and ${explanation.also.length - 10} more (-o json has all)`)
  }
  if (explanation.blocked) {
    lines.push('', 'What helps:')
    const width = Math.max(...explanation.blocked.hints.map(({ command }) => command.length))
    for (const { command, purpose } of explanation.blocked.hints)
      lines.push(`  ${paint(context, 'cyan', command)}${' '.repeat(width - command.length + 3)}${purpose}`)
    lines.push(`  more: hawser explain ${explanation.blocked.cause}`)
  } else lines.push(...historyLines(explanation))
  context.print(lines.join('\n'))
}

function headline(context: Context, { subject, verdict, blocked }: Explanation): string {
  switch (verdict) {
    case 'healthy':
      return `${subject}: ${paint(context, 'green', 'nothing is wrong')}`
    case 'working':
      return `${subject}: ${paint(context, 'yellow', 'in progress')}${blocked ? `: ${blocked.sentence}` : ''}`
    case 'waiting':
      return `${subject}: ${paint(context, 'red', 'waiting')}: ${blocked?.sentence ?? ''}`
    case 'missing':
      return `${subject}: does not exist`
    default:
      return verdict satisfies never
  }
}

function blockLines(context: Context, block: ExplainedBlock | undefined, now: number): string[] {
  if (!block) return []
  const { step, actor, since, error, attempts, nextTry } = block
  const inside = step.inside === undefined ? '' : `, in ${step.inside}`
  const lines = [`  step ${step.number} of ${step.of}: ${step.name}${inside} (${actor})`]
  if (since !== undefined) lines.push(`  since ${duration(Math.max(0, now - Date.parse(since)))} (${since})`)
  if (error) {
    const label = error.code === undefined ? 'message' : 'last error'
    // Programs speak in several lines; all of them belong here.
    const words = error.message.trim().replaceAll(/\n\s*/g, '\n    ')
    lines.push(`  ${label}: ${paint(context, 'bold', words)}${tail(error)}`)
  }
  if (attempts !== undefined && attempts > 1) lines.push(`  tried ${attempts} times`)
  if (nextTry !== undefined) {
    const ms = Date.parse(nextTry) - now
    lines.push(`  next try ${ms > 0 ? `in ${duration(ms)}` : 'now'} (${nextTry})`)
  }
  return lines
}

function tail({ code, effect }: { readonly code?: string; readonly effect?: string }): string {
  const parts = [code, effectText(code, effect)].filter((part) => part)
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`
}

/** What a driver's final status says is the driver's word: nobody has looked (CSI-15). */
export function effectText(code: string | undefined, effect: string | undefined): string {
  if (effect === undefined) return ''
  if (effect === 'none' && code !== undefined && Object.hasOwn(statusCodes, code))
    return 'by this status the driver says that it had no effect'
  return effects[effect] ?? ''
}

const effects: Readonly<Record<string, string>> = {
  none: 'it had no effect',
  unknown: 'it may have had an effect',
  untried: 'it was not attempted',
}

const marks: Readonly<Record<ExplainedStep['state'], readonly [string, Style]>> = {
  done: ['✓', 'green'],
  working: ['…', 'yellow'],
  blocked: ['✗', 'red'],
  later: ['·', 'dim'],
}

function stepLine(
  context: Context,
  step: ExplainedStep,
  all: readonly ExplainedStep[],
  block: ExplainedBlock | undefined,
  now: number,
): string {
  const [mark, style] = marks[step.state]
  const width = Math.max(...all.map(nameOf).map(({ length }) => length))
  const actors = Math.max(...all.map(({ actor }) => actor.length))
  const is = step.number === block?.step.number ? '  ← here' : ''
  const when = step.at === undefined ? '' : `${duration(Math.max(0, now - Date.parse(step.at)))} ago`
  const took = step.tookMs === undefined ? '' : `, took ${duration(step.tookMs)}`
  const row = `${String(step.number).padStart(3)} ${paint(context, style, mark)} ${nameOf(step).padEnd(width + 2)}`
  return `${row}${step.actor.padEnd(actors + 2)}${when}${took}${is}`.trimEnd()
}

const nameOf = ({ name, detail }: ExplainedStep) => (detail === undefined ? name : `${name} ${detail}`)

function historyLines({ history }: Explanation): string[] {
  if (history.length === 0) return []
  const width = Math.max(...history.map(({ operation }) => operation.length))
  return [
    '',
    'History:',
    ...history.map(({ at, actor, operation, step, phase, tookMs, objects }) => {
      const failed = phase === 'Failed' ? ' failed' : ''
      const rest = [actor, step, objects.slice(0, 2).join(' ')].filter(Boolean).join('  ')
      return `  ${at}  ${operation.padEnd(width)}  ${duration(tookMs).padStart(7)}${failed}  ${rest}`
    }),
  ]
}

/** What `hawser why` without an object prints: a line per trouble, with the command that tells more. */
export function printWaiting(
  context: Context,
  items: readonly (WaitingObject & { readonly command: string })[],
  namespace: string | undefined,
  now: number,
): void {
  const where = namespace === undefined ? 'the cluster' : `namespace ${namespace}`
  if (items.length === 0) return context.print(`${where}: ${paint(context, 'green', 'nothing waits')}`)
  const stuck = items.filter(({ verdict }) => verdict === 'waiting').length
  context.print(`${where}: ${stuck} waiting, ${items.length - stuck} in progress\n`)
  for (const { verdict, sentence, since, others, command } of items) {
    const [mark, style] = marks[verdict === 'waiting' ? 'blocked' : 'working']
    const age = since === undefined ? '' : ` (since ${duration(Math.max(0, now - Date.parse(since)))})`
    const more =
      others.length === 0 ? '' : `   # holds up ${others.length} more: ${others.slice(0, 3).map(shortly).join(', ')}`
    context.print(`${paint(context, style, mark)} ${sentence}${age}`)
    context.print(`    ${paint(context, 'cyan', command)}${more}`)
  }
}

const shortly = ({ kind, name }: WaitingObject['subject']) => `${kinds[kind].singular}/${name}`
