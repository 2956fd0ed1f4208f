// Is an answer in YAML read as it was meant, also by readers of YAML 1.1, which Kubernetes' own programs are?
import assert from 'node:assert/strict'
import test from 'node:test'
import { parse } from 'yaml'
import { jsonResponse } from './respond.ts'

test('texts that look like times, words for truth or numbers are quoted (D9)', () => {
  const value = {
    creationTimestamp: '2026-01-02T03:04:05Z',
    data: { answer: 'yes', day: '2026-01-02', duration: '1:30', number: '1_000', nothing: '~', off: 'off', plain: 'a' },
  }
  const text = String(jsonResponse(200, value, 'yaml').body)
  assert.deepEqual(parse(text, { version: '1.1' }), value)
  assert.match(text, /^creationTimestamp: "2026-01-02T03:04:05Z"$/m)
  assert.match(text, /^ {2}plain: a$/m)
})
