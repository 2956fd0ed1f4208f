// What becomes of the lists of a driver that means harm, or has gone wrong? They end, and say why.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { createSystemClock } from '../clock/system-clock.ts'
import { createControllerCalls } from './controller.ts'
import { ListVolumesResponseSchema } from './generated/csi_pb.ts'
import { createWire } from './service.ts'

const { signal } = new AbortController()

/** A driver whose n-th page is given; counts how often it was asked. */
function driver(page: (index: number) => { readonly ids: number; readonly nextToken: string }) {
  let asked = 0
  const wire = createWire(async () => {
    const { ids, nextToken } = page(asked++)
    const entries = Array.from({ length: ids }, (_, index) => ({ volume: { volumeId: `v${index}` } }))
    return toBinary(ListVolumesResponseSchema, create(ListVolumesResponseSchema, { entries, nextToken }))
  })
  return { calls: createControllerCalls({ wire, clock: createSystemClock() }), asked: () => asked }
}

test('a driver that answers the same token again is asked no more', async () => {
  const { calls, asked } = driver(() => ({ ids: 1, nextToken: 'same' }))
  await assert.rejects(calls.listVolumes(signal), /the token "same" twice: its list has no end/)
  assert.equal(asked(), 2)
})

test('a page of 200,000 entries is read', async () => {
  const { calls } = driver(() => ({ ids: 200_000, nextToken: '' }))
  assert.equal((await calls.listVolumes(signal)).length, 200_000)
})

test('a list without end is refused, although its tokens differ', async () => {
  const { calls, asked } = driver((index) => ({ ids: 200_000, nextToken: String(index) }))
  await assert.rejects(calls.listVolumes(signal), /driver answered more than 250000 entries/)
  assert.equal(asked(), 2)
})
