// Are changes found where revisions have gaps, and where one revision holds several changes?
import assert from 'node:assert/strict'
import test from 'node:test'
import { createChangeLog } from './change-log.ts'
import type { Change } from './store.ts'
import { isStoreError } from './store.ts'
import { createVersionedState } from './versioned-state.ts'

const never = new AbortController().signal
const limits = { changes: 100, bytes: 1_000_000 }

function created(key: string, revision: number): Change {
  return {
    type: 'created',
    revision,
    entry: { key, value: key, revision, createRevision: revision },
    previous: undefined,
  }
}

function stateWith(changes: readonly Change[]) {
  const state = createVersionedState({ entries: new Map(), history: [], revision: 1, oldest: 1 }, limits)
  state.commit(changes)
  return state
}

test('the first change after a revision is found across gaps', () => {
  const log = createChangeLog(10)
  for (const revision of [12, 15, 15, 20]) log.append(created(`/a/${revision}`, revision))
  const after = (revision: number) => log.at(log.positionAfter(revision))?.revision
  assert.deepEqual([10, 11, 12, 14, 15, 19, 20].map(after), [12, 12, 15, 15, 20, 20, undefined])
  log.shift()
  log.shift()
  assert.deepEqual([log.oldest(), after(15), log.size()], [15, 20, 2])
})

test('a watch hands out all changes of a revision that holds several, and has seen it only then', async () => {
  const state = stateWith([created('/a/1', 3), created('/b/1', 7), created('/a/2', 7), created('/a/3', 7)])
  const watch = state.hub.watch('/a/', 1, never)
  const steps = Array.from({ length: 4 }, () => [watch.take()?.entry.key, watch.seen()])
  assert.deepEqual(steps, [
    ['/a/1', 3],
    ['/a/2', 6],
    ['/a/3', 7],
    [undefined, 7],
  ])
})

test('a list at a revision in a gap shows the state of then', () => {
  const state = stateWith([created('/a/1', 3), created('/a/2', 7)])
  state.advance(9)
  assert.deepEqual(
    [state.revision(), state.list('/a/', { at: 5 }).entries.length, state.list('/a/', {}).revision],
    [9, 1, 9],
  )
})

test('other entries cut off every watch, also one that had seen everything', async () => {
  const state = stateWith([created('/a/1', 3)])
  const idle = state.hub.watch('/a/', 3, never)[Symbol.asyncIterator]()
  const pending = idle.next()
  state.replace(new Map([['/a/2', { key: '/a/2', value: 'x', revision: 8, createRevision: 8 }]]), 9)
  await assert.rejects(pending, (error) => isStoreError(error, 'tooOld'))
  assert.deepEqual([state.oldest(), state.get('/a/1'), state.list('/a/', {}).entries[0]?.key], [9, undefined, '/a/2'])
})
