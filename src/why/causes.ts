// Which causes are there? A closed union: every reason, code and fact that `explain` knows ends in one of these.
import { kinds } from '../api/kinds.ts'
import { findKind } from '../api/kind-names.ts'
import { attachmentCauses } from './causes/attachment.ts'
import type { CauseText } from './causes/cause.ts'
import { claimCauses } from './causes/claims.ts'
import { driverCauses } from './causes/driver.ts'
import { nodeCauses } from './causes/node.ts'
import { pluginCauses } from './causes/plugins.ts'
import { podCauses } from './causes/pods.ts'
import { snapshotCauses } from './causes/snapshots.ts'
import { volumeCauses } from './causes/volumes.ts'

export const causes = {
  ...claimCauses,
  ...volumeCauses,
  ...attachmentCauses,
  ...podCauses,
  ...nodeCauses,
  ...pluginCauses,
  ...driverCauses,
  ...snapshotCauses,
} as const

export type Cause = keyof typeof causes

/** Names that fill a cause's sentence and commands. */
export interface CauseNames {
  readonly pod?: string
  readonly claim?: string
  readonly volume?: string
  readonly node?: string
  readonly container?: string
  readonly image?: string
  readonly snapshot?: string
  readonly holder?: string
  readonly class?: string
  readonly driver?: string
  readonly namespace?: string
  /** Where the driver listens. */
  readonly socket?: string
  /** The call that was made: `NodeStageVolume`. */
  readonly call?: string
  /** What was asked for: `2Gi`. */
  readonly size?: string
  readonly detail?: string
}

export interface SpokenCause {
  readonly sentence: string
  readonly hints: readonly { readonly command: string; readonly purpose: string }[]
  readonly page: string
}

export function speak(cause: Cause, names: CauseNames): SpokenCause {
  const text: CauseText = causes[cause]
  const namespace = names.namespace === 'default' ? undefined : names.namespace
  // A command about something whose name is not known here helps less than the others.
  const known = text.hints.filter(([command]) => !fill(command, names, () => '?').includes('?'))
  return {
    sentence: fill(withoutUnknown(text.sentence, names), names, () => '')
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ([,;:])/g, '$1')
      .trim(),
    hints: (known.length > 0 ? known : text.hints).map(([command, purpose]) => ({
      command: withNamespace(
        fill(command, names, (name) => name.toUpperCase()),
        namespace,
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

/** `[for volume {volume} ]` is said only where the volume is known. */
function withoutUnknown(text: string, names: CauseNames): string {
  return text.replaceAll(/\[([^\]]*)\]/g, (_, part: string) => (fill(part, names, () => '?').includes('?') ? '' : part))
}

export function fill(text: string, names: CauseNames, missing: (name: string) => string): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name as keyof CauseNames] ?? missing(name))
}

/** Commands about things in a namespace must name it, unless it is the usual one. */
function withNamespace(command: string, namespace: string | undefined): string {
  const [, verb, rest = ''] = /^hawser (volume \w+|get|describe|delete|events|logs|why|run)\b(.*)$/.exec(command) ?? []
  if (namespace === undefined || verb === undefined || rest.includes(' -A') || !isNamespaced(verb, rest)) return command
  return `hawser ${verb} -n ${namespace}${rest}`
}

/** Nodes, volumes, classes and the like lie in no namespace. */
function isNamespaced(verb: string, rest: string): boolean {
  if (verb === 'logs' || verb === 'run' || verb.startsWith('volume')) return true
  const [, types] = (verb === 'events' ? /--for ([^/ ]+)/ : /^ ([^/ ]+)/).exec(rest) ?? []
  return types === undefined || types.split(',').some((type) => kinds[findKind(type)!].namespaced)
}
