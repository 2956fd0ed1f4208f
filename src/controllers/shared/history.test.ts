// What do the controllers tell the history? One line per pair that was bound, and every reason to wait with its object.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createControllerHistory } from './history.ts'
import { createKeptHistory } from '../../../test/kit/kept-history.ts'

const pv = { kind: 'PersistentVolume', name: 'pv' } as const
const claim = { kind: 'PersistentVolumeClaim', namespace: 'ns', name: 'c' } as const

test('a pair that is bound is one line, told for the claim', () => {
  const { told, history } = createKeptHistory()
  const { onTransition } = createControllerHistory(history, createVirtualClock())
  for (const [object, what] of [
    [pv, 'point to claim'],
    [pv, 'phase Bound'],
    [claim, 'point to volume'],
    [claim, 'phase Bound'],
  ] as const)
    onTransition({ controller: 'binding', object, what })
  assert.deepEqual(
    told.map(({ actor, operation, step, objects }) => ({ actor, operation, step, objects })),
    [
      {
        actor: 'binding',
        operation: 'bind',
        step: 'phase Bound',
        objects: [{ kind: 'PersistentVolumeClaim', namespace: 'ns', name: 'c' }],
      },
    ],
  )
})

test('a reason to wait is told with its object and its time', () => {
  const { waited, history } = createKeptHistory()
  const { onWaiting } = createControllerHistory(history, createVirtualClock())
  onWaiting('binding', pv, [{ reason: 'retained', until: 7 }])
  assert.deepEqual(waited, [
    [
      {
        actor: 'binding',
        operation: 'wait',
        key: 'PersistentVolume/pv',
        objects: [{ kind: 'PersistentVolume', name: 'pv' }],
      },
      [{ reason: 'retained', until: 7 }],
    ],
  ])
})
