import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSystemClock } from '../clock/system-clock.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { rehearse } from './rehearsal.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('every claim of a rehearsal gets its volume', async () => {
  const clock = createSystemClock()
  const host = createModelHost({ clock })
  assert.equal(await rehearse({ clock, host, claims: 16, nextTurn }), 16)
})

test('a rehearsal that gets nowhere is given up after three seconds', async () => {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  // More claims than anybody makes: the last eight never come.
  const rehearsal = rehearse({
    clock,
    host,
    claims: 16,
    nextTurn: () => clock.sleep(3_600_000, new AbortController().signal),
  })
  await clock.advance(3_000)
  await clock.advance(3_600_000)
  assert.ok((await rehearsal) < 16)
})
