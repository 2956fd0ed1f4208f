// A world changes only through events and tells its subscribers.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createWorld } from './world.ts'

type Event = { readonly key: string; readonly add: number } | { readonly key: string; readonly gone: true }
const make = () =>
  createWorld<string, number, Event>(
    (event) => event.key,
    (item, event) => ('gone' in event ? undefined : (item ?? 0) + event.add),
  )

test('the reducer sees one record; undefined forgets it', () => {
  const world = make()
  world.apply({ key: 'a', add: 2 })
  world.apply({ key: 'a', add: 3 })
  world.apply({ key: 'b', add: 1 })
  assert.deepEqual(
    [...world.items],
    [
      ['a', 5],
      ['b', 1],
    ],
  )
  world.apply({ key: 'a', gone: true })
  assert.deepEqual([...world.items], [['b', 1]])
})

test('subscribers hear of changes only, and not after they left', () => {
  const world = make()
  const heard: string[] = []
  const subscription = world.subscribe((key) => heard.push(key))
  world.apply({ key: 'a', add: 1 })
  world.apply({ key: 'a', add: 0 })
  subscription[Symbol.dispose]()
  world.apply({ key: 'b', add: 1 })
  assert.deepEqual(heard, ['a'])
})
