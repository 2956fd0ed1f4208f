// Which objects does a field selector choose, and which fields may it name? `status.phase!=Failed,spec.nodeName=n1`;
// each kind's definition lists its fields; others are refused in Kubernetes' words.
import { kinds } from './kinds.ts'
import type { KindName } from './kinds.ts'
import type { SelectableField } from './kinds/define-kind.ts'
import { SelectorError } from './selectors.ts'

interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
  /** The text of an absent value. */
  readonly absent?: string
}

export type FieldRequirements = readonly FieldRequirement[]

/** Throws SelectorError when the text is malformed or names a field that the kind does not support. */
export function parseFieldSelector(kind: KindName, text: string): FieldRequirements {
  const requirements = splitTerms(text)
    .filter((term) => term !== '')
    .map((term) => parseTerm(term, text))
  return requirements.map((requirement) => resolved(kind, requirement))
}

export function matchesFields(requirements: FieldRequirements, object: unknown): boolean {
  return requirements.every(
    ({ field, operator, value, absent }) => (fieldText(object, field, absent) === value) === (operator === '='),
  )
}

/** `metadata.name=x` alone asks for one object; the server then need not scan. */
export function nameAskedFor(requirements: FieldRequirements): string | undefined {
  return requirements.find(({ field, operator }) => field === 'metadata.name' && operator === '=')?.value
}

export function formatFieldSelector(requirements: FieldRequirements): string {
  return requirements.map(({ field, operator, value }) => `${field}${operator}${escapeValue(value)}`).join(',')
}

export function escapeValue(value: string): string {
  return value.replaceAll(/[\\,=]/g, (character) => `\\${character}`)
}

const fieldsOfAllKinds: Readonly<Record<string, SelectableField>> = { 'metadata.name': {}, 'metadata.namespace': {} }

function resolved(kind: KindName, requirement: FieldRequirement): FieldRequirement {
  const { field } = requirement
  const { selectableFields } = kinds[kind]
  const fields = { ...fieldsOfAllKinds, ...selectableFields }
  const found = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (found !== undefined) {
    const { path = field, absent } = found
    return { ...requirement, field: path, ...(absent === undefined ? {} : { absent }) }
  }
  if (selectableFields !== undefined) throw new SelectorError(`field label not supported: ${field}`)
  const known = '"metadata.name", "metadata.namespace"'
  throw new SelectorError(`${JSON.stringify(field)} is not a known field selector: only ${known}`)
}

function fieldText(object: unknown, path: string, absent = ''): string {
  let value: unknown = object
  for (const name of path.split('.')) {
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined // a JSON object
  }
  if (value === undefined || value === null) return absent
  return Array.isArray(value) ? addresses(value) : String(value)
}

/** The only lists that can be selected by are those of addresses. */
function addresses(list: readonly { readonly ip?: string }[]): string {
  return list.map(({ ip }) => ip ?? '').join(',')
}

/** Splits at commas that no backslash protects; the escapes stay. */
function splitTerms(text: string): readonly string[] {
  const terms: string[] = []
  let term = ''
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (character === '\\') {
      term += character + text.charAt(index + 1)
      index += 1
    } else if (character === ',') {
      terms.push(term)
      term = ''
    } else term += character
  }
  return [...terms, term]
}

function parseTerm(term: string, whole: string): FieldRequirement {
  const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
  const [, field, operator, value] = match ?? []
  if (field === undefined || operator === undefined || value === undefined) {
    throw new SelectorError(`invalid selector: '${whole}'; can't understand '${term}'`)
  }
  return { field, operator: operator === '!=' ? '!=' : '=', value: unescapeValue(value) }
}

function unescapeValue(value: string): string {
  let result = ''
  for (let index = 0; index < value.length; index += 1) {
    const character = value.charAt(index)
    if (character === '\\') {
      const next = value.charAt(index + 1)
      if (next === '' || !'\\,='.includes(next)) {
        throw new SelectorError(`invalid field selector: invalid escape sequence: \\${next}`)
      }
      result += next
      index += 1
    } else if (character === '=' || character === ',') {
      throw new SelectorError(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`)
    } else result += character
  }
  return result
}
