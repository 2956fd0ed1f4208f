// Does every parser and selector stay below n·log n, whatever a client sends? (Attack A4: one request of 220 KB
// held the server for seconds.)
import { test } from 'node:test'
import { matchesFields, parseFieldSelector } from '../../src/api/field-selectors.ts'
import { matchesLabels, parseLabelSelector } from '../../src/api/selectors.ts'
import { parseJson } from '../../src/apiserver/http/codec.ts'
import { parseYaml } from '../../src/apiserver/http/yaml.ts'
import { decodeProtobuf } from '../../src/apiserver/protobuf/decode.ts'
import { encodeProtobuf } from '../../src/apiserver/protobuf/encode.ts'
import { answered, assertGrowth, mapOf, times, type Work } from '../kit/growth.ts'

const yamlSizes = [200, 1_000, 8_000] as const
/** Without the limit on tokens: what is within it must not grow either. */
const limits = { depth: 200, tokens: Number.POSITIVE_INFINITY, aliasedCharacters: 3 * 1024 * 1024 }

function yaml(name: string, text: (size: number) => string): Work {
  return {
    name: `YAML with ${name}`,
    sizes: yamlSizes,
    prepare(size) {
      const input = text(size)
      return () => {
        try {
          return parseYaml(input, limits, () => {})
        } catch (error) {
          return error
        }
      }
    },
  }
}

const yamlTexts: readonly Work[] = [
  yaml('many keys', (size) => times(size, (at) => `k${at}: v\n`).join('')),
  yaml('many keys in braces', (size) => `{${times(size, (at) => `k${at}: v`).join(', ')}}`),
  yaml('one key again and again', (size) => 'k: v\n'.repeat(size)),
  yaml('one key again and again in braces', (size) => `{${'k: v, '.repeat(size)}}`),
  yaml('a long list', (size) => '- v\n'.repeat(size)),
  yaml('an anchor and an alias on every line', (size) =>
    [...times(size, (at) => `- &a${at} v`), ...times(size, (at) => `- *a${at}`)].join('\n'),
  ),
  yaml('one anchor set and used again and again', (size) => '- &a v\n- *a\n'.repeat(size)),
  yaml('a long anchor', (size) => `a: &${'a'.repeat(size * 10)} v\nb: *${'a'.repeat(size * 10)}\n`),
  yaml('aliases of one anchor', (size) => `- &a v\n${'- *a\n'.repeat(size)}`),
  yaml('aliases of nothing', (size) => times(size, (at) => `- *a${at}\n`).join('')),
  yaml('merge keys', (size) => `a: &a {x: 1}\nb:\n${'  <<: *a\n'.repeat(size)}`),
  yaml(
    'large merges',
    (size) => `a: &a\n${times(size, (at) => `  k${at}: 1\n`).join('')}${'b: {<<: *a}\n'.repeat(90)}`,
  ),
  yaml('merged keys that are set again', (size) => {
    const keys = times(size, (at) => `  k${at}: 1\n`).join('')
    return `a: &a\n${keys}b:\n  <<: *a\n${keys}`
  }),
  yaml('a set', (size) => `a: !!set\n${times(size, (at) => `  ? k${at}\n`).join('')}`),
  yaml('an ordered map', (size) => `a: !!omap\n${times(size, (at) => `  - k${at}: 1\n`).join('')}`),
  yaml('lists in lists', (size) => `${'- '.repeat(size)}x`),
  yaml('keys in keys', (size) => `${'? '.repeat(size)}x`),
  yaml('maps as keys', (size) => times(size, (at) => `? {a: ${at}}\n: v\n`).join('')),
  yaml('comments', (size) => `a:\n${'  # c\n  - x\n'.repeat(size)}`),
  yaml('a text over many lines', (size) => `a: "${'word\n  '.repeat(size)}"\nb: ${'word\n  '.repeat(size)}`),
  yaml('many faults on one line', (size) => `[${'!!x"a" "b" '.repeat(size)}]`),
  yaml('many documents', (size) => '--- a\n'.repeat(size)),
  yaml('many digits', (size) => `a: ${'1'.repeat(size)}\nb: ${'1_'.repeat(size)}\nc: 1${':1'.repeat(size)}x`),
]

const jsonSizes = [500, 5_000, 50_000] as const

function json(name: string, text: (size: number) => string): Work {
  return {
    name: `JSON with ${name}`,
    sizes: jsonSizes,
    prepare(size) {
      const bytes = Buffer.from(text(size))
      return answered(() => parseJson(bytes, () => {}))
    },
  }
}

const jsonTexts: readonly Work[] = [
  json('many keys', (size) => JSON.stringify(mapOf(size))),
  json('one field again and again', (size) => `{${'"a":1,'.repeat(size)}"a":2}`),
  json('every field twice', (size) => `{${times(size, (at) => `"k${at}":1, "k${at}":1`).join(',')}}`),
  json('fields repeated below a long name', (size) => {
    const inner = times(size, (at) => `"k${at}":1, "k${at}":1`).join(',')
    return `{"${'n'.repeat(size * 10)}":{${inner}}}`
  }),
  json('a fault at its end', (size) => `{"a":[${'1, '.repeat(size)}x]}`),
  json('a text that does not end', (size) => `{"a":"${'\\u0041'.repeat(size)}`),
  json('blanks', (size) => `{"a":1,"a":1${' \n'.repeat(size)}}`),
]

const configMap = (size: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'default' },
  data: mapOf(size),
})

const volumes = (size: number) => times(size, (at) => ({ name: `v${at}` }))

const protobufs: readonly Work[] = [
  {
    name: 'protobuf with many map entries',
    sizes: [500, 5_000, 20_000],
    prepare(size) {
      const bytes = encodeProtobuf(configMap(size))
      return answered(() => decodeProtobuf(bytes))
    },
  },
  {
    name: 'protobuf with many items',
    sizes: [500, 5_000, 20_000],
    prepare(size) {
      const bytes = encodeProtobuf({ ...configMap(0), kind: 'Pod', data: {}, spec: { volumes: volumes(size) } })
      return answered(() => decodeProtobuf(bytes))
    },
  },
]

/** The address of a request has at most 32 KB: these are beyond it. */
const selectorSizes = [100, 1_000, 10_000] as const
const selectors: readonly Work[] = [
  {
    name: 'label selector with many values',
    sizes: selectorSizes,
    prepare(size) {
      const text = `a in (${times(size, (at) => `v${at}`).join(',')})`
      return () => matchesLabels(parseLabelSelector(text), { a: 'none' })
    },
  },
  {
    name: 'label selector with many terms',
    sizes: selectorSizes,
    prepare(size) {
      const text = times(size, (at) => `a!=v${at}`).join(',')
      return () => matchesLabels(parseLabelSelector(text), { a: 'none' })
    },
  },
  {
    name: 'field selector with many terms',
    sizes: selectorSizes,
    prepare(size) {
      const text = times(size, (at) => `metadata.name!=v${at}`).join(',')
      return () => matchesFields(parseFieldSelector('Pod', text), { metadata: { name: 'p' } })
    },
  },
  {
    name: 'field selector with escapes',
    sizes: selectorSizes,
    prepare(size) {
      const text = `metadata.name=${'\\,'.repeat(size)}`
      return () => parseFieldSelector('Pod', text)
    },
  },
]

for (const work of [...yamlTexts, ...jsonTexts, ...protobufs, ...selectors]) {
  test(`${work.name} takes time below n·log n`, () => assertGrowth(work))
}
