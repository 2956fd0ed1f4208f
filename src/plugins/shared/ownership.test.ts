// Is a slow change of ownership told, and a quick one not? FSG-4.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createModelHost } from '../../host/model/model-host.ts'
import { ownWithNotice } from './ownership.ts'

const { signal } = new AbortController()

test('a warning after 30 seconds, then one a minute, none after the end (FSG-4)', async () => {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  const told: string[] = []
  const request = {
    root: '/tmp',
    volumeName: 'v',
    ownership: { fsGroup: 5 },
    notify: ({ reason }: { reason: string }) => void told.push(reason),
  }
  await ownWithNotice({ files: host.files, clock }, request, signal)
  await clock.advance(600_000)
  assert.deepEqual(told, [])
  host.faults.plant({ call: 'files.setGroup', kind: 'slow', delayMs: 155_000 })
  const slow = ownWithNotice({ files: host.files, clock }, request, signal)
  await clock.advance(29_000)
  assert.equal(told.length, 0)
  await clock.advance(2_000)
  assert.equal(told.length, 1)
  await clock.advance(600_000)
  await slow
  assert.deepEqual(
    told,
    Array.from({ length: 3 }, () => 'VolumePermissionChangeInProgress'),
  )
})
