// Do selectors choose what Kubernetes would, and refuse what it refuses? Tables, and properties of the text forms.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { escapeValue, formatFieldSelector, matchesFields, nameAskedFor, parseFieldSelector } from './field-selectors.ts'
import { matchesNodeLabels, matchesNodeSelector, tolerates, untoleratedTaint } from './node-selector.ts'
import { formatLabelSelector, matchesLabels, matchesSelector, parseLabelSelector, SelectorError } from './selectors.ts'

const labels = { app: 'web', tier: 'a', size: '5', empty: '' }
const matching: readonly (readonly [string, boolean])[] = [
  ['', true],
  ['app=web', true],
  ['app==web', true],
  ['app = web , tier=a', true],
  ['app=db', false],
  ['app!=db', true],
  ['missing!=db', true],
  ['app in (web,db)', true],
  ['app in (db)', false],
  ['app notin (web)', false],
  ['missing notin (web)', true],
  ['app', true],
  ['missing', false],
  ['!missing', true],
  ['!app', false],
  ['size>4', true],
  ['size > 5', false],
  ['size<6', true],
  ['app>1', false],
  ['empty=', true],
  ['empty in (,x)', true],
  ['empty in (x,)', true],
  ['in', false],
  ['toString', false],
]
for (const [text, expected] of matching) {
  test(`label selector ${JSON.stringify(text)} ${expected ? 'matches' : 'does not match'}`, () => {
    assert.equal(matchesLabels(parseLabelSelector(text), labels), expected)
  })
}

const refused: readonly (readonly [string, string])[] = [
  ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
  ['a=b c', "found 'c', expected: ',' or 'end of string'"],
  ['a,', "found '', expected: identifier after ','"],
  [',a', "found ',', expected: !, identifier, or 'end of string'"],
  ['a ~ b', "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt"],
  ['a in b', "unable to parse requirement: found 'b' expected: '('"],
]
for (const [text, message] of refused) {
  test(`label selector ${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => parseLabelSelector(text), new SelectorError(message))
  })
}

test('no text makes the label parser throw anything but a SelectorError', () => {
  const pieces = fc.array(fc.constantFrom('a', 'b/c', ' ', ',', '=', '!=', '!', '(', ')', 'in', 'notin', '<', '9'))
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        pieces.map((list) => list.join('')),
      ),
      (text) => {
        try {
          parseLabelSelector(text)
        } catch (error) {
          assert.ok(error instanceof SelectorError)
        }
      },
    ),
  )
})

test('a label selector survives printing and parsing', () => {
  const key = fc.constantFrom('a', 'app', 'example.com/x')
  const value = fc.constantFrom('v', 'w', 'x1')
  const requirement = fc.oneof(
    fc.record({
      key,
      operator: fc.constantFrom('in' as const, 'notin' as const),
      values: fc.uniqueArray(value, { minLength: 1 }),
    }),
    fc.record({ key, operator: fc.constantFrom('exists' as const, '!' as const), values: fc.constant([]) }),
    fc.record({ key, operator: fc.constantFrom('gt' as const, 'lt' as const), values: fc.constant(['7']) }),
  )
  fc.assert(
    fc.property(fc.array(requirement), (list) => {
      const sorted = list.map((each) => ({ ...each, values: [...each.values].sort() }))
      assert.deepEqual(parseLabelSelector(formatLabelSelector(sorted)), sorted)
    }),
  )
})

test('an absent LabelSelector chooses nothing, an empty one everything', () => {
  assert.equal(matchesSelector(undefined, {}), false)
  assert.equal(matchesSelector({}, {}), true)
  const both = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'x', operator: 'DoesNotExist' as const }] }
  assert.equal(matchesSelector(both, labels), true)
  assert.equal(matchesSelector(both, { ...labels, x: '' }), false)
})

const pod = {
  metadata: { name: 'p', namespace: 'n' },
  spec: { nodeName: 'n1' },
  status: { phase: 'Running', podIPs: [{ ip: '1.1.1.1' }, { ip: '::1' }] },
}
const fields: readonly (readonly [string, boolean])[] = [
  ['', true],
  ['metadata.name=p', true],
  ['metadata.name==p,metadata.namespace=n', true],
  ['spec.nodeName!=n1', false],
  ['spec.host=n1', true],
  ['status.phase!=Failed,status.phase!=Succeeded', true],
  ['spec.hostNetwork=false', true],
  ['status.nominatedNodeName=', true],
  ['status.podIPs=1.1.1.1\\,::1', true],
]
for (const [text, expected] of fields) {
  test(`field selector ${JSON.stringify(text)} ${expected ? 'matches' : 'does not match'}`, () => {
    assert.equal(matchesFields(parseFieldSelector('Pod', text), pod), expected)
  })
}

test('events are found by their source and their object', () => {
  const event = { source: { component: 'c' }, involvedObject: { name: 'x', uid: 'u' } }
  assert.equal(matchesFields(parseFieldSelector('Event', 'source=c,involvedObject.uid=u'), event), true)
  assert.equal(matchesFields(parseFieldSelector('Event', 'involvedObject.name=y'), event), false)
})

test('unsupported fields and malformed terms are refused in Kubernetes words', () => {
  const table = [
    ['Pod', 'spec.color=red', 'field label not supported: spec.color'],
    [
      'StorageClass',
      'provisioner=x',
      '"provisioner" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ['Pod', 'spec', "invalid selector: 'spec'; can't understand 'spec'"],
    ['Pod', 'metadata.name=a\\b', 'invalid field selector: invalid escape sequence: \\b'],
    ['Pod', 'metadata.name=a=b', 'invalid field selector: unescaped character in value: 61'],
  ] as const
  for (const [kind, text, message] of table) {
    assert.throws(() => parseFieldSelector(kind, text), new SelectorError(message))
  }
})

test('any value survives escaping in a field selector', () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      const parsed = parseFieldSelector('Pod', `metadata.name=${escapeValue(value)}`)
      assert.equal(nameAskedFor(parsed), value)
      assert.deepEqual(parseFieldSelector('Pod', formatFieldSelector(parsed)), parsed)
    }),
  )
})

test('node selector terms are alternatives, their requirements all hold', () => {
  const node = { name: 'n1', labels: { zone: 'a', cores: '8' } }
  const match = (...nodeSelectorTerms: Parameters<typeof matchesNodeSelector>[0]['nodeSelectorTerms']) =>
    matchesNodeSelector({ nodeSelectorTerms }, node)
  assert.equal(match(), false)
  assert.equal(match({}), false)
  assert.equal(match({ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }), true)
  assert.equal(match({ matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }), false)
  assert.equal(match({ matchExpressions: [{ key: 'rack', operator: 'NotIn', values: ['a'] }] }), true)
  assert.equal(match({ matchExpressions: [{ key: 'rack', operator: 'Exists' }] }), false)
  assert.equal(match({ matchExpressions: [{ key: 'rack', operator: 'DoesNotExist' }] }), true)
  assert.equal(match({ matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['7'] }] }), true)
  assert.equal(match({ matchExpressions: [{ key: 'cores', operator: 'Lt', values: ['8'] }] }), false)
  assert.equal(match({}, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }), true)
  assert.equal(match({ matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['n1'] }] }), false)
  assert.equal(matchesNodeLabels({ zone: 'a' }, node.labels), true)
  assert.equal(matchesNodeLabels({ zone: 'b' }, node.labels), false)
})

test('a taint is tolerated by key, value and effect', () => {
  const taint = { key: 'k', value: 'v', effect: 'NoSchedule' } as const
  assert.equal(tolerates([], taint), false)
  assert.equal(tolerates([{ operator: 'Exists' }], taint), true)
  assert.equal(tolerates([{ key: 'k', value: 'v' }], taint), true)
  assert.equal(tolerates([{ key: 'k', operator: 'Equal', value: 'w' }], taint), false)
  assert.equal(tolerates([{ key: 'k', operator: 'Exists', effect: 'NoExecute' }], taint), false)
  assert.equal(untoleratedTaint([{ key: 'k', effect: 'PreferNoSchedule' }], []), undefined)
  assert.deepEqual(untoleratedTaint([taint], undefined), taint)
})
