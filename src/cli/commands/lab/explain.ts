// `hawser lab explain`: what does a check ask, which clause says so, and what came back when it failed?
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../../installation/config.ts'
import { allChecks } from '../../../lab/catalogue.ts'
import type { Check, Needs } from '../../../lab/check.ts'
import type { KeptCheck } from '../../../lab/reports/json.ts'
import { parseKeptReport } from '../../../lab/reports/json.ts'
import { errorText } from '../../../telemetry/error-text.ts'
import type { Context } from '../../context.ts'
import { Missing } from '../../errors.ts'
import { duration, paint } from '../../output.ts'
import { reportFile } from './files.ts'

export const explainCheck = buildCommand<{ readonly report?: string }, [string], Context>({
  docs: {
    brief: 'Explain a check of the lab',
    fullDescription: [
      'With --report also what was asked and answered when the check failed in that run.',
      '',
      'Examples:',
      '  hawser lab explain honesty/create-volume/twice',
      '  hawser lab explain honesty/create-volume/twice --report lab-report',
    ].join('\n'),
  },
  parameters: {
    flags: {
      report: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'DIR',
        brief: 'Directory of a report (lab run --report DIR)',
      },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, placeholder: 'CHECK', brief: 'Id of the check' }],
    },
  },
  func({ report }, id) {
    const check = checkFrom(id)
    this.print(paint(this, 'bold', check.id))
    this.print(`  what holds   ${check.title}`)
    this.print(`  CSI says     ${check.call}: ${check.says}`)
    const needs = needsText(check.needs)
    if (needs !== '') this.print(`  needs        ${needs}`)
    this.print(`  repeat       hawser lab run --only ${check.id}`)
    if (report !== undefined) explainRun(this, check, keptCheck(report, check.id))
  },
})

function checkFrom(id: string): Check {
  const found = allChecks.find((check) => check.id === id)
  if (found) return found
  const area = id.split('/').slice(0, 2).join('/')
  const near = allChecks.map((check) => check.id).filter((each) => each.startsWith(`${area}/`))
  throw new Missing(
    `there is no check "${id}"${near.length > 0 ? `; near it: ${near.join(', ')}` : ''}`,
    'hawser lab ls',
  )
}

function needsText({
  plugin = [],
  controller = [],
  node = [],
  withoutController = [],
  withoutNode = [],
  mounts,
  onlineGrowth,
  kill,
}: Needs): string {
  const claimed = [...plugin, ...controller, ...node]
  const unclaimed = [...withoutController, ...withoutNode]
  return [
    ...(claimed.length > 0 ? [`a driver that claims ${claimed.join(', ')}`] : []),
    ...(unclaimed.length > 0 ? [`a driver that does not claim ${unclaimed.join(', ')}`] : []),
    ...(mounts ? ['root, to mount'] : []),
    ...(kill ? ['a driver that the lab runs, to kill it'] : []),
    ...(onlineGrowth ? ['CAP_SYS_RESOURCE, to grow what is mounted'] : []),
  ].join('; ')
}

function keptCheck(directory: string, id: string): KeptCheck {
  const path = join(directory, reportFile)
  try {
    const found = parseKeptReport(readFileSync(path, 'utf8')).checks.find((check) => check.id === id)
    if (found) return found
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${errorText(error)}`)
  }
  throw new Missing(`the run of ${path} did not have this check`)
}

function explainRun(context: Context, check: Check, kept: KeptCheck): void {
  context.print('')
  const words = kept.finding ?? kept.reason
  context.print(`  that run     ${kept.verdict}${words === undefined ? '' : `: ${words}`}`)
  for (const left of kept.leftovers ?? []) context.print(`  left behind  ${left}`)
  for (const { rpc, ms, request, answer, error } of kept.calls ?? []) {
    const outcome = error === undefined ? `OK ${JSON.stringify(answer)}` : `${error.status}: ${error.details}`
    const isMeant = rpc === check.call
    const name = isMeant ? paint(context, 'bold', rpc) : rpc
    context.print(`    ${name} ${JSON.stringify(request)}`)
    context.print(`      → ${outcome} (${duration(ms)})`)
  }
}
