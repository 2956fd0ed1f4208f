import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthority, createServerCertificate } from '../apiserver/certificates.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { rehearse } from './rehearsal.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('every claim of a rehearsal gets its volume and every pod runs and goes, over TLS as on the real server', async () => {
  const clock = createSystemClock()
  const host = createModelHost({ clock })
  const authority = await createAuthority(clock.now())
  const { certificate, key } = await createServerCertificate(authority, { names: ['127.0.0.1'] }, clock.now())
  const tls = { certificate, key, authority: authority.certificate }
  // However slow the machine that tests.
  const rehearsed = await rehearse({ clock, host, tls, claims: 32, pods: 32, nextTurn, longestMs: 60_000 })
  assert.deepEqual(rehearsed, { claims: 32, pods: 32 })
})

test('a rehearsal that gets nowhere is given up after three seconds', async () => {
  const clock = createVirtualClock()
  const host = createModelHost({ clock })
  // The time is over when the first sixteen have been made: the others never come.
  const nextTurn = () => clock.advance(3_000)
  const rehearsed = await rehearse({ clock, host, claims: 32, pods: 32, nextTurn })
  assert.ok(rehearsed.claims <= 16)
  assert.equal(rehearsed.pods, 0)
})
