// How much is "1.5Gi", exactly? Resource quantities as Kubernetes parses, compares, adds and prints them.
// Every quantity is a whole number of nano units, so one bigint holds it without loss.

type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent'

export interface Amount {
  /** The value in units of 10⁻⁹. */
  readonly nanos: bigint
  /** Which suffixes it is printed with. */
  readonly format: QuantityFormat
}

export class QuantityError extends Error {
  override readonly name = 'QuantityError'
}

export const quantityFormatWrong =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const suffixWrong = "unable to parse quantity's suffix"

const unit = 1_000_000_000n
const largestBinary = ((1n << 63n) - 1n) * unit
/** Generous: what clients send is limited further where it is read, and printing may lengthen a text a little. */
const longestText = 1024
const largestExponent = 300

const decimalSuffixes: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
])
const decimalNames: ReadonlyMap<number, string> = new Map(
  [...decimalSuffixes].map(([name, exponent]) => [exponent, name]),
)
const binaryNames = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const
const binarySuffixes: ReadonlyMap<string, bigint> = new Map(
  binaryNames.slice(1).map((name, index) => [name, 10n * BigInt(index + 1)]),
)

/** Throws QuantityError with Kubernetes' sentence. Values finer than a nano unit are rounded away from zero. */
export function parseQuantity(text: string): Amount {
  const match = text.length <= longestText ? /^([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)$/s.exec(text) : null
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? []
  if (match === null || whole + fraction === '' || !/^[eEinumkKMGTP]*[-+]?[0-9]*$/.test(suffix)) {
    throw new QuantityError(quantityFormatWrong)
  }
  const digits = BigInt(whole + fraction)
  const magnitude = scaled(digits, fraction.length, suffix)
  return { nanos: sign === '-' ? -magnitude.nanos : magnitude.nanos, format: magnitude.format }
}

export function tryParseQuantity(text: string): Amount | undefined {
  try {
    return parseQuantity(text)
  } catch (error) {
    if (error instanceof QuantityError) return undefined
    throw error
  }
}

/** `"1GB" is not a quantity; did you mean 1Gi or 1G?` */
export function quantityAdvice(text: string): string {
  const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
  const [, number = '', letter = ''] = /^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpPeE]?)[iI]?[bB]?(?:ytes)?$/.exec(text) ?? []
  const unit = letter.toUpperCase()
  const meant =
    number === ''
      ? ''
      : unit === ''
        ? `${number}Mi or ${number}Gi`
        : `${number}${unit}i or ${number}${unit === 'K' ? 'k' : unit}`
  return `${shown} is not a quantity; ${meant === '' ? 'examples: 500Mi, 1Gi, 2T' : `did you mean ${meant}?`}`
}

/** The canonical text: no fraction, the largest suffix that loses nothing. */
export function formatQuantity(amount: Amount): string {
  if (amount.nanos === 0n) return '0'
  if (amount.format === 'BinarySI' && isPrintableInBinary(amount.nanos)) return formatBinary(amount.nanos / unit)
  return formatDecimal(amount)
}

/** What Kubernetes stores when a user writes `text`: "1024Mi" becomes "1Gi", "0.5" becomes "500m". */
export function canonicalQuantity(text: string): string {
  return formatQuantity(parseQuantity(text))
}

/** Negative, zero or positive, as a sort function wants it. */
export function compareAmounts(left: Amount, right: Amount): -1 | 0 | 1 {
  return left.nanos < right.nanos ? -1 : left.nanos > right.nanos ? 1 : 0
}

/** The sum, printed like `left` unless that is zero. */
export function addAmounts(left: Amount, right: Amount): Amount {
  return { nanos: left.nanos + right.nanos, format: left.nanos === 0n ? right.format : left.format }
}

/** The difference, printed like `left` unless that is zero. */
export function subtractAmounts(left: Amount, right: Amount): Amount {
  return { nanos: left.nanos - right.nanos, format: left.nanos === 0n ? right.format : left.format }
}

export function isZero(amount: Amount): boolean {
  return amount.nanos === 0n
}

/** The value in whole units; a fraction is rounded away from zero, as Kubernetes' Value() does. */
export function wholeValue(amount: Amount): bigint {
  return divideAwayFromZero(amount.nanos, unit)
}

/** The value in thousandths (cpu), rounded like wholeValue. */
export function milliValue(amount: Amount): bigint {
  return divideAwayFromZero(amount.nanos, 1_000_000n)
}

function amountOf(units: bigint | number, format: QuantityFormat = 'BinarySI'): Amount {
  return { nanos: BigInt(units) * unit, format }
}

/** Bytes as an object spells them: 1073741824n is "1Gi". */
export function quantityOfBytes(bytes: bigint | number): string {
  return formatQuantity(amountOf(bytes))
}

/** The bytes that a quantity of an object asks for, rounded up. */
export function bytesOfQuantity(text: string): bigint {
  return wholeValue(parseQuantity(text))
}

/** Compares two quantities of stored (thus valid) objects; an absent one counts as zero. */
export function compareQuantities(left: string | undefined, right: string | undefined): -1 | 0 | 1 {
  return compareAmounts(parseQuantity(left ?? '0'), parseQuantity(right ?? '0'))
}

function scaled(digits: bigint, fractionLength: number, suffix: string): Amount {
  const power = binarySuffixes.get(suffix)
  if (power !== undefined) {
    const nanos = divideAwayFromZero((digits << power) * unit, 10n ** BigInt(fractionLength))
    const capped = nanos > largestBinary ? largestBinary : nanos
    // Below one there is no binary suffix to print; Kubernetes switches to decimals at once.
    return { nanos: capped, format: capped > 0n && capped < unit ? 'DecimalSI' : 'BinarySI' }
  }
  const decimal = decimalSuffixes.get(suffix)
  if (decimal !== undefined) return { nanos: shifted(digits, decimal - fractionLength), format: 'DecimalSI' }
  const exponent = /^[eE]([+-]?[0-9]+)$/.exec(suffix)?.[1]
  if (exponent === undefined || Math.abs(Number(exponent)) > largestExponent) throw new QuantityError(suffixWrong)
  return { nanos: shifted(digits, Number(exponent) - fractionLength), format: 'DecimalExponent' }
}

function shifted(digits: bigint, exponent: number): bigint {
  const places = exponent + 9
  return places >= 0 ? digits * 10n ** BigInt(places) : divideAwayFromZero(digits, 10n ** BigInt(-places))
}

function divideAwayFromZero(value: bigint, by: bigint): bigint {
  const quotient = value / by
  if (quotient * by === value) return quotient
  return value > 0n ? quotient + 1n : quotient - 1n
}

function isPrintableInBinary(nanos: bigint): boolean {
  const small = nanos > -1024n * unit && nanos < 1024n * unit
  return !small && nanos % unit === 0n
}

function formatBinary(units: bigint): string {
  let value = units
  let step = 0
  while (value % 1024n === 0n && step < binaryNames.length - 1) {
    value /= 1024n
    step += 1
  }
  return `${value}${binaryNames[step] ?? ''}`
}

// Beyond exa (1000E and more) Kubernetes prints no suffix at all and so loses the magnitude; we stay at the largest
// suffix instead.
function formatDecimal({ nanos, format }: Amount): string {
  const largest = format === 'DecimalExponent' ? Number.POSITIVE_INFINITY : 18
  let value = nanos
  let exponent = -9
  while (value % 1000n === 0n && exponent < largest) {
    value /= 1000n
    exponent += 3
  }
  if (format === 'DecimalExponent') return exponent === 0 ? `${value}` : `${value}e${exponent}`
  return `${value}${decimalNames.get(exponent) ?? ''}`
}
