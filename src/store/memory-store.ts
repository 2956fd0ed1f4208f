// What is a store without a disk? The versioned state itself; writes enter at once.
// It serves the simulator, tests and `--store memory`.
import type { HistoryLimits } from './compaction.ts'
import { defaultHistory } from './compaction.ts'
import type { Entry, Store } from './store.ts'
import { StoreError } from './store.ts'
import type { Write } from './versioned-state.ts'
import { changeOf, createVersionedState } from './versioned-state.ts'

export function createMemoryStore(options: { readonly history?: HistoryLimits } = {}): Store {
  const state = createVersionedState(
    { entries: new Map(), history: [], revision: 0, oldest: 0 },
    options.history ?? defaultHistory,
  )
  let closed = false

  async function write(request: Write): Promise<Entry> {
    if (closed) throw new StoreError('unavailable', 'the store is closed')
    const change = changeOf(request, state.get(request.key), state.revision() + 1)
    state.commit([change])
    return change.entry
  }

  return {
    revision: state.revision,
    oldest: state.oldest,
    get: async (key) => state.get(key),
    list: async (prefix, page) => state.list(prefix, page),
    create: (key, value) => write({ type: 'create', key, value }),
    update: (key, value, expected) => write({ type: 'update', key, value, expected }),
    remove: (key, expected) => write({ type: 'remove', key, expected }),
    watch: (prefix, after, signal) => state.hub.watch(prefix, after, signal),
    async compact(before) {
      state.forget(before)
    },
    async [Symbol.asyncDispose]() {
      closed = true
      state.hub.close()
    },
  }
}
