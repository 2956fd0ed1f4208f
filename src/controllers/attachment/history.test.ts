// What does the attachment controller tell the history? Who holds a volume that an attach waits for; nothing of audits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import { createAttachmentHistory } from './history.ts'
import { createKeptHistory } from '../../../test/kit/kept-history.ts'

test('an attach that waits names who holds the volume', () => {
  const { waited, history } = createKeptHistory()
  const none = { items: new Map() }
  const { onWaiting } = createAttachmentHistory({ history, desired: none, actual: none })
  onWaiting('v' as UniqueVolumeName, [
    { reason: 'attachedElsewhere', node: 'a' as NodeName, holder: 'b' as NodeName },
    { reason: 'backingOff', node: 'c' as NodeName, until: 9, detail: 'no path' },
  ])
  assert.deepEqual(waited[0]?.[1], [
    { reason: 'attachedElsewhere', node: 'a', message: 'b' },
    { reason: 'backingOff', node: 'c', message: 'no path', until: 9 },
  ])
})

test('the slow audit is no story', () => {
  const { told, history } = createKeptHistory()
  const none = { items: new Map() }
  const { onOperation } = createAttachmentHistory({ history, desired: none, actual: none })
  const base = {
    key: ['n'],
    plugin: '',
    subject: { name: '', details: '' },
    at: 1,
    startedAt: 1,
    stepNow: () => undefined,
  } as const
  onOperation({ ...base, operation: 'verify_volumes_are_attached_per_node', phase: 'succeeded' })
  onOperation({ ...base, operation: 'volume_attach', phase: 'succeeded' })
  assert.deepEqual(
    told.map(({ operation }) => operation),
    ['volume_attach'],
  )
})
