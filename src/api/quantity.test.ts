// Do quantities parse, print and compute as Kubernetes' do? Tables from its documented behaviour, and
// properties against a model of exact fractions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addAmounts,
  bytesOfQuantity,
  canonicalQuantity,
  compareAmounts,
  compareQuantities,
  formatQuantity,
  isZero,
  milliValue,
  parseQuantity,
  quantityOfBytes,
  QuantityError,
  subtractAmounts,
  tryParseQuantity,
  wholeValue,
} from './quantity.ts'

const canonical: readonly (readonly [string, string])[] = [
  ['0', '0'],
  ['0Ki', '0'],
  ['-0', '0'],
  ['0e5', '0'],
  ['1', '1'],
  ['+1', '1'],
  ['-1', '-1'],
  ['1.', '1'],
  ['.5', '500m'],
  ['0.5', '500m'],
  ['1000m', '1'],
  ['1024Mi', '1Gi'],
  ['1025Mi', '1025Mi'],
  ['1.5Gi', '1536Mi'],
  ['0.5Ki', '512'],
  ['1Ki', '1Ki'],
  ['1023', '1023'],
  ['1024', '1024'],
  ['2048Ki', '2Mi'],
  ['6437.5Ki', '6592000'],
  ['1.3Ki', '1331200m'],
  ['0.1Mi', '104857600m'],
  ['0.0001Ki', '102400u'],
  ['1000', '1k'],
  ['1500', '1500'],
  ['1000000', '1M'],
  ['10G', '10G'],
  ['1000G', '1T'],
  ['1E', '1E'],
  ['1e3', '1e3'],
  ['1E3', '1e3'],
  ['1.5e3', '1500'],
  ['1e-3', '1e-3'],
  ['12e1', '120'],
  ['100e6', '100e6'],
  ['1n', '1n'],
  ['0.1n', '1n'],
  ['-0.1n', '-1n'],
  ['1.0000000001', '1000000001n'],
  ['100u', '100u'],
  ['10Ei', '9223372036854775807'],
  ['-1Gi', '-1Gi'],
  ['-1.5Gi', '-1536Mi'],
  ['1000E', '1000E'],
]

for (const [text, expected] of canonical) {
  test(`quantity ${text} is written ${expected}`, () => assert.equal(canonicalQuantity(text), expected))
}

const formatWrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
const suffixWrong = "unable to parse quantity's suffix"
const refused: readonly (readonly [string, string])[] = [
  ['', formatWrong],
  ['abc', formatWrong],
  ['1 Gi', formatWrong],
  ['1GB', formatWrong],
  ['--1', formatWrong],
  ['1.2.3', formatWrong],
  ['.', formatWrong],
  ['1\n', formatWrong],
  ['1K', suffixWrong],
  ['1ki', suffixWrong],
  ['1GiGi', suffixWrong],
  ['1e', suffixWrong],
  ['1Gi3', suffixWrong],
  ['1e999999999', suffixWrong],
]
for (const [text, message] of refused) {
  test(`quantity ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => parseQuantity(text), new QuantityError(message))
    assert.equal(tryParseQuantity(text), undefined)
  })
}

test('whole and milli values round away from zero', () => {
  assert.equal(wholeValue(parseQuantity('1500m')), 2n)
  assert.equal(wholeValue(parseQuantity('-1500m')), -2n)
  assert.equal(milliValue(parseQuantity('1500u')), 2n)
  assert.equal(bytesOfQuantity('1Gi'), 1n << 30n)
  assert.equal(quantityOfBytes(1n << 31n), '2Gi')
  assert.equal(quantityOfBytes(1500), '1500')
})

test('a sum keeps the format of its left side unless that is zero', () => {
  const sum = (a: string, b: string) => formatQuantity(addAmounts(parseQuantity(a), parseQuantity(b)))
  assert.equal(sum('1Gi', '1G'), '2073741824')
  assert.equal(sum('0', '1Gi'), '1Gi')
  assert.equal(formatQuantity(subtractAmounts(parseQuantity('2Gi'), parseQuantity('1Gi'))), '1Gi')
  assert.equal(formatQuantity(subtractAmounts(parseQuantity('0'), parseQuantity('1Gi'))), '-1Gi')
})

test('comparison looks at the value, not at the text', () => {
  assert.equal(compareQuantities('1Gi', '1024Mi'), 0)
  assert.equal(compareQuantities('1G', '1Gi'), -1)
  assert.equal(compareQuantities('1', undefined), 1)
})

// The model: a value is numerator / 10^9, computed from the text's parts independently of the parser.
const decimal = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 } as const
const binary = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5 } as const
const quantities = fc
  .record({
    negative: fc.boolean(),
    whole: fc.bigInt(0n, 9999n),
    fraction: fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 4 }),
    suffix: fc.constantFrom(...Object.keys(decimal), ...Object.keys(binary), 'e3', 'E-2', 'e+10'),
  })
  .map(({ negative, whole, fraction, suffix }) => ({
    text: `${negative ? '-' : ''}${whole}${fraction ? `.${fraction}` : ''}${suffix}`,
    nanos: (negative ? -1n : 1n) * model(whole, fraction, suffix),
  }))

function model(whole: bigint, fraction: string, suffix: string): bigint {
  const numerator = whole * 10n ** BigInt(fraction.length) + BigInt(fraction || '0')
  const scale =
    suffix in binary
      ? 1024n ** BigInt(binary[suffix as keyof typeof binary]) * 10n ** 30n
      : 10n ** BigInt(30 + (suffix in decimal ? decimal[suffix as keyof typeof decimal] : Number(suffix.slice(1))))
  const value = numerator * scale * 10n ** 9n
  const by = 10n ** BigInt(30 + fraction.length)
  const nanos = value % by === 0n ? value / by : value / by + 1n
  const largest = (2n ** 63n - 1n) * 10n ** 9n // Kubernetes caps binary quantities, and only those
  return suffix in binary && nanos > largest ? largest : nanos
}

test('parsing agrees with exact fractions', () => {
  fc.assert(fc.property(quantities, ({ text, nanos }) => parseQuantity(text).nanos === nanos))
})

test('printing and parsing again changes neither value nor text', () => {
  fc.assert(
    fc.property(quantities, ({ text }) => {
      const once = canonicalQuantity(text)
      assert.equal(compareQuantities(text, once), 0)
      const again = canonicalQuantity(once)
      assert.equal(compareQuantities(once, again), 0)
      // No multiple of 1024: a plain number is left, which is read as a decimal one (6437.5Ki → 6592000 → 6592k).
      if (!(text.endsWith('i') && /^-?\d+$/.test(once))) assert.equal(again, once)
    }),
  )
})

test('order and arithmetic agree with big integers', () => {
  fc.assert(
    fc.property(quantities, quantities, (left, right) => {
      const [a, b] = [parseQuantity(left.text), parseQuantity(right.text)]
      assert.equal(compareAmounts(a, b), left.nanos < right.nanos ? -1 : left.nanos > right.nanos ? 1 : 0)
      assert.equal(addAmounts(a, b).nanos, left.nanos + right.nanos)
      assert.equal(subtractAmounts(a, b).nanos, left.nanos - right.nanos)
      assert.equal(isZero(a), left.nanos === 0n)
      const sum = addAmounts(a, b)
      const large = sum.nanos > 2n ** 62n * 10n ** 9n || sum.nanos < -(2n ** 62n) * 10n ** 9n
      if (!large) assert.equal(parseQuantity(formatQuantity(sum)).nanos, left.nanos + right.nanos)
    }),
  )
})

test('no text makes the parser throw anything but a QuantityError', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      tryParseQuantity(text)
    }),
  )
})
