// Is this text a name, a label, a key? Each check returns Kubernetes' sentences; an empty list means yes.

export type Check = (text: string) => readonly string[]

const subdomain = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'
const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = `(${qualified})?`
const configKey = '[-._a-zA-Z0-9]+'

const qualifiedSentence = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${qualified}')`

export const isSubdomain: Check = (text) => [
  ...noLongerThan(text, 253),
  ...matches(
    text,
    subdomain,
    `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomain}')`,
  ),
]

export const isLabel: Check = (text) => [
  ...noLongerThan(text, 63),
  ...matches(
    text,
    label,
    `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`,
  ),
]

/** `name` or `prefix/name`: label keys, annotation keys, finalizers, provisioners. */
export const isQualifiedName: Check = (text) => {
  const parts = text.split('/')
  if (parts.length > 2) {
    return [
      `a valid label key ${qualifiedSentence} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const errors: string[] = []
  if (parts.length === 2) {
    const prefix = parts[0] ?? ''
    if (prefix === '') errors.push('prefix part must be non-empty')
    else errors.push(...isSubdomain(prefix).map((message) => `prefix part ${message}`))
  }
  if (name === '') errors.push('name part must be non-empty')
  else errors.push(...noLongerThan(name, 63).map((message) => `name part ${message}`))
  if (!whole(qualified).test(name)) errors.push(`name part ${qualifiedSentence}`)
  return errors
}

export const isLabelValue: Check = (text) => [
  ...noLongerThan(text, 63),
  ...matches(
    text,
    labelValue,
    `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${labelValue}')`,
  ),
]

/** A key of a ConfigMap or Secret: it becomes a file name. */
export const isConfigKey: Check = (text) => {
  const errors = [
    ...noLongerThan(text, 253),
    ...matches(
      text,
      configKey,
      `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '${configKey}')`,
    ),
  ]
  if (text === '.') errors.push("must not be '.'")
  else if (text === '..') errors.push("must not be '..'")
  else if (text.startsWith('..')) errors.push("must not start with '..'")
  return errors
}

export const isEnvironmentName: Check = (text) => {
  if (text === '') return ['environment variable name must be non-empty']
  if (/^[\x20-\x3c\x3e-\x7e]+$/.test(text)) return []
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

/** A port name: up to 15 characters, with a letter. */
export const isPortName: Check = (text) => {
  const errors: string[] = []
  if (text.length > 15) errors.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(text)) errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  if (!/[a-z]/.test(text)) errors.push('must contain at least one letter (a-z)')
  if (text.includes('--')) errors.push('must not contain consecutive hyphens')
  if (text.startsWith('-') || text.endsWith('-')) errors.push('must not begin or end with a hyphen')
  return errors
}

export function inRange(low: number, high: number): string {
  return `must be between ${low} and ${high}, inclusive`
}

export const notNegative = 'must be greater than or equal to 0'
export const immutable = 'field is immutable'

/** A generateName may end in a dash: something will follow. */
export function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix
}

function noLongerThan(text: string, maximum: number): readonly string[] {
  return text.length > maximum ? [`must be no more than ${maximum} characters`] : []
}

function matches(text: string, pattern: string, message: string): readonly string[] {
  return whole(pattern).test(text) ? [] : [message]
}

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`)
}
