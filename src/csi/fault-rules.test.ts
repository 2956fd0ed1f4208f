// Are rules of faults read as they are meant, and mistakes told?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultFor, faultRuleFrom } from './fault-rules.ts'

const rpcs = ['CreateVolume', 'DeleteVolume', 'NodeStageVolume']
const rule = (text: string) => faultRuleFrom(text, rpcs)

test('every form is read', () => {
  assert.deepEqual(rule('CreateVolume=UNAVAILABLE').fault, { kind: 'refused', status: 'UNAVAILABLE' })
  assert.deepEqual(rule('CreateVolume=answer-lost').fault, { kind: 'answerLost', status: 'UNAVAILABLE' })
  assert.deepEqual(rule('CreateVolume=twice').fault, { kind: 'twice' })
  assert.deepEqual(rule('CreateVolume=late:500ms').fault, { kind: 'late', ms: 500 })
  assert.deepEqual(rule('CreateVolume=late:1.5s').fault, { kind: 'late', ms: 1_500 })
  assert.deepEqual(rule('CreateVolume=silent').fault, { kind: 'silent' })
  assert.deepEqual(rule('CreateVolume=lost').fault, { kind: 'lost' })
  assert.deepEqual(rule('CreateVolume=ignored').fault, { kind: 'ignored' })
  assert.deepEqual(rule('CreateVolume=cut-before').fault, { kind: 'cut', when: 'before' })
  assert.deepEqual(rule('*Volume=cut-after@3'), { rpc: '*Volume', fault: { kind: 'cut', when: 'after' }, nth: 3 })
  assert.equal(rule('*=twice%12.5').percent, 12.5)
})

test('a mistake is named', () => {
  for (const [text, words] of [
    ['CreateVolume', /is no fault; examples:/],
    ['CreateVolumes=twice', /there is no CSI call CreateVolumes; calls: CreateVolume,/],
    ['CreateVolume=thrice', /thrice is no fault; one of: STATUS, answer-lost/],
    ['CreateVolume=late', /late is no fault/],
    ['CreateVolume=twice:5s', /twice is no fault/],
    ['CreateVolume=twice%101', /more than 100 percent/],
    ['CreateVolume=twice@0', /is no fault/],
  ] as const) {
    assert.throws(() => rule(text), words, text)
  }
})

test('the first rule that applies decides', () => {
  const rules = ['CreateVolume=ABORTED@2', '*Volume=twice%50'].map(rule)
  const kinds = [0, 1, 2].map((earlier) => faultFor(rules, 'CreateVolume', earlier, () => 0.4)?.kind)
  assert.deepEqual(kinds, ['twice', 'refused', 'twice'])
  assert.equal(
    faultFor(rules, 'CreateVolume', 0, () => 0.6),
    undefined,
  )
  assert.equal(
    faultFor(rules, 'ListVolumes', 0, () => 0),
    undefined,
    'another name',
  )
})
