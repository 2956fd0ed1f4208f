// Are you sure? Destructive verbs show their plan first; --yes answers ahead, and without a terminal silence means no.
import { createInterface } from 'node:readline/promises'
import { UsageError } from '../installation/config.ts'
import type { Context } from './context.ts'

export const yesFlag = { kind: 'boolean', default: false, brief: 'Do not ask for confirmation' } as const

export async function confirm(context: Context, plan: readonly string[], yes: boolean): Promise<void> {
  for (const line of plan) context.note(`  ${line}`)
  if (yes) return
  if (!process.stdin.isTTY) throw new UsageError('nothing was done: confirmation is needed', 'add --yes')
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await prompt.question('Do this? [y/N] ')
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('nothing was done')
  } finally {
    prompt.close()
  }
}
