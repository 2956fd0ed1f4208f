import assert from 'node:assert/strict'
import test from 'node:test'
import type { Node } from '../../api/generated/types.ts'
import { watchAttachments } from './attachment.ts'

function setUp(state: { holders?: string[]; mounted?: string[]; exclusive?: boolean; troubled?: boolean } = {}) {
  const broken: string[] = []
  const watch = watchAttachments({
    volumeOf: (handle) => `plugin/d^${handle}`,
    isExclusive: () => state.exclusive ?? true,
    holders: () => new Set(state.holders ?? []),
    isMounted: (node) => (state.mounted ?? []).includes(node),
    wasTroubled: () => state.troubled ?? false,
    violated: (rule) => void broken.push(rule),
  })
  return { watch, broken }
}

test('two nodes with an exclusive volume are caught, two with a shared one are not (INV-3)', () => {
  const exclusive = setUp({ holders: ['a'] })
  exclusive.watch.onPublish('h', 'b')
  assert.deepEqual(exclusive.broken, ['one writer node'])
  const shared = setUp({ holders: ['a'], exclusive: false })
  shared.watch.onPublish('h', 'b')
  assert.deepEqual(shared.broken, [])
})

test('taking a mounted volume is caught, unless by force on a lost node (INV-1)', () => {
  const quiet = setUp({ mounted: ['a'] })
  quiet.watch.onUnpublish('h', 'a')
  assert.deepEqual(quiet.broken, ['no detach under a mount'])
  const forced = setUp({ mounted: ['a'], troubled: true })
  forced.watch.onForce('plugin/d^h', 'a')
  forced.watch.onUnpublish('h', 'a')
  assert.deepEqual(forced.broken, [])
  forced.watch.onPublish('h', 'a') // what was forced away once is not forced for ever
  forced.watch.onUnpublish('h', 'a')
  assert.deepEqual(forced.broken, ['no detach under a mount'])
})

test('force on a healthy node is caught (FD-3)', () => {
  const { watch, broken } = setUp()
  watch.onForce('plugin/d^h', 'a')
  assert.deepEqual(broken, ['force only on lost nodes'])
})

test('taking a volume that node status still names is caught (INV-2)', () => {
  const { watch, broken } = setUp()
  const node = {
    metadata: { name: 'a' },
    status: { volumesAttached: [{ name: 'plugin/d^h', devicePath: '' }] },
  } as Node
  watch.beforeUnpublish('h', 'a', undefined)
  assert.deepEqual(broken, [])
  watch.beforeUnpublish('h', 'a', node)
  assert.deepEqual(broken, ['leave volumesAttached first'])
})

test('mounting what was not brought is caught (NSP-2)', () => {
  const { watch, broken } = setUp({ holders: ['a'] })
  watch.onMount('a', 'plugin/d^h')
  assert.deepEqual(broken, [])
  watch.onMount('b', 'plugin/d^h')
  assert.deepEqual(broken, ['mount only what is attached'])
})
