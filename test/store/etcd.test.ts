// Does the store in etcd keep the promises of every store, and its own: no stale reads, no lost writes, one writer?
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { after, before } from 'node:test'
import { isStoreError } from '../../src/store/store.ts'
import { storeContract } from '../contracts/store.ts'
import type { Etcd } from '../kit/etcd.ts'
import { startEtcd } from '../kit/etcd.ts'
import { openTestStore } from '../kit/etcd-store.ts'

let etcd: Etcd
let stores = 0
before(async () => {
  etcd = await startEtcd()
})
after(() => etcd[Symbol.asyncDispose]())
const nextPrefix = () => `/contract-${stores++}`
const never = new AbortController().signal

// Nobody else writes here: the contract counts every revision, so no marker may come between.
storeContract('etcd', (history) =>
  openTestStore(etcd.urls, nextPrefix(), { changeWaitMs: 60_000, ...(history ? { history } : {}) }),
)

test('etcd: a read shows what others have written before it, inside the prefix and beside it', async () => {
  const prefix = nextPrefix()
  await using store = await openTestStore(etcd.urls, prefix, { changeWaitMs: 50 })
  for (let round = 0; round < 5; round++) {
    etcd.ctl('put', `${prefix}/a/1`, `round ${round}`)
    assert.equal((await store.get('/a/1'))?.value, `round ${round}`)
    etcd.ctl('put', '/elsewhere', `round ${round}`)
    const { revision } = await store.list('/a/', {})
    assert.ok(
      revision > Number((await store.get('/a/1'))?.revision),
      'the list is of a revision after the foreign write',
    )
  }
})

test('etcd: all changes of one foreign transaction reach a watch', async () => {
  const prefix = nextPrefix()
  await using store = await openTestStore(etcd.urls, prefix)
  for (const name of ['1', '2', '3']) await store.create(`/a/${name}`, name)
  const watch = store.watch('/a/', store.revision(), never)
  etcd.ctl('del', '--prefix', `${prefix}/a/`)
  const seen: string[] = []
  for await (const { type, entry } of watch) {
    seen.push(`${type} ${entry.key} ${entry.value}`)
    if (seen.length === 3) break
  }
  assert.deepEqual(seen, ['removed /a/1 1', 'removed /a/2 2', 'removed /a/3 3'])
})

test('etcd: entries come back when the store is opened again', async () => {
  const prefix = nextPrefix()
  {
    await using store = await openTestStore(etcd.urls, prefix)
    await store.create('/a/1', 'one')
    // More than one page.
    await Promise.all(Array.from({ length: 700 }, (_, index) => store.create(`/b/${index}`, 'x')))
  }
  await using store = await openTestStore(etcd.urls, prefix)
  assert.deepEqual([(await store.get('/a/1'))?.value, (await store.list('/b/', {})).entries.length], ['one', 700])
})

test('etcd: a second server is refused while the first one lives, and the first can be pushed aside by nobody', async () => {
  const prefix = nextPrefix()
  await using store = await openTestStore(etcd.urls, prefix, { holder: { id: 'a', name: 'host-a (process 1)' } })
  const second = openTestStore(etcd.urls, prefix, { holder: { id: 'b', name: 'host-b' }, leaseSeconds: 2 })
  await assert.rejects(second, /are in use by the server host-a \(process 1\): stop it first/)
  await store.create('/a/1', 'still ours')
})

test('etcd: a server that stands by waits longer than a lease, and takes over when the other one stops', async () => {
  const prefix = nextPrefix()
  const first = await openTestStore(etcd.urls, prefix, { holder: { id: 'a', name: 'host-a' }, leaseSeconds: 2 })
  const waiting = Promise.withResolvers<string>()
  let opened = false
  const standby = openTestStore(etcd.urls, prefix, {
    ...{ holder: { id: 'b', name: 'host-b' }, leaseSeconds: 2, standby: true, onWait: waiting.resolve },
  }).finally(() => (opened = true))
  assert.equal(await waiting.promise, 'host-a')
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  await first.create('/a/1', 'one')
  assert.equal(opened, false)
  await first[Symbol.asyncDispose]()
  await using second = await standby
  assert.equal((await second.get('/a/1'))?.value, 'one')
  await second.create('/a/2', 'two')
})

test('etcd: a server that stands by can be told to stop', async () => {
  const prefix = nextPrefix()
  await using _first = await openTestStore(etcd.urls, prefix, { holder: { id: 'a', name: 'host-a' } })
  const giveUp = new AbortController()
  const standby = openTestStore(etcd.urls, prefix, {
    ...{ holder: { id: 'b', name: 'host-b' }, standby: true, opening: giveUp.signal },
    onWait: () => giveUp.abort(new Error('told to stop')),
  })
  await assert.rejects(standby, /told to stop/)
})

test('etcd: a server whose lease was given to another cannot write, and is told so', async () => {
  const prefix = nextPrefix()
  const lost = Promise.withResolvers<Error>()
  const old = await openTestStore(etcd.urls, prefix, { leaseSeconds: 5, onLost: lost.resolve })
  await old.create('/a/1', 'one')
  // A process of the same data directory: the one before counts as dead.
  await using store = await openTestStore(etcd.urls, prefix)
  await assert.rejects(old.create('/a/2', 'two'), /may not write to etcd .* any more/)
  assert.match((await lost.promise).message, /its lease has ended/)
  assert.equal(await store.get('/a/2'), undefined)
  assert.equal((await old.get('/a/1'))?.value, 'one')
  await old[Symbol.asyncDispose]()
})

test('etcd: foreign keys below the prefix are left alone until they are adopted', async () => {
  const prefix = nextPrefix()
  etcd.ctl('put', `${prefix}/deployments/default/web`, '{}')
  await assert.rejects(openTestStore(etcd.urls, prefix), /holds 1 keys of another program below .*--etcd-adopt/)
  await using store = await openTestStore(etcd.urls, prefix, { use: { kind: 'serve', adopt: true } })
  assert.equal((await store.list('/deployments/', {})).entries.length, 1)
})

test('etcd: a prefix of a newer Hawser is refused', async () => {
  const prefix = nextPrefix()
  etcd.ctl('put', `${prefix}.hawser/format`, '{"program":"hawser","format":99}')
  await assert.rejects(openTestStore(etcd.urls, prefix), /newer version of Hawser \(format 99/)
})

test('etcd: a value that cannot be read is named, and the store goes on when it is mended', async () => {
  const prefix = nextPrefix()
  const layout = {
    path: (key: string) => key,
    key: (path: string) => (path.startsWith('/') ? path : undefined),
    encode: (_key: string, value: string) => Buffer.from(JSON.stringify(value)),
    decode: (_key: string, bytes: Uint8Array) => String(JSON.parse(Buffer.from(bytes).toString())),
  }
  await using store = await openTestStore(etcd.urls, prefix, { layout })
  await store.create('/a/1', 'one')
  etcd.ctl('put', `${prefix}/a/1`, 'no json')
  const early = store.get('/a/1')
  etcd.ctl('put', `${prefix}/a/1`, '"mended"')
  assert.equal((await early)?.value, 'mended')
  etcd.ctl('put', `${prefix}/a/2`, 'no json')
  await assert.rejects(
    openTestStore(etcd.urls, prefix, { layout, holder: { id: prefix, name: 'x' } }),
    /\/a\/2 in etcd cannot be read/,
  )
})

test('etcd: what is no etcd is named', async () => {
  const server = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await assert.rejects(openTestStore([url], nextPrefix()), (error) => {
      assert.ok(isStoreError(error, 'unavailable'))
      assert.match(error.message, new RegExp(`${url} .*--etcd-servers`))
      return true
    })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
