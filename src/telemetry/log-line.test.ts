// Can a person read the log on a terminal, and does every line stay one line?
import assert from 'node:assert/strict'
import test from 'node:test'
import { readableLine } from './log-line.ts'

const at = new Date('2026-01-02T03:04:05.678Z')

test('a line on a terminal has time, level, message and fields', () => {
  const fields = { driver: 'a.example.com', socket: '/run/a b.sock', tries: 3, more: { x: 1 }, none: undefined }
  assert.equal(
    readableLine(at, 'warn', 'driver not registered', fields),
    '03:04:05 warn  driver not registered  driver=a.example.com  socket="/run/a b.sock"  tries=3  more={"x":1}',
  )
})

test('an error tells what happened and why, on one line', () => {
  const error = { message: 'staging failed', code: 'INTERNAL', cause: { message: 'mount: bad\noption \u001b[31m' } }
  assert.equal(
    readableLine(at, 'error', 'gave up', { error }),
    '03:04:05 error gave up  error="staging failed (INTERNAL): mount: bad\\noption \\u001b[31m"',
  )
})
