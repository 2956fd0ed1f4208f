// Which code does an error tell? The nearest one that says something, from our own errors, the host's and the API's.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../api/status-error.ts'
import { DeadlineExceeded } from '../clock/clock.ts'
import { VolumeError } from './effect.ts'
import { storyOf, tellingError } from './operation-history.ts'

class HostError extends Error {
  readonly code = 'ENOSPC'
}

const rows: readonly (readonly [string, unknown, string])[] = [
  ['our own', new VolumeError('DriverMissing', 'x', { effect: 'untried' }), 'DriverMissing'],
  ['the host’s, thrown bare', new HostError('full'), 'ENOSPC'],
  ['the host’s, behind words of ours', new Error('mount failed', { cause: new HostError('full') }), 'ENOSPC'],
  [
    'the cause of an unexpected one',
    new VolumeError('Unexpected', 'x', { effect: 'unknown', cause: new HostError('full') }),
    'ENOSPC',
  ],
  [
    'the cause of one that only says where',
    new VolumeError('UnknownMountError', 'x', { effect: 'none', cause: new HostError('full') }),
    'ENOSPC',
  ],
  [
    'one that only says where, around a program’s own words',
    new VolumeError('FormatFailed', 'x', { effect: 'none', cause: Object.assign(new Error('y'), { code: 'CHILD' }) }),
    'FormatFailed',
  ],
  ['a deadline', new DeadlineExceeded(5), 'DEADLINE_EXCEEDED'],
  ['the API’s', new StatusError(404, 'NotFound', 'secrets "x" not found'), 'ApiNotFound'],
  ['none at all', new Error('what'), 'Unexpected'],
  ['not even an error', 'what', 'Unexpected'],
]

for (const [name, error, code] of rows) {
  test(`the code of an error: ${name}`, () => assert.equal(tellingError(error).code, code))
}

test('the words are those of the outermost error', () => {
  const error = new VolumeError('Unexpected', 'mount failed: full', { effect: 'none', cause: new HostError('full') })
  assert.deepEqual(tellingError(error), { code: 'ENOSPC', message: 'mount failed: full', effect: 'none' })
})

test('progress becomes a story: begun, in a step, ended with its error', () => {
  const stepNow = () => 'SetUp'
  const about = { plugin: '', subject: { name: '', details: '' }, stepNow }
  const base = { operation: 'volume_mount', key: ['v', 'p'], ...about } as const
  const error = new VolumeError('NotReported', 'not yet', { effect: 'untried' })
  assert.deepEqual(
    [
      storyOf({ ...base, phase: 'started', at: 1, startedAt: 1 }),
      storyOf({ ...base, phase: 'step', step: 'SetUp', at: 2, startedAt: 1 }),
      storyOf({ ...base, phase: 'failed', error, at: 3, startedAt: 1 }),
    ],
    [
      { operation: 'volume_mount', key: 'v p', startedAt: 1, phase: 'Running', stepNow },
      { operation: 'volume_mount', key: 'v p', startedAt: 1, phase: 'Running', step: 'SetUp' },
      {
        operation: 'volume_mount',
        key: 'v p',
        startedAt: 1,
        phase: 'Failed',
        finishedAt: 3,
        error: { code: 'NotReported', message: 'not yet', effect: 'untried' },
      },
    ],
  )
})
