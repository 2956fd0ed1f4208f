// Does a backup bring back exactly what was there, or refuse?
import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readBackup, readDataDirectory, restoreInto, writeBackup } from './backup.ts'
import type { Backup } from './backup.ts'
import { UsageError } from './config.ts'

const place = mkdtempSync(join(tmpdir(), 'hawser-backup-'))
after(() => rmSync(place, { recursive: true, force: true }))

const whole: Backup = {
  at: '2026-01-02T03:04:05Z',
  version: '1',
  from: 'api',
  files: { 'token.key': 'k', 'layout-version': '1\n' },
  objects: [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', uid: 'u1' } },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'c', uid: 'u2', finalizers: ['x/y'] },
      provisioner: 'p',
    } as Backup['objects'][number],
  ],
}

test('what is written is read again, and a directory made from it holds the same objects', async () => {
  const file = join(place, 'whole.jsonl')
  writeBackup(file, whole)
  assert.deepEqual(readBackup(file), whole)
  const directory = join(place, 'data')
  mkdirSync(directory)
  await restoreInto(directory, readBackup(file))
  const back = await readDataDirectory(directory, whole.at)
  const bare = back.objects.map((object) => {
    const { resourceVersion: _version, ...metadata } = object.metadata
    return { ...object, metadata }
  })
  assert.deepEqual(
    bare.toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
    whole.objects,
  )
  assert.deepEqual(back.files, whole.files)
})

test('a changed byte, a missing end and a foreign file are refused', () => {
  const file = join(place, 'damaged.jsonl')
  writeBackup(file, whole)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace('"u1"', '"u9"'))
  assert.throws(() => readBackup(file), /damaged/)
  writeFileSync(file, text.slice(0, text.lastIndexOf('{"objects"')))
  assert.throws(() => readBackup(file), /damaged/)
  appendFileSync(file, text)
  assert.throws(() => readBackup(file), UsageError)
})

test('a directory that holds anything is left alone, and a failed restore leaves nothing', async () => {
  const full = join(place, 'full')
  mkdirSync(full)
  writeFileSync(join(full, 'x'), '')
  await assert.rejects(restoreInto(full, whole), /is not empty/)
  const target = join(place, 'target')
  const strange = { ...whole, objects: [{ apiVersion: 'x/v1', kind: 'Y', metadata: { name: 'z' } }] }
  await assert.rejects(restoreInto(target, strange), /does not know/)
  await assert.rejects(restoreInto(target, { ...whole, files: { '../escape': 'x' } }), /unknown file/)
  assert.ok(!existsSync(target) && !existsSync(`${target}.restoring`) && !existsSync(join(place, 'escape')))
})
