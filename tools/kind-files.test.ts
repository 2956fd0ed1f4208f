// Is every definition found, and is one that would be overlooked refused?
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { kindNames } from '../src/api/kinds.ts'
import { readKindFiles } from './kind-files.ts'

test('every definition is found by its file, with the name it has in our code', async () => {
  const found = await readKindFiles(new URL('../src/api/kinds/', import.meta.url))
  assert.deepEqual(
    found.map(({ name }) => name),
    kindNames,
  )
  const view = found.find(({ name }) => name === 'EventsEvent')
  assert.deepEqual([view?.file, view?.exported, view?.definition.kind], ['event.ts', 'eventsEventKind', 'Event'])
})

test('a definition whose constant has another name is refused, not left out', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-kinds-'))
  try {
    writeFileSync(join(directory, 'widget.ts'), `export const widget = { kind: 'Widget', message: 'm.W', table: {} }\n`)
    await assert.rejects(readKindFiles(pathToFileURL(`${directory}/`)), {
      message: 'widget.ts: rename the constant widget so that it ends in Kind',
    })
  } finally {
    rmSync(directory, { recursive: true })
  }
})
