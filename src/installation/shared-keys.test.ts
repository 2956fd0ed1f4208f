import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { directoryRecordName } from './outer-root.ts'
import { writeRecord } from './records.ts'
import type { KeyPlace, Keys } from './shared-keys.ts'
import { decideKeys, shareKeys } from './shared-keys.ts'

const now = Date.parse('2026-11-18T12:00:00Z')
const keys: Keys = { 'admin.token': 'a', 'token.key': 't', 'ca.key': 'k', 'ca.crt': 'c' }

test('keys are shared, taken, used or refused by who has which', () => {
  const cases = [
    [{}, undefined, false, 'share'],
    [keys, undefined, true, 'share'],
    [keys, keys, true, 'proceed'],
    [{ ...keys, 'admin.token': 'a\n' }, keys, true, 'proceed'],
    // A renewed certificate of the same authority.
    [{ ...keys, 'ca.crt': 'renewed' }, keys, true, 'proceed'],
    [{}, keys, false, 'take'],
    // Tokens are made before the store is asked.
    [{ 'admin.token': 'other', 'token.key': 'other' }, keys, false, 'take'],
    [{ ...keys, 'ca.key': 'other' }, keys, true, 'refuse'],
    [{ 'admin.token': 'other' }, keys, true, 'refuse'],
  ] as const
  for (const [own, shared, isUsed, expected] of cases) assert.equal(decideKeys(own, shared, isUsed).kind, expected)
})

test('a second directory gets the keys of the first, and one with other keys is refused', async (t) => {
  const place = memoryPlace()
  const [first, second] = [directory(t), directory(t)]
  await shareKeys(first, place, now)
  writeFileSync(join(second, 'admin.token'), 'made before etcd was asked', { mode: 0o600 })
  writeFileSync(join(second, 'server.crt'), 'of an authority of before', { mode: 0o600 })
  await shareKeys(second, place, now)
  for (const name of Object.keys(keys)) {
    assert.equal(readFileSync(join(second, name), 'utf8'), readFileSync(join(first, name), 'utf8'))
    assert.equal(statSync(join(second, name)).mode & 0o077, 0)
  }
  assert.ok(!existsSync(join(second, 'server.crt')))

  writeRecord(join(second, directoryRecordName), { store: 'durable', seen: { cluster: 'u', epoch: 0, revision: 1 } })
  await shareKeys(second, place, now)
  writeFileSync(join(second, 'token.key'), 'other')
  await assert.rejects(
    shareKeys(second, place, now),
    /the keys in .* \(token\.key\) are not those of the cluster in here/,
  )
})

test('of two servers that begin together the keys of one count for both', async (t) => {
  const place = memoryPlace()
  const [one, two] = [directory(t), directory(t)]
  // Both have seen no keys before either puts its own there.
  await Promise.all([shareKeys(one, place, now), shareKeys(two, place, now)])
  assert.equal(readFileSync(join(one, 'ca.key'), 'utf8'), readFileSync(join(two, 'ca.key'), 'utf8'))
  assert.equal(readFileSync(join(one, 'admin.token'), 'utf8'), readFileSync(join(two, 'admin.token'), 'utf8'))
})

test('keys that cannot be read are not shown', async (t) => {
  const place = { ...memoryPlace(), readKeys: async () => '{"format":1,"keys":{"admin.token":"secret-word"}}' }
  await assert.rejects(shareKeys(directory(t), place, now), (error: Error) => {
    assert.match(error.message, /the keys in here cannot be read/)
    return !error.message.includes('secret-word')
  })
})

function memoryPlace(): KeyPlace {
  let kept: string | undefined
  return { where: 'here', readKeys: async () => kept, keepKeys: async (text) => (kept ??= text) }
}

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'hawser-keys-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}
