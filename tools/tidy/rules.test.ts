// Are rules found in each form, and is an id that does not resolve refused?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definitionsOf, exceptionsOf, referencesIn, rulesNamedIn, unresolvedIds, untestedRules } from './rules.ts'

/** Written apart, so that tidy does not take our samples for references. */
const id = (prefix: string, number: number | string) => `${prefix}-${number}`
const [one, two, three] = [id('AAA', 1), id('AAA', 2), id('AAA', 3)]

test('a rule is defined in bold, in a list or in a table; a mention is not a definition', () => {
  const text = `- **${one}** add. **${two}** keep, see ${three}.\n- ${id('BB', 1)} x ${one}\n| ${id('C', 1)} | y |\n  ${three} goes on`
  assert.deepEqual(
    definitionsOf('a.md', text).map((each) => `${each.id}:${each.line}`),
    [`${one}:1`, `${two}:1`, `${id('BB', 1)}:2`, `${id('C', 1)}:3`],
  )
})

test('a letter belongs to its rule; words of others and parts of longer names are no rules', () => {
  const line = `// ${id('CLM', '8c')}, ${id('KA', '*')} ${id('SHA', 256)} x${one} a/${two} ${three}-b`
  assert.deepEqual(referencesIn(line), [id('CLM', 8), id('KA', '*')])
})

test('an id without a definition fails, and so does one with two', () => {
  const definitions = [...definitionsOf('a.md', `- ${one} x`), ...definitionsOf('b.md', `- ${one} y`)]
  const files = new Map([['src/x.ts', `// fine (${one}, ${id('AAA', '*')})\n// not (${two}, ${id('ZZ', '*')})`]])
  assert.deepEqual(unresolvedIds(definitions, files), [
    `${one} is defined twice: a.md:1, b.md:1`,
    `src/x.ts:2: rule ${two} is defined nowhere in docs/rules`,
    `src/x.ts:2: rule ${id('ZZ', '*')} is defined nowhere in docs/rules`,
  ])
})

test('a range counts in a test and not in a comment', () => {
  const named = rulesNamedIn([`test('x (${one} … ${three})')`, `// ${id('B', 1)} … ${id('B', 3)}`])
  assert.deepEqual([...named].toSorted(), [one, two, three, id('B', 1), id('B', 3)])
})

test('a rule without a test needs a reason; a reason needs a rule without a test', () => {
  const definitions = definitionsOf('a.md', `- ${one} x\n- ${two} y\n- ${three} z\n- ${id('B', 1)} w`)
  const tests = new Map([['x.test.ts', `test('x (${one})')`]])
  const exceptions = `- ${one}: too much\n- ${two}: because\n- ${id('B', '*')}: elsewhere\n- ${three}\n`
  assert.deepEqual([...exceptionsOf(exceptions).keys()], [one, two, id('B', '*')])
  assert.deepEqual(untestedRules(definitions, tests, exceptions), [
    `rule ${three}: no test names it, and docs/rules/exceptions.md gives no reason`,
    `docs/rules/exceptions.md: a test names ${one}; drop the exception`,
  ])
})
