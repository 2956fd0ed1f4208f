// Are the generated pages what the code says now? If not: node_modules/.bin/node tools/gen-reference.ts
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { referencePages } from './gen-reference.ts'

const root = join(import.meta.dirname, '..')

test('docs/reference and docs/symptoms are what the code says', async () => {
  const pages = await referencePages()
  const stale = [...pages]
    .filter(([path, text]) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== text)
    .map(([path]) => path)
  const left = globSync('docs/{reference,symptoms}/*.md', { cwd: root }).filter((path) => !pages.has(path))
  assert.deepEqual({ stale, left }, { stale: [], left: [] }, 'run: node_modules/.bin/node tools/gen-reference.ts')
})
