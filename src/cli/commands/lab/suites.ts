// Which suites are meant? `--suites honesty,life`, and the words for help.
import { suiteNames, suiteTexts } from '../../../lab/check.ts'
import type { SuiteName } from '../../../lab/check.ts'

export const suitesFlag = {
  kind: 'parsed',
  parse: suiteFrom,
  optional: true,
  variadic: ',',
  placeholder: 'SUITE',
  brief: `Only these suites: ${suiteNames.join(', ')} (default: all)`,
} as const

/** For help: one line per suite. */
export const suiteLines = suiteNames.map((name) => `  ${name.padEnd(10)} ${suiteTexts[name]}`)

function suiteFrom(text: string): SuiteName {
  const found = suiteNames.find((name) => name === text)
  if (found === undefined) throw new SyntaxError(`there is no suite "${text}"; suites: ${suiteNames.join(', ')}`)
  return found
}
