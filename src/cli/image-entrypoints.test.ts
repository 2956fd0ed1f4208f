// Which values does --image-entrypoint take?
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { UsageError } from '../installation/config.ts'
import { parseImageEntrypoints } from './image-entrypoints.ts'

const directory = mkdtempSync(join(tmpdir(), 'hawser-entrypoints-'))
after(() => rmSync(directory, { recursive: true }))
const [program, text] = [join(directory, 'run'), join(directory, 'text')]
writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
writeFileSync(text, '', { mode: 0o644 })

test('an image, its program and the default words after it', () => {
  assert.deepEqual(parseImageEntrypoints([`a/b:1=${program}`, `c=${program} x  --y=z`]), [
    { image: 'a/b:1', program, defaultArgs: [] },
    { image: 'c', program, defaultArgs: ['x', '--y=z'] },
  ])
})

const refused: readonly [string, readonly string[], RegExp][] = [
  ['no program', ['nginx'], /takes IMAGE=PATH, not "nginx"/],
  ['an empty program', ['nginx='], /takes IMAGE=PATH/],
  ['no image', [`=${program}`], /takes IMAGE=PATH/],
  ['a name instead of a path', ['nginx=nginx'], /nginx=nginx: the program must be an absolute path/],
  ['a program that is not there', [`nginx=${directory}/no`], /there is no such file on this machine/],
  ['a directory', [`nginx=${directory}`], /that is not a file/],
  ['a file that may not be executed', [`nginx=${text}`], /may not be executed.*chmod \+x/],
  ['an image twice', [`nginx=${program}`, `nginx=${program} x`], /names image nginx twice/],
]
for (const [name, given, words] of refused)
  test(`${name} is refused`, () => {
    assert.throws(
      () => parseImageEntrypoints(given),
      (error) => error instanceof UsageError && words.test(error.message),
    )
  })
