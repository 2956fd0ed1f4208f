// Is every wrong pairing of directory, store, node and server refused, and every right one let through?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterMark, Decision, DirectoryFacts, NodeFacts } from './identity.ts'
import { decideDirectory, decideNode, nextEpoch } from './identity.ts'

const mark = (cluster: string, revision: number, epoch = 0): ClusterMark => ({ cluster, epoch, revision })
const used = (found: ClusterMark | undefined, unknownPods = 0) => ({ kind: 'used', mark: found, unknownPods }) as const
const durable = (seen: ClusterMark) => ({ kind: 'read', record: { store: 'durable', seen } }) as const
const none = { kind: 'none' } as const
const creating = { kind: 'read', record: { store: 'creating' } } as const
const memory = { kind: 'read', record: { store: 'memory' } } as const
const keys = ['admin.token']
const data = ['2 pods']

const outcome = (decision: Decision) => (decision.kind === 'refuse' ? decision.code : decision.kind)

const directories: readonly [string, Partial<DirectoryFacts>, string][] = [
  ['nothing there', {}, 'create'],
  ['only keys', { keys }, 'emptyStore'],
  ['only pods', { data }, 'emptyStore'],
  ['keys and pods', { keys, data }, 'emptyStore'],
  ['a first start that was interrupted', { record: creating, keys }, 'create'],
  ['pods in a directory whose first start never ended', { record: creating, keys, data }, 'emptyStore'],
  ['after stores in memory', { record: memory, keys, data }, 'create'],
  ['an emptied store', { record: durable(mark('a', 9)) }, 'emptyStore'],
  ['an emptied store that is accepted', { record: durable(mark('a', 9)), keys, acceptStore: true }, 'emptyStore'],
  ['a store nobody has read yet', { store: { kind: 'unread' }, record: durable(mark('a', 9)), keys, data }, 'proceed'],
  ['a store in memory', { store: { kind: 'memory' }, record: durable(mark('a', 9)), keys, data }, 'proceed'],
  ['a directory without a record', { store: used(mark('a', 9)), keys, data }, 'proceed'],
  ['a store whose first start never ended', { store: used(undefined), record: creating, keys }, 'proceed'],
  ['the same store', { store: used(mark('a', 9)), record: durable(mark('a', 9)) }, 'proceed'],
  ['the same store, later', { store: used(mark('a', 10)), record: durable(mark('a', 9)) }, 'proceed'],
  ['the store of another cluster', { store: used(mark('b', 10)), record: durable(mark('a', 9)) }, 'otherCluster'],
  [
    'the store of another cluster, accepted',
    { store: used(mark('b', 10)), record: durable(mark('a', 9)), acceptStore: true },
    'otherCluster',
  ],
  ['a store without a cluster', { store: used(undefined), record: durable(mark('a', 9)) }, 'otherCluster'],
  ['an older store', { store: used(mark('a', 8)), record: durable(mark('a', 9)) }, 'olderStore'],
  [
    'an older store, accepted',
    { store: used(mark('a', 8)), record: durable(mark('a', 9)), acceptStore: true },
    'accept',
  ],
  ['a store of before a restore', { store: used(mark('a', 99, 4)), record: durable(mark('a', 9, 5)) }, 'olderStore'],
  ['a restored store', { store: used(mark('a', 8, 5)), record: durable(mark('a', 9, 4)) }, 'proceed'],
  ['another process', { holder: '7', store: used(mark('a', 9)), record: durable(mark('a', 9)) }, 'inUse'],
  ['another process, store in memory', { holder: '7', store: { kind: 'memory' } }, 'inUse'],
  ['a newer record', { record: { kind: 'newer', format: 2 }, store: { kind: 'memory' } }, 'newerFormat'],
  ['a damaged record', { record: { kind: 'unreadable' } }, 'recordUnreadable'],
]

for (const [what, given, expected] of directories) {
  test(`data directory: ${what}: ${expected}`, () => {
    const facts: DirectoryFacts = {
      path: '/d',
      recordFile: '/d/identity.json',
      holder: undefined,
      record: none,
      store: { kind: 'empty' },
      keys: [],
      data: [],
      acceptStore: false,
      ...given,
    }
    assert.equal(outcome(decideDirectory(facts)), expected)
  })
}

const ours = { kind: 'read', record: { node: 'n', seen: mark('a', 9) } } as const
const unseen = { kind: 'read', record: { node: 'n' } } as const
const empty = { pods: 0, mounts: 0 }

const roots: readonly [string, Partial<NodeFacts>, string][] = [
  ['without a record', { record: none }, 'proceed'],
  ['our own, before the server answers', { server: 'silent' }, 'proceed'],
  ['our own', {}, 'proceed'],
  ['our own, later', { server: mark('a', 10) }, 'proceed'],
  ['used before any server answered', { record: unseen }, 'proceed'],
  ['another process', { holder: '7' }, 'inUse'],
  ['another process, and empty', { holder: '7', holds: empty, record: none }, 'inUse'],
  ['another node', { node: 'm' }, 'otherNode'],
  ['another node, before the server answers', { node: 'm', server: 'silent' }, 'otherNode'],
  ['another node, and empty', { node: 'm', holds: empty }, 'proceed'],
  ['another cluster', { server: mark('b', 10) }, 'otherCluster'],
  ['another cluster, with mounts only', { server: mark('b', 10), holds: { pods: 0, mounts: 1 } }, 'otherCluster'],
  ['another cluster, and empty', { server: mark('b', 10), holds: empty }, 'proceed'],
  ['an older store', { server: mark('a', 8) }, 'olderStore'],
  ['an older store, and empty', { server: mark('a', 8), holds: empty }, 'proceed'],
  ['a restored store', { server: mark('a', 8, 1) }, 'proceed'],
  ['a cluster we may not see', { server: 'hidden' }, 'clusterHidden'],
  ['a cluster we never saw', { server: 'hidden', record: unseen }, 'proceed'],
  ['a newer record', { record: { kind: 'newer', format: 2 } }, 'newerFormat'],
  ['a damaged record', { record: { kind: 'unreadable' } }, 'recordUnreadable'],
]

for (const [what, given, expected] of roots) {
  test(`node root: ${what}: ${expected}`, () => {
    const facts: NodeFacts = {
      root: '/r',
      recordFile: '/r/node-identity.json',
      node: 'n',
      holder: undefined,
      record: ours,
      server: mark('a', 9),
      holds: { pods: 1, mounts: 0 },
      ...given,
    }
    assert.equal(outcome(decideNode(facts)), expected)
  })
}

test('a refusal says what was found, what would be lost and what to do', () => {
  const facts: DirectoryFacts = {
    path: '/d',
    recordFile: '/d/identity.json',
    holder: undefined,
    record: durable(mark('a', 9)),
    store: used(mark('a', 4), 3),
    keys: [],
    data: [],
    acceptStore: false,
  }
  assert.deepEqual(decideDirectory(facts), {
    kind: 'refuse',
    code: 'olderStore',
    sentence:
      'the store in /d is older than the one last used here (revision 4, seen 9): later changes would be lost, and 3 pods on this machine that it does not know would be deleted',
    remedy: 'put the newer store back, or go on with this one: hawser up --accept-store',
  })
})

test('a new epoch is later than every epoch seen, also when the clock went back', () => {
  assert.deepEqual([nextEpoch(100, 0), nextEpoch(100, 500)], [100, 501])
})
