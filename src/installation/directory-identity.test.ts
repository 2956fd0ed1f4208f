// Does a data directory follow its own store, and a node root its own cluster, over crashes, restores and swaps?
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { kinds } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { createStoredObjects, storeKey } from '../apiserver/objects/stored-objects.ts'
import type { Host } from '../host/host.ts'
import { openSqliteStore } from '../store/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { readBackup, readDataDirectory, restoreInto, writeBackup } from './backup.ts'
import { markOfStore } from './cluster-mark.ts'
import { openDataDirectory } from './data-directory.ts'
import { findRefusal } from './directory-identity.ts'
import { openNodeIdentity } from './node-identity.ts'

let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-identity-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const { signal } = new AbortController()
const embedded = { store: 'embedded' } as const

/** What a server does with its directory: prove, work, remember. */
async function run(path: string, work: (store: Store) => Promise<unknown>, acceptStore = false): Promise<void> {
  using directory = openDataDirectory(path, { ...embedded, acceptStore })
  await using store = openSqliteStore({ path: directory.storeFile })
  await directory.identity.prove(store, 1_000)
  await work(store)
  await directory.identity.remember(store)
}

async function createNamespace(store: Store, name: string, uid: string): Promise<void> {
  const object: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, uid } }
  await store.create(storeKey(kinds.Namespace, { name }), createStoredObjects().encode(kinds.Namespace, object))
}

const nothing = async () => {}
const newCluster = (uid: string) => (store: Store) => createNamespace(store, 'kube-system', uid)

test('a first start that was interrupted after its keys goes on; later the same emptiness is refused', async () => {
  const path = join(place, 'interrupted')
  openDataDirectory(path, embedded)[Symbol.dispose]()
  await run(path, newCluster('a'))
  assert.equal(statSync(join(path, 'identity.json')).mode & 0o777, 0o600)
  assert.equal(findRefusal(path), undefined)
  writeFileSync(join(path, 'store.db'), '')
  await assert.rejects(run(path, nothing), /is empty or missing, but .* the record of cluster a, admin\.token/)
  assert.equal(findRefusal(path)?.code, 'emptyStore')
})

test('an older store is refused, and accepted as a new epoch; the newer one is then the old one', async () => {
  const path = join(place, 'older')
  const store = join(path, 'store.db')
  await run(path, newCluster('a'))
  copyFileSync(store, join(place, 'early.db'))
  await run(path, (opened) => createNamespace(opened, 'later', 'x'))
  copyFileSync(store, join(place, 'late.db'))
  copyFileSync(join(place, 'early.db'), store)
  await assert.rejects(run(path, nothing), /older than the one last used here \(revision 1, seen 2\)/)
  await run(path, async (opened) => assert.equal((await markOfStore(opened))?.epoch, 1_000), true)
  copyFileSync(join(place, 'late.db'), store)
  await assert.rejects(run(path, nothing), /of before the restore of 1970-01-01T00:00:01/)
})

test('a directory of an older Hawser is adopted when its store is there, and refused when it is not', async () => {
  const path = join(place, 'adopted')
  await run(path, newCluster('a'))
  rmSync(join(path, 'identity.json'))
  await run(path, nothing)
  assert.match(readFileSync(join(path, 'identity.json'), 'utf8'), /"cluster":"a"/)
  for (const name of ['identity.json', 'store.db']) rmSync(join(path, name))
  await assert.rejects(run(path, nothing), /this is not a new cluster/)
})

test('a directory that only had stores in memory can get a durable one', async () => {
  const path = join(place, 'memory')
  openDataDirectory(path, { store: 'memory' })[Symbol.dispose]()
  await run(path, newCluster('a'))
})

test('a restored store is a later epoch of the same cluster, which nodes accept', async () => {
  const [path, restored, root] = [join(place, 'whole'), join(place, 'restored'), join(place, 'root')]
  mkdirSync(join(root, 'pods', 'uid'), { recursive: true })
  const node = { dataDirectory: place, node: { name: 'n', root }, host: noMounts }
  const prove = async (store: Store) => {
    using identity = await openNodeIdentity(node, signal)
    await identity.prove((await markOfStore(store))!, signal)
  }
  await run(path, newCluster('a'))
  const file = join(place, 'backup.jsonl')
  writeBackup(file, await readDataDirectory(path, 'now'))
  await run(path, async (store) => {
    await createNamespace(store, 'later', 'x')
    await prove(store)
  })
  await restoreInto(restored, readBackup(file))
  await run(restored, prove)
  await assert.rejects(run(path, prove), /the server's store is older than this node has seen/)
  await run(join(place, 'foreign'), newCluster('b'))
  await assert.rejects(run(join(place, 'foreign'), prove), /of cluster a, but the server is of cluster b/)
})

test('two agents never share a root, nor the containers of a node', async () => {
  const [root, other] = [join(place, 'r1'), join(place, 'r2')]
  using _first = await openNodeIdentity({ dataDirectory: place, node: { name: 'm', root }, host: noMounts }, signal)
  for (const [name, at, data] of [
    ['m', root, place],
    ['k', root, join(place, 'elsewhere')],
    ['m', other, place],
  ] as const) {
    const second = { dataDirectory: data, node: { name, root: at }, host: noMounts }
    await assert.rejects(openNodeIdentity(second, signal), /is in use by process \d+/)
  }
})

const noMounts = { mounts: { list: async () => [] } as unknown as Host['mounts'] } // only the list is asked for
