// `hawser bench`: runs a measurement of the repository; an installed package holds none and says where they are.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import type { Context } from '../context.ts'

export const bench = buildCommand<NonNullable<unknown>, string[], Context>({
  docs: {
    brief: 'Measure speed (in a clone of the repository)',
    fullDescription: [
      'Prints one JSON line per measurement. Without a name the names are listed.',
      '',
      'Examples:',
      '  hawser bench',
      '  hawser bench loop',
    ].join('\n'),
  },
  parameters: {
    positional: { kind: 'array', parameter: { parse: String, placeholder: 'NAME', brief: 'Name of the measurement' } },
  },
  func(_flags, ...words) {
    const script = fileURLToPath(new URL('../../../tools/bench.ts', import.meta.url))
    if (!existsSync(script))
      throw new UsageError(
        'measurements are part of the repository, not of the package',
        'npm run bench -- NAME (in a clone)',
      )
    const { status } = spawnSync(process.execPath, [script, ...words], { stdio: 'inherit' })
    this.exitLike(status ?? 1)
  },
})
