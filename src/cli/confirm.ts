// Are you sure? Destructive verbs show their plan first; --yes answers ahead, and without a terminal silence means no.
import { createInterface } from 'node:readline/promises'
import { UsageError } from '../main/config.ts'
import type { Context } from './context.ts'

export const yesFlag = { kind: 'boolean', default: false, brief: 'Do it without asking' } as const

export async function confirm(context: Context, plan: readonly string[], yes: boolean): Promise<void> {
  for (const line of plan) context.note(`  ${line}`)
  if (yes) return
  if (!process.stdin.isTTY) throw new UsageError('not done: this needs a yes', 'add --yes')
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await prompt.question('Do this? [y/N] ')
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('not done')
  } finally {
    prompt.close()
  }
}
