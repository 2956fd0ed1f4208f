// `hawser lab run`: takes a driver through the checks, tells the verdicts, and writes the report.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { buildCommand } from '@stricli/core'
import { bytesOfQuantity } from '../../../api/quantity.ts'
import { createRandom } from '../../../clock/random.ts'
import { CsiError, statusText } from '../../../csi/codes.ts'
import { UsageError } from '../../../installation/config.ts'
import { allChecks, checksOf } from '../../../lab/catalogue.ts'
import { suiteNames } from '../../../lab/check.ts'
import type { Check, SuiteName } from '../../../lab/check.ts'
import type { LabReport } from '../../../lab/report.ts'
import { compareReports, keptReport, parseKeptReport } from '../../../lab/reports/json.ts'
import type { KeptReport } from '../../../lab/reports/json.ts'
import { runLab } from '../../../lab/run.ts'
import type { DriverChoice } from '../../../main/lab-driver.ts'
import { errorText } from '../../../telemetry/error-text.ts'
import type { Context } from '../../context.ts'
import { Missing } from '../../errors.ts'
import { exitCodes } from '../../exit-codes.ts'
import { secondsFrom } from '../../wait.ts'
import { sizeFrom } from '../volume/options.ts'
import { writeReport } from './files.ts'
import { printReport, tellProgress } from './progress.ts'
import { suiteLines, suitesFlag } from './suites.ts'

interface Flags {
  readonly driver?: string
  readonly mode: 'local' | 'shared'
  readonly suites?: readonly SuiteName[]
  readonly only?: readonly string[]
  readonly report?: string
  readonly baseline?: string
  readonly size: string
  readonly fsType?: string
  readonly parameter?: readonly (readonly [string, string])[]
  readonly directory?: string
  readonly timeout: number
  readonly verbose: boolean
}

export const run = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Take a CSI driver through the checks',
    fullDescription: [
      'Makes, mounts and removes volumes of its own, and leaves others alone. Mounting needs root; without it those checks are',
      'skipped, and the built-in driver gives way to the model driver in memory. Exit code: 4 findings, 5 the driver does not answer.',
      '',
      'Suites:',
      ...suiteLines,
      '',
      'A COMMAND is run as the driver and stopped afterwards. {socket} in its words, and the variable CSI_ENDPOINT',
      '(unix://PATH), say where it shall listen.',
      '',
      'Examples:',
      '  sudo hawser lab run',
      '  sudo hawser lab run --driver /run/csi/csi.sock --report lab-report',
      '  sudo hawser lab run --report lab-report -- ./my-driver --endpoint unix://{socket} --nodeid n1',
      '  sudo hawser lab run --driver /run/csi/csi.sock --baseline lab-report/report.json',
      '  sudo hawser lab run --only honesty/create-volume/twice',
    ].join('\n'),
  },
  parameters: {
    flags: {
      driver: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'DRIVER' },
        brief: '"built-in", "model", or the Unix socket of a driver that runs (default: built-in)',
      },
      mode: {
        ...{ kind: 'enum', values: ['local', 'shared'], default: 'local' },
        brief: 'How the built-in driver runs: volumes of this node only, or attached to nodes',
      },
      suites: suitesFlag,
      only: {
        ...{ kind: 'parsed', parse: String, optional: true, variadic: ',', placeholder: 'CHECK' },
        brief: 'Only these checks, or those whose ids begin so (honesty/create-volume)',
      },
      report: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'DIR' },
        brief: 'Write report.json, junit.xml and report.md there',
      },
      baseline: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'FILE' },
        brief: 'report.json of an earlier run: what failed there already is no reason to fail',
      },
      size: {
        ...{ kind: 'parsed', parse: sizeFrom, default: '64Mi', placeholder: 'SIZE' },
        brief: 'Size of the volumes; some grow to twice as much',
      },
      fsType: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'TYPE' },
        brief: "Filesystem of the volumes (default: the driver's own choice)",
      },
      parameter: {
        ...{ kind: 'parsed', parse: parameterFrom, optional: true, variadic: true, placeholder: 'KEY=VALUE' },
        brief: 'Parameter for CreateVolume, as in a StorageClass (may be repeated)',
      },
      directory: {
        ...{ kind: 'parsed', parse: String, optional: true, placeholder: 'DIR' },
        brief:
          'Where volumes are staged and published: the driver must see it under the same path (default: temporary)',
      },
      timeout: {
        ...{ kind: 'parsed', parse: secondsFrom, default: '30', placeholder: 'SECONDS' },
        brief: 'Deadline of each call',
      },
      verbose: { kind: 'boolean', default: false, brief: 'Tell every verdict, not only findings' },
    },
    positional: { kind: 'array', parameter: { parse: String, placeholder: 'COMMAND', brief: 'The driver to run' } },
  },
  async func(flags, ...words) {
    const choice = choiceOf(this, flags, words)
    const baseline = flags.baseline === undefined ? undefined : baselineFrom(flags.baseline)
    const checks = chosenChecks(flags)
    const report = await carryOut(this, choice, checks, flags)
    if (report === undefined) return
    printReport(this, report)
    if (flags.report !== undefined) {
      const files = writeReport(flags.report, report)
      this.note(`the report is in ${resolve(flags.report)}: ${files.join(', ')}`)
    }
    const { worse, better, known } = compareReports(baseline ?? nothingFailed, keptReport(report))
    if (known.length > 0) this.note(`failed in the baseline already: ${known.join(', ')}`)
    if (better.length > 0) this.note(`failed in the baseline, and does not any longer: ${better.join(', ')}`)
    if (worse.length > 0) this.fail(exitCodes.waiting)
  },
})

const nothingFailed: Pick<KeptReport, 'checks'> = { checks: [] }

async function carryOut(
  context: Context,
  choice: DriverChoice,
  checks: readonly Check[],
  flags: Flags,
): Promise<LabReport | undefined> {
  const stop = new AbortController()
  const onSignal = () => stop.abort(new UsageError('interrupted; what was made was undone'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    const { openLabDriver } = await import('../../../main/lab-driver.ts')
    const at = flags.directory === undefined ? {} : { directory: resolve(flags.directory) }
    await using driver = await openLabDriver(choice, at, stop.signal)
    using progress = tellProgress(context, flags.verbose)
    const recipe = {
      sizeBytes: bytesOfQuantity(flags.size),
      fsType: flags.fsType ?? '',
      parameters: Object.fromEntries(flags.parameter ?? []),
      secrets: {},
    }
    const options = {
      checks,
      recipe,
      run: `lab-${createRandom(driver.clock.now()).suffix()}`,
      callTimeoutMs: flags.timeout * 1_000,
    }
    return await runLab(driver, options, progress, stop.signal)
  } catch (error) {
    if (!(error instanceof CsiError)) throw error
    context.note(`hawser: this does not answer as a CSI driver: ${statusText(error)}`)
    context.fail(exitCodes.unreachable)
    return undefined
  } finally {
    process.removeListener('SIGINT', onSignal).removeListener('SIGTERM', onSignal)
  }
}

function choiceOf(context: Context, { driver, mode }: Flags, words: readonly string[]): DriverChoice {
  if (words.length > 0) {
    if (driver !== undefined) throw new UsageError('a COMMAND is the driver: leave --driver out')
    return { kind: 'command', words }
  }
  if (driver === 'model') return { kind: 'model' }
  if (driver !== undefined && driver !== 'built-in')
    return { kind: 'socket', path: resolve(driver.replace(/^unix:(\/\/)?/, '')) }
  if (process.getuid?.() === 0) return { kind: 'built-in', mode }
  context.note('the built-in driver mounts filesystems and needs root: this is the model driver, in memory')
  return { kind: 'model' }
}

function baselineFrom(path: string): KeptReport {
  try {
    return parseKeptReport(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UsageError(`the baseline ${path} cannot be read: ${errorText(error)}`)
  }
}

function chosenChecks({ suites = suiteNames, only }: Flags): readonly Check[] {
  if (only === undefined) return checksOf(suites)
  const isMeant = (id: string, wanted: string) => id === wanted || id.startsWith(`${wanted}/`)
  const unknown = only.find((wanted) => !allChecks.some(({ id }) => isMeant(id, wanted)))
  if (unknown !== undefined) throw new Missing(`there is no check "${unknown}"`, 'hawser lab ls')
  return allChecks.filter(({ id }) => only.some((wanted) => isMeant(id, wanted)))
}

function parameterFrom(text: string): readonly [string, string] {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (key === undefined || value === undefined) throw new SyntaxError(`"${text}" is not KEY=VALUE`)
  return [key, value]
}
