// `hawser sim`: the whole cluster under faults, on virtual time; one seed is one history.
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import type { SimulationResult } from '../../sim/simulator.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../exit-codes.ts'
import type { OutputForm } from '../output.ts'
import { duration, json, outputFlag, paint, yaml } from '../output.ts'
import { startProgress } from '../wait.ts'

interface Flags {
  readonly seed: string
  readonly runs: number
  readonly steps: number
  readonly nodes: number
  readonly cast: 'model' | 'real'
  readonly trace: boolean
  readonly output: OutputForm
}

export const sim = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Simulate a cluster with crashes and lost calls',
    fullDescription: [
      'Runs the real API server and controllers on model hosts and storage, on virtual time: first with faults, then without.',
      'The same seed gives the same run (same hash). Exit code 4 when an invariant was violated.',
      '',
      'Examples:',
      '  hawser sim --seed 7',
      '  hawser sim --seed 1 --runs 20 --steps 100 --nodes 5',
      '  hawser sim --seed 7 --cast real',
      '  hawser sim --seed 7 --trace | less',
    ].join('\n'),
  },
  parameters: {
    flags: {
      seed: { kind: 'parsed', parse: String, default: '1', placeholder: 'SEED', brief: 'A number or a word' },
      runs: {
        kind: 'parsed',
        parse: countFrom,
        default: '1',
        placeholder: 'N',
        brief: 'Number of consecutive seeds',
      },
      steps: {
        kind: 'parsed',
        parse: countFrom,
        default: '60',
        placeholder: 'N',
        brief: 'Number of user actions, with faults',
      },
      nodes: { kind: 'parsed', parse: countFrom, default: '3', placeholder: 'N', brief: 'Number of nodes' },
      cast: {
        kind: 'enum',
        values: ['model', 'real'],
        default: 'model',
        brief: 'model: model nodes and attacher; real: all real parts on model hosts',
      },
      trace: { kind: 'boolean', default: false, brief: 'Print the end of the trace, one line per event' },
      output: outputFlag,
    },
    aliases: { o: 'output' },
  },
  async func(flags) {
    const seeds = seedsOf(flags)
    const { runSimulation } = await import('../../sim/simulator.ts')
    const results: SimulationResult[] = []
    using progress = startProgress(this)
    for (const seed of seeds) {
      progress.say(`simulating seed ${seed} (${results.length + 1} of ${seeds.length})`)
      const start = performance.now()
      const result = await runSimulation({ seed, steps: flags.steps, nodes: flags.nodes, cast: flags.cast })
      results.push(result)
      if (flags.output === 'table' || flags.output === 'wide') show(this, result, flags, performance.now() - start)
    }
    const shown = results.map(({ trace, ...rest }) => (flags.trace ? { ...rest, trace } : rest))
    if (flags.output === 'json') this.print(json(shown))
    else if (flags.output === 'yaml') this.print(yaml(shown))
    else if (flags.output === 'name') for (const { seed, hash } of results) this.print(`${seed} ${hash}`)
    if (results.some(({ violations }) => violations.length > 0)) this.fail(exitCodes.waiting)
  },
})

function show(context: Context, result: SimulationResult, flags: Flags, ms: number): void {
  if (flags.trace) for (const line of result.trace) context.print(line)
  const verdict = result.violations.length === 0 ? paint(context, 'green', 'ok') : paint(context, 'red', 'BROKEN')
  const virtual = duration(result.virtualSeconds * 1_000)
  context.print(
    `${verdict} seed ${result.seed}: ${result.lines} events in ${virtual} of virtual time (${duration(ms)}), hash ${result.hash.slice(0, 16)}`,
  )
  for (const violation of result.violations) context.print(`  ${violation}`)
  if (result.violations.length > 0)
    context.print(
      `  again: hawser sim --seed ${result.seed} --steps ${flags.steps} --nodes ${flags.nodes} --cast ${flags.cast} --trace`,
    )
}

/** A numeric seed is a number, as in the test suites; a word stays a word. */
function seedsOf({ seed, runs }: Flags): (string | number)[] {
  if (/^\d{1,15}$/.test(seed)) return Array.from({ length: runs }, (_, index) => Number(seed) + index)
  if (runs > 1) throw new UsageError('--runs needs a number as seed', '--seed 1 --runs 20')
  return [seed]
}

function countFrom(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new SyntaxError(`"${text}" is not a number from 1 to 999999`)
  return Number(text)
}
