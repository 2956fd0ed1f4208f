import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryStore } from '../store/memory-store.ts'
import type { Entry } from '../store/store.ts'
import { carryOut, contentsOf, inNewEpoch, planCopy } from './migration.ts'
import { problemOf } from './move-directory.ts'

const homeKey = '/core/namespaces/kube-system'
const entry = (key: string, value: string, revision = 1): Entry => ({ key, value, revision, createRevision: 1 })

test('a copy writes what is missing or different, removes what is too much, and leaves the rest', () => {
  const wanted = [
    { key: '/a', value: '1' },
    { key: '/b', value: '2' },
    { key: homeKey, value: 'h' },
    { key: '/c', value: '3' },
  ]
  const found = [entry('/a', '1'), entry('/b', 'old', 7), entry('/z', 'gone', 9)]
  assert.deepEqual(planCopy(wanted, found), [
    { type: 'create', key: homeKey, value: 'h' },
    { type: 'remove', key: '/z', expected: 9 },
    { type: 'update', key: '/b', value: '2', expected: 7 },
    { type: 'create', key: '/c', value: '3' },
  ])
})

test('the digest sees every key and value, and no order', () => {
  const [a, b] = [
    { key: '/a', value: '1' },
    { key: '/b', value: '2' },
  ]
  assert.deepEqual(contentsOf([a, b]), contentsOf([b, a]))
  const swapped = [
    { key: '/a', value: '2' },
    { key: '/b', value: '1' },
  ]
  assert.notEqual(contentsOf([a, b]).digest, contentsOf(swapped).digest)
  assert.notEqual(contentsOf([a]).digest, contentsOf([{ key: '/', value: 'a\u00001' }]).digest)
})

test('a copy that was interrupted at any write goes on and ends with the same contents', async () => {
  const value = JSON.stringify({ metadata: { name: 'kube-system', uid: 'u' } })
  const source = [...Array.from({ length: 250 }, (_, index) => entry(`/core/pods/n/p${index}`, `{"n":${index}}`))]
  const wanted = inNewEpoch([...source, entry(homeKey, value)], 42)
  assert.match(wanted.at(-1)!.value, /"42"/)
  for (const broken of [0, 1, 101, 180, 250]) {
    await using target = createMemoryStore()
    let left = broken
    const failing = {
      ...target,
      create: (key: string, text: string) =>
        left-- > 0 ? target.create(key, text) : Promise.reject(new Error('etcd is full')),
    }
    const first = planCopy(wanted, (await target.list('/', {})).entries)
    await assert.rejects(
      carryOut(failing, first, () => {}),
      /etcd is full/,
    )
    const rest = planCopy(wanted, (await target.list('/', {})).entries)
    assert.equal(rest.length, wanted.length - broken)
    const told: number[] = []
    await carryOut(target, rest, (count) => told.push(count))
    assert.equal(told.at(-1), rest.length)
    assert.deepEqual(contentsOf((await target.list('/', {})).entries), contentsOf(wanted))
  }
})

test('a directory that cannot give or take objects says why', () => {
  const seen = { cluster: 'u', epoch: 1, revision: 2 }
  const cases = [
    ['out', { store: 'durable', seen }, 10, undefined],
    ['out', { store: 'durable', seen, in: 'etcd' }, 10, undefined],
    ['out', { store: 'durable', seen, in: 'etcd' }, 0, /are in etcd already/],
    ['out', { store: 'memory' }, 0, /there are no objects in \/d/],
    ['in', { store: 'durable', seen, in: 'etcd' }, 0, undefined],
    ['in', { store: 'durable', seen, in: 'etcd' }, 10, /holds objects .* nothing is ever overwritten/],
    ['in', { store: 'durable', seen }, 0, /not the data directory of a server that keeps its objects in etcd/],
    ['in', undefined, 0, /not the data directory of a server that keeps its objects in etcd/],
  ] as const
  for (const [way, record, bytes, expected] of cases) {
    const problem = problemOf('/d', way, record, bytes)
    if (expected === undefined) assert.equal(problem, undefined)
    else assert.match(problem?.sentence ?? 'none', expected)
  }
})
