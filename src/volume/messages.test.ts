// Whom do the sentences name? MSG-3: a mounted volume by its unique name, one without a spec as nil.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { detailedText, eventText, subjects } from './messages.ts'

test('the unique name stands for a mounted volume, nil for an unknown one (MSG-3)', () => {
  const mounted = subjects.mounted('x/y/z', 'u')
  assert.equal(
    detailedText('UnmountVolume.TearDown failed', mounted, new Error('boom')),
    'UnmountVolume.TearDown failed for volume "x/y/z" (UniqueName: "x/y/z") pod "u" (UID: "u") : boom',
  )
  const unknown = subjects.attached(undefined, 'x/y/z', 'n')
  assert.equal(eventText('DetachVolume.Detach failed', unknown), 'DetachVolume.Detach failed for volume "nil" ')
})
