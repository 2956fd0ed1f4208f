// Does every rule id resolve to exactly one rule in docs/rules, and is every rule named by a test or argued?
import { isComment, isTest } from './tree.ts'
import type { Files } from './tree.ts'

export interface Definition {
  readonly id: string
  readonly document: string
  readonly line: number
}

/** Words of other people that look like rule ids. */
const foreign: ReadonlySet<string> = new Set(['CURRENT', 'CVE', 'DNS', 'E', 'FNV', 'KEP', 'P', 'RFC', 'SHA', 'UTF'])

/** A rule is defined in bold, at the start of a list entry, or in the first column of a table. */
export function definitionsOf(document: string, text: string): readonly Definition[] {
  const pattern = /\*\*([A-Z]{1,8}-\d+)\*\*|^- ([A-Z]{1,8}-\d+)\b|^\| ([A-Z]{1,8}-\d+) \|/g
  const found = text.split('\n').flatMap((line, index) =>
    Array.from(line.matchAll(pattern), ([, bold, listed, row]) => {
      return { id: (bold ?? listed ?? row)!, document, line: index + 1 }
    }),
  )
  // A document may print its own rule in bold again; within one document the first place is the definition.
  return found.filter(({ id }, index) => found.findIndex((other) => other.id === id) === index)
}

/** Ids that a line refers to. A letter names a case of its rule: the id without it is what must exist. */
export function referencesIn(line: string): readonly string[] {
  const matches = line.matchAll(/(?<![\w/.-])([A-Z]{1,8})-(\d+[a-z]?|\*)(?![\w*-])/g)
  return Array.from(matches, ([, prefix, number]) => `${prefix}-${number!.replace(/[a-z]$/, '')}`).filter(
    (id) => !foreign.has(prefixOf(id)),
  )
}

const prefixOf = (id: string) => id.slice(0, id.indexOf('-'))

/** The documents that define rules; the index and the exceptions only mention them. */
export const ruleDocuments = (documents: Files): readonly Definition[] =>
  [...documents]
    .filter(([document]) => /^docs\/rules\/(?!exceptions|README)/.test(document))
    .flatMap(([document, text]) => definitionsOf(document, text))

/** Every id in code and documents has one definition, in one document. */
export function unresolvedIds(definitions: readonly Definition[], files: Files): string[] {
  const byId = Map.groupBy(definitions, ({ id }) => id)
  const prefixes = new Set(definitions.map(({ id }) => prefixOf(id)))
  const twice = [...byId]
    .filter(([, places]) => places.length > 1)
    .map(([id, places]) => `${id} is defined twice: ${places.map((at) => `${at.document}:${at.line}`).join(', ')}`)
  const unknown = [...files].flatMap(([file, text]) =>
    text.split('\n').flatMap((line, index) =>
      referencesIn(line)
        .filter((id) => (id.endsWith('*') ? !prefixes.has(prefixOf(id)) : !byId.has(id)))
        .map((id) => `${file}:${index + 1}: rule ${id} is defined nowhere in docs/rules`),
    ),
  )
  return [...twice, ...unknown]
}

/** `- CLM-8, CLM-9: reason` or `- XPR-*: reason` (a whole prefix). */
export function exceptionsOf(text: string): ReadonlyMap<string, string> {
  const entries = Array.from(text.matchAll(/^- ((?:[A-Z]+-(?:\d+|\*)(?:, )?)+): (.+)$/gm), ([, ids, reason]) =>
    ids!.split(', ').map((id) => [id, reason!] as const),
  )
  return new Map(entries.flat())
}

export const exceptionFor = (id: string, exceptions: ReadonlyMap<string, string>) =>
  exceptions.get(id) ?? exceptions.get(`${prefixOf(id)}-*`)

/** Ids that tests name, anywhere in their text. A range, `NPO-1 … NPO-4`, counts in code and not in a comment. */
export function rulesNamedIn(texts: Iterable<string>): ReadonlySet<string> {
  const named = new Set<string>()
  for (const text of texts)
    for (const line of text.split('\n')) {
      for (const id of referencesIn(line)) named.add(id)
      if (isComment(line)) continue
      for (const [, prefix, first, last] of line.matchAll(/\b([A-Z]{1,8})-(\d+) … \1-(\d+)/g))
        for (let number = Number(first); number <= Number(last); number++) named.add(`${prefix}-${number}`)
    }
  return named
}

export interface Coverage {
  readonly open: readonly string[]
  readonly argued: readonly string[]
  readonly named: readonly string[]
}

export function coverageOf(
  definitions: readonly Definition[],
  named: ReadonlySet<string>,
  exceptions: ReadonlyMap<string, string>,
): Coverage {
  const ids = definitions.map(({ id }) => id)
  const untested = ids.filter((id) => !named.has(id))
  return {
    named: ids.filter((id) => named.has(id)),
    argued: untested.filter((id) => exceptionFor(id, exceptions) !== undefined),
    open: untested.filter((id) => exceptionFor(id, exceptions) === undefined),
  }
}

/** Each rule is named by a test or argued, and no exception is out of date. */
export function untestedRules(definitions: readonly Definition[], tests: Files, exceptionsText: string): string[] {
  const exceptions = exceptionsOf(exceptionsText)
  const named = rulesNamedIn(tests.values())
  const { open } = coverageOf(definitions, named, exceptions)
  return [
    ...open.map((id) => `rule ${id}: no test names it, and docs/rules/exceptions.md gives no reason`),
    ...[...exceptions.keys()]
      .filter((id) => named.has(id))
      .map((id) => `docs/rules/exceptions.md: a test names ${id}; drop the exception`),
  ]
}

export const testsAmong = (files: Files): Files =>
  new Map([...files].filter(([file]) => isTest(file) || /^test\/.*\.ts$/.test(file)))
