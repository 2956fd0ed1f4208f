import assert from 'node:assert/strict'
import test from 'node:test'
import { createLine } from './line.ts'

const anyone = () => true

test('a line is served in order, and whoever comes back stands before those who joined', () => {
  const line = createLine()
  for (const key of ['a', 'b', 'c']) line.join(key)
  assert.equal(line.first(anyone), 'a')
  line.leave('a')
  line.leave('b')
  assert.equal(line.first(anyone), 'c')
  line.comeBack('a')
  line.join('d')
  assert.deepEqual(
    [line.first(anyone), line.first((key) => key !== 'a'), line.first((key) => key > 'c')],
    ['a', 'c', 'd'],
  )
})

test('joining twice, leaving twice and leaving unseen change nothing', () => {
  const line = createLine()
  line.leave('x')
  line.join('a')
  line.join('a')
  line.comeBack('a')
  line.leave('a')
  line.leave('a')
  assert.deepEqual([line.isEmpty(), line.first(anyone)], [true, undefined])
  line.join('a')
  assert.deepEqual([line.isEmpty(), line.first(anyone)], [false, 'a'])
})

test('taking everybody from a long line looks at each key a few times only', () => {
  const line = createLine()
  const count = 20_000
  for (let index = 0; index < count; index++) line.join(`key-${index}`)
  let looks = 0
  const counted = () => ++looks > 0
  for (let index = 0; index < count; index++) {
    const key = line.first(counted)
    assert.equal(key, `key-${index}`)
    line.leave(key)
  }
  assert.deepEqual([looks, line.isEmpty()], [count, true])
})
