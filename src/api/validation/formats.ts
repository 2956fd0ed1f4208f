// Is this text a name, a label, a key? Each check returns Kubernetes' sentences; an empty list means yes.

export type Check = (text: string) => readonly string[]

/** A pattern, compiled once, and the sentence for a text that does not match it. */
interface Format {
  readonly pattern: RegExp
  readonly message: string
}

const alphanumericEnds = 'and must start and end with an alphanumeric character'
const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'

const subdomainFormat = format(
  '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*',
  `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${alphanumericEnds}`,
  ['example.com'],
)
const labelFormat = format(
  '[a-z0-9]([-a-z0-9]*[a-z0-9])?',
  `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${alphanumericEnds}`,
  ['my-name', '123-abc'],
)
const qualifiedFormat = format(
  qualified,
  `must consist of alphanumeric characters, '-', '_' or '.', ${alphanumericEnds}`,
  ['MyName', 'my.name', '123-abc'],
)
const labelValueFormat = format(
  `(${qualified})?`,
  `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${alphanumericEnds}`,
  ['MyValue', 'my_value', '12345'],
)
const configKeyFormat = format(
  '[-._a-zA-Z0-9]+',
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  ['key.name', 'KEY_NAME', 'key-name'],
)

export const isSubdomain: Check = (text) => [...noLongerThan(text, 253), ...matches(text, subdomainFormat)]

export const isLabel: Check = (text) => {
  const long = noLongerThan(text, 63)
  if (matches(text, labelFormat).length === 0) return long
  return [...long, ...(matches(text, subdomainFormat).length === 0 ? ['must not contain dots'] : [labelFormat.message])]
}

/** A name that can at least stand in a path. */
export const isPathSegment: Check = (text) => {
  if (text === '.' || text === '..') return [`may not be '${text}'`]
  return ['/', '%'].filter((character) => text.includes(character)).map((character) => `may not contain '${character}'`)
}

/** `name` or `prefix/name`: label keys, annotation keys, finalizers, provisioners. */
export const isQualifiedName: Check = (text) => {
  const parts = text.split('/')
  if (parts.length > 2) {
    return [
      `a valid label key ${qualifiedFormat.message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
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
  else errors.push(...noMoreBytesThan(name, 63).map((message) => `name part ${message}`))
  return [...errors, ...matches(name, qualifiedFormat).map((message) => `name part ${message}`)]
}

export const isLabelValue: Check = (text) => [...noMoreBytesThan(text, 63), ...matches(text, labelValueFormat)]

/** A key of a ConfigMap or Secret: it becomes a file name. */
export const isConfigKey: Check = (text) => {
  const errors = [...noLongerThan(text, 253), ...matches(text, configKeyFormat)]
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

export const isIpAddress: Check = (text) =>
  isIp(text) ? [] : ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']

/** An address, a slash, and how many of its bits count. */
export const isAddressRange: Check = (text) => {
  const [, address = '', bits = ''] = /^(.+)\/(\d{1,3})$/.exec(text) ?? []
  const right = isIp(address) && Number(bits) <= (address.includes(':') ? 128 : 32)
  return right ? [] : ['must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)']
}

function isIp(text: string): boolean {
  if (/^(\d{1,3}\.){3}\d{1,3}$/.test(text)) return text.split('.').every((part) => Number(part) <= 255)
  if (!/^[0-9a-fA-F:.]+$/.test(text) || !text.includes(':')) return false
  return URL.canParse(`http://[${text}]`)
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

/** The same for what is no DNS name: there Kubernetes says what it counts. */
function noMoreBytesThan(text: string, maximum: number): readonly string[] {
  return Buffer.byteLength(text) > maximum ? [`must be no more than ${maximum} bytes`] : []
}

function matches(text: string, { pattern, message }: Format): readonly string[] {
  return pattern.test(text) ? [] : [message]
}

/** Kubernetes' sentences end alike: examples, then the pattern. */
function format(pattern: string, sentence: string, examples: readonly string[]): Format {
  const list = examples.map((each) => `'${each}'`).join(',  or ')
  return {
    pattern: new RegExp(`^(?:${pattern})$`),
    message: `${sentence} (e.g. ${list}, regex used for validation is '${pattern}')`,
  }
}
