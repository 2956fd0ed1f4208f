// Which objects does a field selector choose, and which fields may it name? `status.phase!=Failed,spec.nodeName=n1`;
// each kind supports a fixed list of fields, and refuses others in Kubernetes' words.
import type { KindName } from './kinds.ts'
import { SelectorError } from './selectors.ts'

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

export type FieldRequirements = readonly FieldRequirement[]

const involved = (name: string): readonly string[] =>
  ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map((field) => `${name}.${field}`)

/** Beyond metadata.name and metadata.namespace. The kinds listed here say "field label not supported". */
const furtherFields: Readonly<Partial<Record<KindName, readonly string[]>>> = {
  Pod: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.podIPs',
    'status.nominatedNodeName',
  ],
  Node: ['spec.unschedulable'],
  Namespace: ['status.phase'],
  Secret: ['type'],
  Event: [...involved('involvedObject'), 'reason', 'reportingComponent', 'source', 'type'],
  EventsEvent: [...involved('regarding'), 'reason', 'reportingController', 'type'],
}

export function fieldsOfKind(kind: KindName): readonly string[] {
  return ['metadata.name', 'metadata.namespace', ...(furtherFields[kind] ?? [])]
}

/** Throws SelectorError when the text is malformed or names a field that the kind does not support. */
export function parseFieldSelector(kind: KindName, text: string): FieldRequirements {
  const requirements = splitTerms(text)
    .filter((term) => term !== '')
    .map((term) => parseTerm(term, text))
  return requirements.map((requirement) => ({ ...requirement, field: supportedField(kind, requirement.field) }))
}

export function matchesFields(requirements: FieldRequirements, object: unknown): boolean {
  return requirements.every(({ field, operator, value }) => (fieldText(object, field) === value) === (operator === '='))
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

function supportedField(kind: KindName, field: string): string {
  if (kind === 'Pod' && field === 'spec.host') return 'spec.nodeName'
  if (fieldsOfKind(kind).includes(field)) return field
  if (furtherFields[kind] !== undefined) throw new SelectorError(`field label not supported: ${field}`)
  const known = '"metadata.name", "metadata.namespace"'
  throw new SelectorError(`${JSON.stringify(field)} is not a known field selector: only ${known}`)
}

function fieldText(object: unknown, field: string): string {
  const path = field === 'source' ? 'source.component' : field
  let value: unknown = object
  for (const name of path.split('.')) {
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined // a JSON object
  }
  if (path === 'status.podIPs') return podAddresses(value)
  if (path === 'spec.hostNetwork' || path === 'spec.unschedulable') return String(value === true)
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : String(value)
}

function podAddresses(value: unknown): string {
  if (!Array.isArray(value)) return ''
  return value.map((each: { readonly ip?: string }) => each.ip ?? '').join(',')
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
