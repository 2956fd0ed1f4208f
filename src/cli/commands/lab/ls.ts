// `hawser lab ls`: which checks are there?
import { buildCommand } from '@stricli/core'
import { checksOf } from '../../../lab/catalogue.ts'
import { suiteNames } from '../../../lab/check.ts'
import type { SuiteName } from '../../../lab/check.ts'
import type { Context } from '../../context.ts'
import type { OutputForm } from '../../output.ts'
import { json, outputFlag, table, yaml } from '../../output.ts'
import { suitesFlag } from './suites.ts'

interface Flags {
  readonly suites?: readonly SuiteName[]
  readonly output: OutputForm
}

export const ls = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'List the checks of the lab',
    fullDescription: [
      'Ids stay the same from version to version: reports, baselines and CI settings may name them.',
      '',
      'Examples:',
      '  hawser lab ls',
      '  hawser lab ls --suites honesty -o json',
    ].join('\n'),
  },
  parameters: { flags: { suites: suitesFlag, output: outputFlag }, aliases: { o: 'output' } },
  func({ suites = suiteNames, output }) {
    const checks = checksOf(suites).map(({ id, suite, title, call, says, needs }) => ({
      id,
      suite,
      title,
      call,
      says,
      needs,
    }))
    if (output === 'json') return this.print(json(checks))
    if (output === 'yaml') return this.print(yaml(checks))
    if (output === 'name') return checks.forEach(({ id }) => this.print(id))
    this.print(
      table(
        ['CHECK', 'CALL', 'WHAT HOLDS'],
        checks.map(({ id, call, title }) => [id, call, title]),
      ),
    )
  },
})
