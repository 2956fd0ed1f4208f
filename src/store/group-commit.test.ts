import assert from 'node:assert/strict'
import test from 'node:test'
import { defaultHistory } from './compaction.ts'
import type { GroupCommit } from './group-commit.ts'
import { createGroupCommit } from './group-commit.ts'
import type { Change } from './store.ts'
import type { VersionedState } from './versioned-state.ts'
import { createVersionedState } from './versioned-state.ts'

interface Bench {
  readonly commits: GroupCommit
  readonly state: VersionedState
  /** The keys of each transaction so far. */
  readonly appended: string[][]
  /** Ends the flush that is waited for. */
  flushed(error?: Error): Promise<void>
}

test('a write is neither shown nor acknowledged before its flush has ended', async () => {
  const { commits, state, flushed } = bench()
  const write = follow(put(commits, 'a'))
  await turns()
  assert.deepEqual([write.outcome, state.get('a'), state.revision()], ['open', undefined, 0])
  await flushed()
  assert.deepEqual([write.outcome, state.get('a')?.revision, state.revision()], ['done', 1, 1])
})

test('what comes in while a batch is on its way becomes the next batch', async () => {
  const { commits, appended, flushed } = bench()
  const first = put(commits, 'a')
  await turns()
  const others = ['b', 'c', 'd'].map((key) => put(commits, key))
  await turns()
  assert.deepEqual(appended, [['a']])
  await flushed()
  await first
  await turns()
  assert.deepEqual(appended, [['a'], ['b', 'c', 'd']])
  await flushed()
  assert.deepEqual(
    (await Promise.all(others)).map(({ revision }) => revision),
    [2, 3, 4],
  )
})

test('a flush that takes no time acknowledges at once', async () => {
  const { commits, state } = bench({ fast: true })
  const write = await put(commits, 'a')
  assert.deepEqual([write.revision, state.get('a')?.revision], [1, 1])
  await commits.close()
})

test('a write that meets a version on its way sees it, and loses against it', async () => {
  const { commits, flushed } = bench()
  const first = put(commits, 'a')
  await turns()
  const second = follow(put(commits, 'a'))
  await flushed()
  await first
  await turns()
  assert.equal(second.outcome, 'exists')
})

test('after a failed flush nothing is acknowledged any more, and nothing of the batch is shown', async () => {
  const { commits, state, flushed } = bench()
  const first = follow(put(commits, 'a'))
  await turns()
  const waiting = follow(put(commits, 'b'))
  await flushed(new Error('I/O error'))
  const later = follow(put(commits, 'c'))
  await turns()
  assert.deepEqual([first.outcome, waiting.outcome, later.outcome], ['unavailable', 'unavailable', 'unavailable'])
  assert.equal(state.get('a'), undefined)
})

test('closing waits for the batch on its way and for what is queued behind it', async () => {
  const { commits, appended, flushed } = bench()
  const writes = [follow(put(commits, 'a'))]
  await turns()
  writes.push(follow(put(commits, 'b')))
  const closing = commits.close()
  const late = follow(put(commits, 'c'))
  await flushed()
  await turns()
  await flushed()
  await closing
  assert.deepEqual(
    [appended, writes.map(({ outcome }) => outcome), late.outcome],
    [[['a'], ['b']], ['done', 'done'], 'unavailable'],
  )
})

function bench({ fast = false } = {}): Bench {
  const state = createVersionedState({ entries: new Map(), history: [], revision: 0, oldest: 0 }, defaultHistory)
  const appended: string[][] = []
  let waiting: PromiseWithResolvers<void> | undefined
  const journal = {
    append: (changes: readonly Change[]) => void appended.push(changes.map(({ entry }) => entry.key)),
    flush: () => (fast ? undefined : (waiting = Promise.withResolvers<void>()).promise),
  }
  return {
    commits: createGroupCommit(journal, state, setImmediate),
    state,
    appended,
    async flushed(error) {
      assert.ok(waiting, 'no flush is waited for')
      if (error === undefined) waiting.resolve()
      else waiting.reject(error)
      await turns()
    },
  }
}

function put(commits: GroupCommit, key: string) {
  return commits.enqueue({ type: 'create', key, value: '1' })
}

/** How a write stands right now, without waiting for it. */
function follow(write: Promise<unknown>): { outcome: string } {
  const followed = { outcome: 'open' }
  write.then(
    () => (followed.outcome = 'done'),
    (error: { code: string }) => (followed.outcome = error.code),
  )
  return followed
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}
