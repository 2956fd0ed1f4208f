// Does the writer of pod statuses forget pods that are gone?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUid } from '../../api/names.ts'
import type { Client } from '../../client/client.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { silentLog } from '../../telemetry/log.ts'
import { createPodWorld } from './pod-record.ts'
import { createStatusWriter } from './status-writer.ts'

test('a status is written once; of a pod that is gone nothing is remembered', async () => {
  const clock = createVirtualClock()
  const uid = podUid('11111111-2222-3333-4444-555555555555')
  const pods = createPodWorld()
  pods.apply({
    kind: 'named',
    uid,
    pod: { metadata: { name: 'p', uid }, spec: { containers: [] } },
    source: 'api',
    at: 0,
  })
  let writes = 0
  const client = { patch: () => Promise.resolve(void writes++) } as unknown as Client // nothing else is asked of it
  const writer = createStatusWriter({ client, clock, log: silentLog, records: pods.items, hostAddress: '' })
  for (let turn = 0; turn < 2; turn++) {
    writer.wake(uid)
    await clock.advance(1_000)
  }
  assert.equal(writes, 1)
  writer.forget(uid)
  writer.wake(uid)
  await clock.advance(1_000)
  assert.equal(writes, 2)
  await writer[Symbol.asyncDispose]()
})
