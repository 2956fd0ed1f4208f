// Secrets never reach a log line: neither by the field's name nor inside a Secret object.
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Fields } from './log.ts'
import { createLog } from './log.ts'

function lines() {
  const seen: { level: string; message: string; fields: Fields }[] = []
  const log = createLog((level, message, fields) => seen.push({ level, message, fields }))
  return { log, seen }
}

test('a child carries its fields into every line', () => {
  const { log, seen } = lines()
  log.child({ node: 'a' }).info('volume mounted', { volume: 'v' })
  assert.deepEqual(seen, [{ level: 'info', message: 'volume mounted', fields: { node: 'a', volume: 'v' } }])
})

test('secrets are cut out wherever they stand', () => {
  const { log, seen } = lines()
  log.info('x', {
    request: { secrets: { key: 'hunter2' }, token: 'hunter2', name: 'shown' },
    object: { kind: 'Secret', metadata: { name: 's' }, data: { a: 'hunter2' }, stringData: { b: 'hunter2' } },
    error: new Error('outer', { cause: { password: 'hunter2' } }),
    list: [{ authorization: 'Bearer hunter2' }],
  })
  const text = JSON.stringify(seen)
  assert.ok(!text.includes('hunter2'), text)
  assert.ok(text.includes('shown'))
})

test('errors become message, code and effect; big integers become text', () => {
  const { log, seen } = lines()
  log.warn('x', { error: Object.assign(new Error('no'), { code: 'E1', effect: 'none' }), size: 5n })
  assert.deepEqual(seen[0]?.fields, { error: { message: 'no', code: 'E1', effect: 'none' }, size: '5' })
})

test('what nobody reads is not made ready: the fields of a silent level are never looked at', () => {
  const seen: string[] = []
  const log = createLog(
    (level) => seen.push(level),
    {},
    (level) => level === 'warn',
  )
  const untouchable = {
    get value(): string {
      throw new Error('looked at')
    },
  }
  log.child({ node: 'a' }).info('volume mounted', { untouchable })
  log.warn('volume not mounted')
  assert.deepEqual(seen, ['warn'])
})
