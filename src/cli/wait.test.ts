// Has every line of progress a subject, though nothing was said before the cause?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Context } from './context.ts'
import { startProgress } from './wait.ts'

test('a cause stands alone where nobody has said what is waited for', () => {
  const notes: string[] = []
  const context = { color: false, note: (text: string) => void notes.push(text) } as unknown as Context // all it uses
  using progress = startProgress(context)
  progress.say('')
  progress.cause('driver a does not answer')
  progress.say('waiting for a volume')
  progress.say('')
  assert.deepEqual(notes, [
    'driver a does not answer',
    'waiting for a volume: driver a does not answer',
    'driver a does not answer',
  ])
})
