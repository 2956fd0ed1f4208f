// Somebody else writes between our read and our swap: is everything that was checked before checked again on what is there now?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestServer } from '../kit/api-server.ts'
import { makeServer } from '../kit/api-server.ts'

const path = '/api/v1/namespaces/default/configmaps/c'
const all = '/api/v1/namespaces/default/configmaps'

async function withMap(metadata = {}): Promise<TestServer & { readonly uid: string; readonly version: string }> {
  const api = await makeServer()
  const { body } = await api.post(all, { metadata: { name: 'c', ...metadata }, data: { a: '1' } })
  return { ...api, uid: body.metadata.uid, version: body.metadata.resourceVersion }
}

/** The next write of an existing object comes too late: `meanwhile` is faster. */
function loseNextRace({ store }: TestServer, meanwhile: () => Promise<unknown>): { lost(): boolean } {
  const { update, remove } = store
  let lost = false
  const lose = async () => {
    ;[store.update, store.remove] = [update, remove]
    await meanwhile()
    lost = true
  }
  store.update = async (...args) => (await lose(), await update(...args))
  store.remove = async (...args) => (await lose(), await remove(...args))
  return { lost: () => lost }
}

const changes = {
  data: (api: TestServer) => api.patch(path, 'merge', { data: { a: '2' } }),
  freeze: (api: TestServer) => api.patch(path, 'merge', { immutable: true }),
  hold: (api: TestServer) => api.patch(path, 'merge', { metadata: { finalizers: ['example.com/held'] } }),
  async replace(api: TestServer) {
    await api.delete(path)
    await api.post(all, { metadata: { name: 'c' }, data: { a: 'new' } })
  },
} as const

interface Row {
  readonly name: string
  readonly meanwhile: keyof typeof changes
  write(api: Awaited<ReturnType<typeof withMap>>): ReturnType<TestServer['get']>
  readonly code: number
  /** What `data` is at the end, or undefined when the object is gone. */
  readonly data: Readonly<Record<string, string>> | undefined
}

const rows: readonly Row[] = [
  {
    name: 'a JSON patch whose test no longer holds is refused',
    meanwhile: 'data',
    write: (api) =>
      api.patch(path, 'json', [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'add', path: '/data/b', value: 'x' },
      ]),
    code: 422,
    data: { a: '2' },
  },
  {
    name: 'a patch is applied to the newer object, which keeps its change',
    meanwhile: 'data',
    write: (api) => api.patch(path, 'merge', { data: { b: 'x' } }),
    code: 200,
    data: { a: '2', b: 'x' },
  },
  {
    name: 'a patch that names a version is refused',
    meanwhile: 'data',
    write: (api) => api.patch(path, 'merge', { metadata: { resourceVersion: api.version }, data: { b: 'x' } }),
    code: 409,
    data: { a: '2' },
  },
  {
    name: 'a patch that names a uid is refused when another object has the name',
    meanwhile: 'replace',
    write: (api) => api.patch(path, 'merge', { metadata: { uid: api.uid }, data: { b: 'x' } }),
    code: 422,
    data: { a: 'new' },
  },
  {
    name: 'a patch of an object that became immutable is refused',
    meanwhile: 'freeze',
    write: (api) => api.patch(path, 'merge', { data: { b: 'x' } }),
    code: 422,
    data: { a: '1' },
  },
  {
    name: 'a replacement with a version is refused',
    meanwhile: 'data',
    write: (api) => api.put(path, { metadata: { name: 'c', resourceVersion: api.version }, data: { b: 'x' } }),
    code: 409,
    data: { a: '2' },
  },
  {
    name: 'a deletion by uid spares another object of that name',
    meanwhile: 'replace',
    write: (api) => api.delete(path, { preconditions: { uid: api.uid } }),
    code: 409,
    data: { a: 'new' },
  },
  {
    name: 'a deletion by version spares the newer version',
    meanwhile: 'data',
    write: (api) => api.delete(path, { preconditions: { resourceVersion: api.version } }),
    code: 409,
    data: { a: '2' },
  },
  {
    name: 'a deletion without conditions waits for a finalizer that came meanwhile',
    meanwhile: 'hold',
    write: (api) => api.delete(path),
    code: 200,
    data: { a: '1' },
  },
]

for (const { name, meanwhile, write, code, data } of rows)
  test(`after a lost race: ${name}`, async () => {
    await using api = await withMap()
    const race = loseNextRace(api, () => changes[meanwhile](api))
    const answer = await write(api)
    assert.ok(race.lost(), 'the race was lost')
    assert.equal(answer.code, code, JSON.stringify(answer.body))
    assert.deepEqual((await api.get(path)).body.data, data)
  })
