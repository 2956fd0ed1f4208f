// Is the index a sorted set? Any sequence of additions and removals is compared with a plain set.
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createOrderedIndex } from './ordered-index.ts'

const key = fc.stringMatching(/^\/[ab]\/[a-c-]{0,3}$/)

test('an index is a sorted set with prefixes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), key)),
      key,
      fc.option(key, { nil: undefined }),
      (steps, prefix, after) => {
        const index = createOrderedIndex()
        const model = new Set<string>()
        for (const [add, each] of steps) {
          if (add) {
            index.add(each)
            model.add(each)
          } else {
            index.delete(each)
            model.delete(each)
          }
        }
        const wanted = [...model]
          .filter((each) => each.startsWith(prefix) && (after === undefined || each > after))
          .sort()
        assert.deepEqual([...index.keys(prefix, after)], wanted)
        assert.equal(index.count(prefix, after), wanted.length)
      },
    ),
  )
})

test('an index of many keys splits and shrinks without losing any', () => {
  const keys = Array.from({ length: 5_000 }, (_, number) => `/k/${String((number * 7919) % 5_000).padStart(5, '0')}`)
  const index = createOrderedIndex()
  for (const each of keys) index.add(each)
  assert.deepEqual([...index.keys('/k/', undefined)], keys.toSorted())
  assert.equal(index.count('/k/', '/k/02499'), 2_500)
  for (const each of keys) if (each !== '/k/00042') index.delete(each)
  assert.deepEqual([...index.keys('/', undefined)], ['/k/00042'])
})
