// Tables of codes.ts: what each status says about the world.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CsiError, effectOf, expandVerdict, provisionVerdict, statusCodes, statusName } from './codes.ts'
import type { StatusName } from './codes.ts'

const statuses = Object.keys(statusCodes) as StatusName[]

test('five codes are uncertain, all others final (CSI-15, ERR-7)', () => {
  const uncertain = statuses.filter((status) => effectOf(status) === 'unknown')
  assert.deepEqual(uncertain, ['CANCELLED', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'ABORTED', 'UNAVAILABLE'])
})

test('what a failed CreateVolume means (SIDE-16)', () => {
  const verdicts = (facts: { topology: boolean; selectedNode: boolean }) =>
    Object.fromEntries(statuses.map((status) => [status, provisionVerdict(new CsiError(status, ''), facts)]))
  const late = verdicts({ topology: true, selectedNode: true })
  assert.equal(late['RESOURCE_EXHAUSTED'], 'reschedule')
  assert.equal(late['INVALID_ARGUMENT'], 'infeasible')
  for (const status of ['CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE', 'ABORTED'])
    assert.equal(late[status], 'background')
  for (const status of ['INTERNAL', 'NOT_FOUND', 'ALREADY_EXISTS', 'UNKNOWN']) assert.equal(late[status], 'final')
  assert.equal(verdicts({ topology: true, selectedNode: false })['RESOURCE_EXHAUSTED'], 'final')
  assert.equal(provisionVerdict(new Error('no status'), { topology: false, selectedNode: false }), 'background')
})

test('what a failed expansion means (SIDE-38, CSI-16)', () => {
  assert.equal(expandVerdict(new CsiError('FAILED_PRECONDITION', '')), 'inUse')
  for (const status of ['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'] as const) {
    assert.equal(expandVerdict(new CsiError(status, '')), 'infeasible')
  }
  assert.equal(expandVerdict(new CsiError('ABORTED', '')), 'uncertain')
  assert.equal(expandVerdict(new CsiError('INTERNAL', '')), 'final')
  assert.equal(expandVerdict(new Error('no status')), 'uncertain')
})

test('errors speak as gRPC does, and unknown numbers are UNKNOWN', () => {
  assert.equal(new CsiError('NOT_FOUND', 'no such volume').message, 'rpc error: code = NotFound desc = no such volume')
  assert.equal(new CsiError('CANCELLED', 'x').message, 'rpc error: code = Canceled desc = x')
  assert.deepEqual([statusName(8), statusName(99)], ['RESOURCE_EXHAUSTED', 'UNKNOWN'])
})
