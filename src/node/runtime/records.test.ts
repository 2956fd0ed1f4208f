// Do torn and foreign files of a container say nothing, rather than something wrong?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latestAttempts, parseExit, parseIdentity, parseRecord } from './records.ts'

test('what a supervisor wrote is read; what is torn says nothing', () => {
  assert.deepEqual(parseExit('137 1700000000000\n'), { code: 137, at: 1_700_000_000_000, reason: 'Error' })
  assert.deepEqual(parseIdentity('12 3456\n'), { pid: 12, startTime: '3456' })
  for (const torn of [undefined, '', '\n', '1', '1 ', 'x 5', '1 5x', '\0\0', 'null']) {
    assert.equal(parseExit(torn), undefined, String(torn))
    assert.equal(parseIdentity(torn), undefined, String(torn))
  }
})

test('a record without a time is none', () => {
  assert.deepEqual(parseRecord('{"startedAt":5,"pause":true,"owner":"a/b"}'), {
    startedAt: 5,
    pause: true,
    owner: 'a/b',
  })
  for (const torn of [undefined, '', 'null', '[]', '{}', '{"startedAt":"5"}', '{"started'])
    assert.equal(parseRecord(torn), undefined, String(torn))
})

test('the latest two starts count, by number and not by name', () => {
  assert.deepEqual(latestAttempts(['10', '9', '2', 'notes', '11x']), [9, 10])
  assert.deepEqual([latestAttempts(['0']), latestAttempts([])], [[0], []])
})
