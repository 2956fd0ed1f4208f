// The entry of a driver in CSINode: CSINODE-3.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { entryFor, withEntry, withLimit } from './node-info.ts'

test('limits, sorted keys, and no write for what is the same (CSINODE-3)', () => {
  const info = { nodeId: 'id', topology: { z: '1', a: '2' } }
  assert.deepEqual(entryFor('d', { ...info, maxVolumes: 0n }), { name: 'd', nodeID: 'id', topologyKeys: ['a', 'z'] })
  assert.deepEqual(entryFor('d', { ...info, maxVolumes: -5n }).allocatable, undefined)
  assert.deepEqual(entryFor('d', { ...info, maxVolumes: 1n << 40n }).allocatable, { count: 2_147_483_647 })
  const entries = [entryFor('d', { ...info, maxVolumes: 3n }), entryFor('e', { ...info, maxVolumes: 0n })]
  assert.equal(withEntry(entries, entryFor('d', { ...info, maxVolumes: 3n })), entries)
  assert.deepEqual(
    withEntry(entries, entryFor('d', { ...info, maxVolumes: 4n })).map(({ name }) => name),
    ['e', 'd'],
  )
})

test('a refreshed limit changes nothing else, whatever the driver calls the node by now (CSINODE-9)', () => {
  const before = [entryFor('d', { nodeId: 'id', topology: { zone: 'a' }, maxVolumes: 3n })]
  const other = entryFor('d', { nodeId: 'another', topology: { rack: 'b' }, maxVolumes: 5n })
  assert.deepEqual(withLimit(before, other), [
    { name: 'd', nodeID: 'id', topologyKeys: ['zone'], allocatable: { count: 5 } },
  ])
  assert.deepEqual(withLimit([], other), [])
})
