// Does the writer of pod statuses forget pods that are gone?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { podUid } from '../api/names.ts'
import type { Client } from '../client/client.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { silentLog } from '../telemetry/log.ts'
import type { PodWork } from './pod-work.ts'
import { noPod, statusFacts } from './pod-work.ts'
import { createStatusWriter } from './status-writer.ts'

test('a status is written once; of a pod that is gone nothing is remembered', async () => {
  const clock = createVirtualClock()
  const uid = podUid('11111111-2222-3333-4444-555555555555')
  const work = { uid, source: 'api', seenAt: 0, pod: noPod, gone: false, containers: new Map(), earlier: new Map() }
  const works = new Map([[uid, { ...work, volumeHealth: [] } as unknown as PodWork]]) // what a status is made of
  let writes = 0
  const client = { patch: () => Promise.resolve(void writes++) } as unknown as Client // nothing else is asked of it
  const factsOf = (one: PodWork, now: number) => statusFacts('', one, now)
  const writer = createStatusWriter({ client, clock, log: silentLog, works, factsOf })
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
