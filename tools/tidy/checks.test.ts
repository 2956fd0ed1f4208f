// Does each check of tidy fail on a bad sample, and pass a good one?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idFirstNames, idOnlyComments, missingHeader } from './comments.ts'
import { brokenLinks, importListProblems, readmeProblems, unknownFiles } from './documents.ts'
import { bannedGlobals, deadFiles, importProblems } from './imports.ts'
import { moduleState } from './state.ts'

const id = (prefix: string, number: number) => `${prefix}-${number}`

/** One sample per entry: how many problems does the check find in it? */
function counts(check: (file: string, text: string) => readonly string[], file: string, samples: readonly string[]) {
  return samples.map((sample) => check(file, sample).length)
}

test('a file begins with a comment, unless it is a test', () => {
  assert.deepEqual(counts(missingHeader, 'src/x.ts', ['import x', '// What?', '#!/usr/bin/env node']), [1, 0, 0])
  assert.deepEqual(missingHeader('src/x.test.ts', 'import x'), [])
})

test('a comment that is only an id is refused; words may end with an id', () => {
  const [a, b] = [id('RCL', 7), id('RCL', 8)]
  const bad = [`/** ${a} */`, `  // ${a}, ${b}`, `// ${a} … ${b}.`, `const x = 1 // ${a}`]
  assert.deepEqual(counts(idOnlyComments, 'src/x.ts', bad), [1, 1, 1, 1])
  assert.deepEqual(counts(idOnlyComments, 'src/x.ts', [`// Pods block it (${a}).`, `const x = '${a}'`]), [0, 0])
})

test('a test name that begins with an id is refused, in a table as well', () => {
  const a = id('TC', 1)
  const bad = [`test('${a}: a match is bound', () => {`, `  ['${a}, ${id('X', 2)} a match', free],`]
  assert.deepEqual(counts(idFirstNames, 'src/x.test.ts', bad), [1, 1])
  const good = [`test('a match is bound (${a})', () => {`, `rule: '${a}',`, `['${a}', '${id('X', 2)}']`]
  assert.deepEqual(counts(idFirstNames, 'src/x.test.ts', good), [0, 0, 0])
})

test('module-level state is refused; constants typed as read-only are fine', () => {
  const bad = [
    'let count = 0',
    'export let count = 0',
    'const seen = new Map<string, number>()',
    'const names = new Set([1])',
    'const list: string[] = []',
    'export const cache = {}',
    "const list = ['a']\nfunction f() {\n  list.push('b')\n}",
    'const state = { a: 1 }\nfunction f() {\n  state.a = 2\n}',
    'const state = { seen: new Map() }\nfunction f() {\n  state.seen.set(1, 2)\n}',
    'const state = { a: { b: 1 } }\nfunction f() {\n  state.a.b++\n}',
    'class C {\n  static last = 0\n}',
  ]
  assert.deepEqual(
    counts(moduleState, 'src/x.ts', bad),
    bad.map(() => 1),
  )
  const good = [
    'const seen: ReadonlyMap<string, number> = new Map()',
    'const none: readonly string[] = []',
    "const list = ['a']\nconst x = list.map(String)",
    'function f() {\n  let count = 0\n  const seen = new Map()\n}',
    'const state = { a: 1 }\nconst same = state.a === 2',
    'class C {\n  static readonly first = 0\n}',
  ]
  assert.deepEqual(
    counts(moduleState, 'src/x.ts', good),
    good.map(() => 0),
  )
})

test('imports follow the table; only adapters touch the outside', () => {
  const bad = ["import x from '../apiserver/x.ts'", "import fs from 'node:fs'", "import x from '../../tools/x.ts'"]
  assert.deepEqual(counts(importProblems, 'src/clock/x.ts', bad), [1, 1, 1])
  assert.deepEqual(counts(importProblems, 'src/elsewhere/x.ts', ['']), [1])
  assert.deepEqual(importProblems('src/plugins/nfs/x.ts', "import x from '../iscsi/x.ts'").length, 1)
  assert.deepEqual(importProblems('src/node/x.ts', "import x from '../host/linux/x.ts'").length > 0, true)
  assert.deepEqual(importProblems('src/node/x.ts', "import x from '../volume/x.ts'"), [])
})

test('timers, randomness and the environment come through ports', () => {
  assert.deepEqual(counts(bannedGlobals, 'src/node/x.ts', ['Date.now()', 'setTimeout(f)', '// Date.now()']), [1, 1, 0])
})

test('a file that nothing imports is dead', () => {
  const sources = new Map([
    ['src/cli/main.ts', "import a from '../a.ts'"],
    ['src/a.ts', ''],
    ['src/b.ts', ''],
  ])
  assert.deepEqual(deadFiles(sources), ['src/b.ts: nothing imports this file'])
})

test('a folder needs a README that fits a screen; links lead somewhere', () => {
  const sources = new Map(['a', 'b', 'c'].map((folder) => [`src/${folder}/x.ts`, '']))
  const documents = new Map([
    ['src/a/README.md', '# a'],
    ['src/b/README.md', 'x\n'.repeat(25)],
  ])
  assert.deepEqual(readmeProblems(sources, documents), [
    "src/b/README.md: 25 lines; a folder's README fits a screen (24)",
    'src/c: no README.md',
  ])
  assert.deepEqual(brokenLinks('README.md', '[a](nowhere.md) [b](GLOSSARY.md#x) [c](https://x) ```[d](no.md)```'), [
    'README.md: broken link nowhere.md',
  ])
})

test('a README of src names only files that there are', () => {
  const sources = new Map(
    ['src/a/b/deep.ts', 'src/a/beside.ts', 'src/c/other.ts', 'tools/x.ts'].map((file) => [file, '']),
  )
  const unknown = (text: string) => unknownFiles('src/a/README.md', text, sources)
  assert.deepEqual(
    unknown('`deep.ts` `b/deep.ts` `beside.ts` `../c/other.ts` `c/other.ts` `tools/x.ts` `*-plan.ts`'),
    [],
  )
  assert.deepEqual(unknown('`other.ts` `../deep.ts`'), [
    'src/a/README.md: there is no file other.ts',
    'src/a/README.md: there is no file ../deep.ts',
  ])
})

test('a README names the folders that its code may import, no more and no fewer', () => {
  const table = { a: ['b', 'c'], d: [], e: ['*'] }
  const check = (document: string, text: string) => importListProblems(document, text, table)
  const good = ['May import: `c`, `b` (port).', 'x. May import: `b`, `c`; `d` never.']
  assert.deepEqual(counts(check, 'src/a/README.md', good), [0, 0])
  const bad = ['May import: `b`.', 'May import: `b`, `c`, `d`.', 'nothing said']
  assert.deepEqual(counts(check, 'src/a/README.md', bad), [1, 1, 1])
  assert.deepEqual(counts(check, 'src/d/README.md', ['May import: nothing.', 'May import: `a`.']), [0, 1])
  assert.deepEqual(counts(check, 'src/e/README.md', ['anything']), [0])
})
