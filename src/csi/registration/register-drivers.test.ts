// How soon is a driver registered that was not there when the agent started?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { silentLog } from '../../telemetry/log.ts'
import { CsiError } from '../codes.ts'
import { registerDrivers } from './register-drivers.ts'

const late = { name: 'late.example.com', socket: '/run/late.sock' }

/** A registrar whose driver answers as told. */
async function bench(answer: () => Error | undefined) {
  const clock = createVirtualClock()
  const lines: string[] = []
  const [tries, waits]: [number[], string[]] = [[], []]
  const registrar = {
    async register() {
      tries.push(clock.now())
      const error = answer()
      if (error) throw error
    },
    [Symbol.asyncDispose]: async () => {},
  }
  const told = {
    waits: () => {},
    failed: ({ endpoint }: { endpoint: string }) => void waits.push(endpoint),
    works: () => void waits.splice(0),
  }
  const log = { ...silentLog, warn: (message: string) => void lines.push(message) }
  const registration = registerDrivers({ clock, log, registrar, told }, [late], new AbortController().signal)
  await clock.settle()
  return { clock, lines, tries, waits, registration }
}

test('a driver whose socket comes later is registered within a second, however long that takes', async () => {
  let isThere = false
  const { clock, lines, tries, waits, registration } = await bench(() =>
    isThere ? undefined : new CsiError('UNAVAILABLE', 'No connection established'),
  )
  await clock.advance(600_000)
  assert.deepEqual([...new Set(waits)], [late.socket], 'why is told')
  assert.equal(lines.length, 1, 'and the log, once')
  isThere = true
  const before = tries.length
  await clock.advance(1_000)
  assert.deepEqual([tries.length > before, waits], [true, []])
  const after = tries.length
  await clock.advance(600_000)
  assert.equal(tries.length, after, 'nobody asks any more')
  await registration[Symbol.asyncDispose]()
})

test('a driver that refuses is asked again with back-off, and each refusal is in the log', async () => {
  const { clock, lines, tries, registration } = await bench(() => new CsiError('INVALID_ARGUMENT', 'no'))
  await clock.advance(600_000)
  assert.ok(tries.length < 40, `${tries.length} tries`)
  assert.equal(lines.length, tries.length)
  await registration[Symbol.asyncDispose]()
})
