import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError, notFound } from '../api/status-error.ts'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createLog } from '../telemetry/log.ts'
import { isAway, untilAnswered } from './until-answered.ts'

const reset = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
const signal = new AbortController().signal

test('which failures mean that the server is away, and not that it refuses', () => {
  const cases: readonly [unknown, boolean][] = [
    [reset, true],
    [Object.assign(new Error('getaddrinfo'), { code: 'EAI_AGAIN' }), true],
    [new Error('read failed', { cause: reset }), true],
    [new StatusError(503, 'ServiceUnavailable', 'the store is away'), true],
    [new StatusError(500, 'InternalError', 'oops'), true],
    [new StatusError(429, 'TooManyRequests', 'later'), true],
    [new StatusError(403, 'Forbidden', 'no'), false],
    [new StatusError(401, 'Unauthorized', 'who?'), false],
    [notFound({ group: '', plural: 'nodes' }, 'w'), false],
    [Object.assign(new Error('other names'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }), false],
    [new TypeError('a bug'), false],
  ]
  assert.deepEqual(
    cases.map(([error]) => isAway(error)),
    cases.map(([, expected]) => expected),
  )
})

test('a server that is away is asked again, with a growing pause and a line each time', async () => {
  const clock = createVirtualClock()
  const lines: unknown[] = []
  const log = createLog((level, message, { asked, retryMs }) => lines.push([level, message, asked, retryMs]))
  let asked = 0
  const answer = untilAnswered(
    { clock, log },
    'the lease of node w',
    async () => {
      if (++asked < 3) throw reset
      return 'here'
    },
    signal,
  )
  await clock.advance(1_000)
  assert.equal(await answer, 'here')
  const message = 'the server does not answer; trying again'
  assert.deepEqual(lines, [
    ['warn', message, 'the lease of node w', 200],
    ['warn', message, 'the lease of node w', 400],
  ])
})

test('a refusal is thrown at once, and a stop ends the waiting', async () => {
  const clock = createVirtualClock()
  const log = createLog(() => {})
  const refused = new StatusError(403, 'Forbidden', 'no')
  await assert.rejects(
    untilAnswered({ clock, log }, 'x', () => Promise.reject(refused), signal),
    refused,
  )
  const stopping = new AbortController()
  const waiting = untilAnswered({ clock, log }, 'x', () => Promise.reject(reset), stopping.signal)
  stopping.abort(new Error('stopped'))
  await assert.rejects(waiting, /stopped/)
})
