// Which flag did somebody mean who wrote an unknown one? The nearest of the command's own, as it is written on the command line.
// Stricli compares with the names in the program (dataDir), and so misses or misspells those of several words.
import { FlagNotFoundError, formatMessageForArgumentScannerError } from '@stricli/core'
import type { Command, RouteMap } from '@stricli/core'
import { nearWords } from '../telemetry/near-words.ts'
import type { Context } from './context.ts'

/** The sentence for arguments that cannot be parsed; undefined where Stricli's own will do. */
export function flagMistake(error: unknown, root: RouteMap<Context>, words: readonly string[]): string | undefined {
  if (!(error instanceof FlagNotFoundError)) return undefined
  if (error.aliasName !== undefined) return formatMessageForArgumentScannerError(error, {})
  const [near] = nearWords(error.input, flagsOf(root, words))
  return `No flag registered for --${error.input}${near === undefined ? '' : `, did you mean --${near}?`}`
}

function flagsOf(root: RouteMap<Context>, words: readonly string[]): readonly string[] {
  let target: RouteMap<Context> | Command<Context> | undefined = root
  for (const word of words) {
    if (target === undefined || !('getRoutingTargetForInput' in target)) break
    target = target.getRoutingTargetForInput(word)
  }
  if (target === undefined || 'getRoutingTargetForInput' in target) return []
  return Object.entries(target.parameters.flags ?? {}).flatMap(([name, { kind }]) => {
    const written = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return kind === 'boolean' ? [written, `no-${written}`] : [written]
  })
}
