// Which objects does a label selector choose? The text form (`app=web,tier in (a,b),!old`) and the LabelSelector
// object become one list of requirements. Field selectors are in field-selectors.ts.
import { invalid, summary } from './field-errors.ts'
import type { FieldError } from './field-errors.ts'
import type { LabelSelector } from './generated/types.ts'
import { isLabelValue, isQualifiedName } from './validation/formats.ts'

export type Labels = Readonly<Record<string, string>>
export type LabelOperator = 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'

interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: readonly string[]
}

/** All requirements must hold; none at all chooses everything. */
export type LabelRequirements = readonly LabelRequirement[]

/** A selector that cannot be understood; the message is Kubernetes'. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError'
}

export function parseLabelSelector(text: string): LabelRequirements {
  return new Parser(tokensOf(text)).parse()
}

/** A LabelSelector of an object. Absent chooses nothing (undefined), an empty one everything. */
function requirementsOf(selector: LabelSelector | undefined): LabelRequirements | undefined {
  if (selector === undefined) return undefined
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]): LabelRequirement => ({
    key,
    operator: 'in',
    values: [value],
  }))
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values }): LabelRequirement => {
    switch (operator) {
      case 'In':
        return { key, operator: 'in', values: values ?? [] }
      case 'NotIn':
        return { key, operator: 'notin', values: values ?? [] }
      case 'Exists':
        return { key, operator: 'exists', values: [] }
      case 'DoesNotExist':
        return { key, operator: '!', values: [] }
      default:
        throw new SelectorError(`${JSON.stringify(operator satisfies never)} is not a valid label selector operator`)
    }
  })
  return [...labels, ...expressions]
}

export function matchesLabels(requirements: LabelRequirements | undefined, labels: Labels | undefined): boolean {
  return requirements !== undefined && requirements.every((requirement) => holds(requirement, labels ?? {}))
}

export function matchesSelector(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return matchesLabels(requirementsOf(selector), labels)
}

/** The text form: parsing it gives the same requirements. */
export function formatLabelSelector(requirements: LabelRequirements): string {
  return requirements.map(formatRequirement).join(',')
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'in':
    case 'notin':
      return operator === 'in' && values.length === 1
        ? `${key}=${values[0]}`
        : `${key} ${operator} (${values.join(',')})`
    case 'exists':
      return key
    case '!':
      return `!${key}`
    case 'gt':
      return `${key}>${values[0]}`
    case 'lt':
      return `${key}<${values[0]}`
  }
}

function holds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  return fulfils(Object.hasOwn(labels, key) ? labels[key] : undefined, operator, values)
}

/** Whether a value, or none, is as an operator of a selector wants it. */
export function fulfils(value: string | undefined, operator: LabelOperator, values: readonly string[]): boolean {
  switch (operator) {
    case 'in':
      return value !== undefined && values.includes(value)
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'exists':
      return value !== undefined
    case '!':
      return value === undefined
    case 'gt':
    case 'lt':
      return compareIntegers(value, values[0], operator)
  }
}

/** Whether `value` is greater (or less) than `bound`; texts that are no integers never match. */
export function compareIntegers(value: string | undefined, bound: string | undefined, operator: 'gt' | 'lt'): boolean {
  if (!isInteger(value) || !isInteger(bound)) return false
  return operator === 'gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound)
}

function isInteger(text: string | undefined): text is string {
  return text !== undefined && /^-?[0-9]{1,19}$/.test(text)
}

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

function tokensOf(text: string): readonly Token[] {
  const found = text.matchAll(/(==|!=|[=!(),<>])|([^\s=!(),<>]+)/g)
  const tokens = Array.from(found, ([token, symbol]): Token => ({ kind: symbol ? 'symbol' : 'word', text: token }))
  return [...tokens, { kind: 'end', text: '' }]
}

class Parser {
  private readonly tokens: readonly Token[]
  private position = 0

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens
  }

  parse(): LabelRequirements {
    const requirements: LabelRequirement[] = []
    for (;;) {
      const token = this.peek()
      if (token.kind === 'end') return requirements
      if (!startsRequirement(token)) throw found(token, "!, identifier, or 'end of string'")
      requirements.push(this.wrapped())
      const next = this.take()
      if (next.kind === 'end') return requirements
      if (next.text !== ',') throw found(next, "',' or 'end of string'")
      if (!startsRequirement(this.peek())) throw found(this.peek(), "identifier after ','")
    }
  }

  private wrapped(): LabelRequirement {
    try {
      return this.requirement()
    } catch (error) {
      if (!(error instanceof SelectorError)) throw error
      throw new SelectorError(`unable to parse requirement: ${error.message}`)
    }
  }

  private requirement(): LabelRequirement {
    const negated = this.peek().text === '!'
    if (negated) this.take()
    const name = this.take()
    if (name.kind !== 'word') throw found(name, 'identifier')
    const key = name.text
    // Kubernetes has no path for the key, and says so.
    refuse(isQualifiedName(key).map((message) => invalid('<nil>', key, message)))
    if (negated) return { key, operator: '!', values: [] }
    if (this.peek().kind === 'end' || this.peek().text === ',') return { key, operator: 'exists', values: [] }
    const operator = operatorOf(this.take())
    const values = operator === 'in' || operator === 'notin' ? this.set() : [this.value()]
    return check({ key, ...resolved(operator, values) })
  }

  private set(): readonly string[] {
    const open = this.take()
    if (open.text !== '(') throw new SelectorError(`found '${open.text}' expected: '('`)
    const values = new Set<string>()
    // `()` holds one value, the empty one.
    if (this.peek().text === ')') {
      this.take()
      return ['']
    }
    for (;;) {
      const token = this.take()
      if (token.kind === 'word') {
        values.add(token.text)
        const next = this.peek()
        if (next.text === ')') break
        if (next.text !== ',') throw found(next, "',' or ')'")
        this.take()
        if (this.peek().text === ')' || this.peek().text === ',') values.add('')
        if (this.peek().text === ')') break
      } else if (token.text === ',') {
        values.add('')
        if (this.peek().text === ')') break
      } else throw found(token, "',', ')' or identifier")
    }
    this.take()
    return [...values].sort()
  }

  private value(): string {
    const token = this.peek()
    if (token.kind === 'end' || token.text === ',') return ''
    if (token.kind !== 'word') throw found(token, 'identifier')
    return this.take().text
  }

  private peek(): Token {
    return this.tokens[this.position] ?? { kind: 'end', text: '' }
  }

  private take(): Token {
    const token = this.peek()
    this.position += 1
    return token
  }
}

type WrittenOperator = 'in' | 'notin' | '=' | '==' | '!=' | '>' | '<'

function operatorOf(token: Token): WrittenOperator {
  switch (token.text) {
    case 'in':
    case 'notin':
    case '=':
    case '==':
    case '!=':
    case '>':
    case '<':
      return token.text
    default:
      throw found(token, 'in, notin, =, ==, !=, gt, lt')
  }
}

function resolved(
  operator: WrittenOperator,
  values: readonly string[],
): { readonly operator: LabelOperator; readonly values: readonly string[] } {
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return { operator: 'in', values }
    case '!=':
    case 'notin':
      return { operator: 'notin', values }
    case '>':
      return { operator: 'gt', values }
    case '<':
      return { operator: 'lt', values }
  }
}

function check(requirement: LabelRequirement): LabelRequirement {
  const { operator, values } = requirement
  if ((operator === 'gt' || operator === 'lt') && !isInteger(values[0])) {
    refuse([invalid('values[0]', values[0], "for 'Gt', 'Lt' operators, the value must be an integer")])
  }
  refuse(
    values.flatMap((value, index) =>
      isLabelValue(value).map((message) => invalid(`values[${index}][${requirement.key}]`, value, message)),
    ),
  )
  return requirement
}

function refuse(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw new SelectorError(summary(errors))
}

function startsRequirement(token: Token): boolean {
  return token.kind === 'word' || token.text === '!'
}

function found(token: Token, expected: string): SelectorError {
  return new SelectorError(`found '${token.text}', expected: ${expected}`)
}
