// Which kind and which object does the user mean? `pvc/data`, `pvc data`, `pods,pvc`, `storageclasses.storage.k8s.io`.
import { allKindNames, findKind } from '../api/kind-names.ts'
import type { KindName } from '../api/kinds.ts'
import { UsageError } from '../installation/config.ts'
import { distance } from '../telemetry/near-words.ts'

export interface ResourceName {
  readonly kind: KindName
  readonly name: string
}

/** A plural, a singular, a short name or a kind, in any case, with or without its group. */
export function kindFrom(text: string): KindName {
  const found = findKind(text)
  if (found === undefined) throw new UsageError(`there is no resource type "${text}"`, suggestion(text.toLowerCase()))
  return found
}

/** `kind/name` words, or one kind (or a comma list of kinds) followed by names. */
export function resourcesFrom(words: readonly string[]): {
  readonly kinds: readonly KindName[]
  readonly names: readonly ResourceName[]
} {
  const [first, ...rest] = words
  if (first === undefined) throw new UsageError('name a resource type, for example: pvc', 'hawser get pvc')
  if (first.includes('/')) return { kinds: [], names: words.map(slashed) }
  const wanted = first.split(',').map(kindFrom)
  const [only] = wanted
  if (rest.length > 0 && (wanted.length > 1 || only === undefined))
    throw new UsageError('names go with a single resource type')
  return { kinds: wanted, names: rest.map((name) => ({ kind: only!, name })) }
}

export function slashed(word: string): ResourceName {
  const [kind, name, ...rest] = word.split('/')
  if (!kind || !name || rest.length > 0) throw new UsageError(`"${word}" is not of the form TYPE/NAME`, 'pvc/data')
  return { kind: kindFrom(kind), name }
}

/** `first` or `pod/first`: what commands about pods take; `what` is what only pods have. */
export function podFrom(text: string, what: string): string {
  if (!text.includes('/')) return text
  const { kind, name } = slashed(text)
  if (kind !== 'Pod') throw new UsageError(`only pods have ${what}, not ${text}`, `pod/${name}`)
  return name
}

function suggestion(word: string): string {
  const near = allKindNames()
    .map((name) => ({ name, far: name.startsWith(word.slice(0, 3)) ? 1 : distance(name, word) }))
    .filter(({ far }) => far <= 2)
    .toSorted((a, b) => a.far - b.far)
  return near.length > 0
    ? `did you mean ${near
        .slice(0, 3)
        .map(({ name }) => name)
        .join(', ')}?`
    : 'hawser get --help'
}
