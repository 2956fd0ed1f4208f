// Which causes are there? A closed union: every reason, code and fact that `explain` knows ends in one of these.
import { attachmentCauses } from './causes/attachment.ts'
import type { CauseText } from './causes/cause.ts'
import { claimCauses } from './causes/claims.ts'
import { driverCauses } from './causes/driver.ts'
import { nodeCauses } from './causes/node.ts'
import { pluginCauses } from './causes/plugins.ts'
import { volumeCauses } from './causes/volumes.ts'

export const causes = {
  ...claimCauses,
  ...volumeCauses,
  ...attachmentCauses,
  ...nodeCauses,
  ...pluginCauses,
  ...driverCauses,
} as const

export type Cause = keyof typeof causes

/** Names that fill a cause's sentence and commands. */
export interface CauseNames {
  readonly pod?: string
  readonly claim?: string
  readonly volume?: string
  readonly node?: string
  readonly holder?: string
  readonly class?: string
  readonly driver?: string
  readonly namespace?: string
  readonly detail?: string
}

export interface SpokenCause {
  readonly sentence: string
  readonly hints: readonly { readonly command: string; readonly purpose: string }[]
  readonly page: string
}

export function speak(cause: Cause, names: CauseNames): SpokenCause {
  const text: CauseText = causes[cause]
  const inNamespace = names.namespace !== undefined && names.namespace !== 'default'
  return {
    sentence: fill(text.sentence, names, () => '')
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ([,;:])/g, '$1')
      .trim(),
    hints: text.hints.map(([command, purpose]) => ({
      command: withNamespace(
        fill(command, names, (name) => name.toUpperCase()),
        inNamespace ? names.namespace! : undefined,
      ),
      purpose,
    })),
    page: `docs/symptoms/${pageName(cause)}.md`,
  }
}

/** noNodeFits → no-node-fits */
export function pageName(cause: Cause): string {
  return cause.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

export function fill(text: string, names: CauseNames, missing: (name: string) => string): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name as keyof CauseNames] ?? missing(name))
}

/** Commands about things in a namespace must name it, unless it is the usual one. */
function withNamespace(command: string, namespace: string | undefined): string {
  if (namespace === undefined || command.includes(' -A')) return command
  return command.replace(
    /^hawser (volume \w+|get|describe|delete|events|logs|why|run)(?= )/,
    (_, verb: string) => `hawser ${verb} -n ${namespace}`,
  )
}
